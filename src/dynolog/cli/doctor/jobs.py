"""The processes of a SLURM job on this machine: those that registered, and those that only have its environment."""

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.subject import Subject, find_subject, subject_of
from dynolog.profiling.job import identity_of, job_of, parse_job


def subjects_of_job(evidence: Evidence, text: str) -> list[Subject]:
    """All with PyTorch; without any, the job's other Python processes. Raises RequestError for what is no job id."""
    selector = parse_job(text)
    seen = {
        pid: one
        for pid, one in evidence.survey.processes.items()
        if one.job and selector.matches(job_of(_number(one.job.get("SLURM_JOB_ID", "")), one.job))
    }
    with_torch = {pid: one for pid, one in seen.items() if one.torch is not None}
    chosen = {pid: subject_of(evidence, pid, one) for pid, one in (with_torch or seen).items()}
    for trainer in evidence.trainers:
        pid = trainer.host_pid or trainer.pid
        # The step of a trainer is in no list, so its base alone must fit.
        if pid not in chosen and parse_job(text.partition(".")[0]).matches(identity_of(trainer.job, trainer.job_id)):
            # One in a container that is known by its pid there only may be among them by its pid here.
            subject = find_subject(evidence, pid)
            chosen.setdefault(subject.pid, subject)
    return [chosen[pid] for pid in sorted(chosen)]


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 20 else 0
