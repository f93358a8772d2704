"""Asking the daemon what would become of a trace request, without starting anything."""

import msgspec

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.subject import Subject
from dynolog.cli.gputrace.arguments import ALL_PROCESSES
from dynolog.model.errors import DynologError
from dynolog.model.trace_request import NotTraced
from dynolog.model.trainer import TrainerInfo
from dynolog.profiling.trace_options import TraceOptions, render_request
from dynolog.rpc.client import call
from dynolog.rpc.messages import SetKinetOnDemandRequest, TraceReply

DEFAULT_LOG_FILE = "/tmp/trace.json"  # noqa: S108 - where traces are put by habit; nothing is written here


def with_verdicts(evidence: Evidence, subjects: list[Subject], log_file: str) -> list[Subject]:
    """The subjects, those that have registered with what the daemon says to a trace of them. One request a job and file."""
    requests: dict[tuple[str, int, str], list[int]] = {}
    for subject in subjects:
        if trainer := subject.trainer:
            key = (trainer.job, trainer.job_id, _file_of(subject, log_file))
            requests.setdefault(key, []).append(_pid_of(trainer))
    verdicts: dict[int, NotTraced | None] = {}
    for (job, number, path), pids in requests.items():
        verdicts |= _ask(evidence, pids, job, number, path)
    return [_answered(subject, verdicts, log_file) for subject in subjects]


def _answered(subject: Subject, verdicts: dict[int, NotTraced | None], log_file: str) -> Subject:
    if subject.trainer is None or (pid := _pid_of(subject.trainer)) not in verdicts:
        return subject
    return msgspec.structs.replace(subject, verdict=verdicts[pid], log_file=_file_of(subject, log_file))


def _pid_of(trainer: TrainerInfo) -> int:
    return trainer.host_pid or trainer.pid


def _file_of(subject: Subject, log_file: str) -> str:
    """The file that was asked about; without one, below the directory that the process allows, else in /tmp."""
    if log_file:
        return log_file
    directory = subject.environment.get("KINETO_ONDEMAND_TRACE_DIR", "").rstrip("/")
    return f"{directory}/trace.json" if directory else DEFAULT_LOG_FILE


def _ask(evidence: Evidence, pids: list[int], job: str, number: int, path: str) -> dict[int, NotTraced | None]:
    """By pid: why it would not be traced, None when it would."""
    request = SetKinetOnDemandRequest(
        config=render_request(TraceOptions(log_file=path)),
        pids=pids,
        job=job,
        job_id=number,
        process_limit=ALL_PROCESSES,
        dry_run=True,
    )
    try:
        reply = call(evidence.target, request, TraceReply)
    except DynologError as error:
        return {pid: NotTraced(pid=pid, host_pid=pid, code="refused", error=str(error)) for pid in pids}
    if reply.no_match_code:
        return {
            pid: NotTraced(pid=pid, host_pid=pid, code=reply.no_match_code, error=reply.no_match_reason) for pid in pids
        }
    left_out = {one.host_pid or one.pid: one for one in reply.not_traced}
    return {pid: left_out.get(pid) for pid in pids}
