"""What a trace of many hosts will do, decided from what they said, and the requests that do it."""

import time
from collections.abc import Callable, Sequence

import msgspec

from dynolog import __version__
from dynolog.fleet.choose import by_rank, one_per_host, sample
from dynolog.fleet.manifest import NOT_TRACED, HostEntry, Manifest, ProcessEntry
from dynolog.fleet.naming import NameTemplate
from dynolog.fleet.survey import Candidate, Survey
from dynolog.fleet.targets import FleetTarget
from dynolog.rpc.messages import SetKinetOnDemandRequest

# Why a matched process is left out without that being a failure: nobody asked for it, or it is another user's.
EXPECTED = frozenset({"launcher", "limit", "forbidden"})


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the candidates: all by default. `only_ours`: an option that the original daemon would ignore, "" for none."""

    sample: int = 0
    one_per_host: bool = False
    only_ours: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Each host's answer to phase one, and beside it what starts there."""

    surveys: tuple[Survey, ...]
    chosen: tuple[tuple[Candidate, ...], ...]
    # An original daemon is simply asked; not when something was chosen that it does not understand.
    originals: bool = True

    def starts(self, index: int) -> bool:
        """Whether host number `index` is asked to trace."""
        return bool(self.chosen[index]) or (self.originals and self.surveys[index].original)

    @property
    def starting(self) -> list[Survey]:
        """The hosts that are asked to trace."""
        return [survey for index, survey in enumerate(self.surveys) if self.starts(index)]

    @property
    def process_count(self) -> int:
        """How many processes, those of original daemons not known."""
        return sum(map(len, self.chosen))


def make_plan(surveys: Sequence[Survey], choice: Choice) -> Plan:
    """Choose."""
    chosen: Sequence[Sequence[Candidate]] = [sorted(survey.candidates, key=by_rank) for survey in surveys]
    if choice.one_per_host:
        chosen = one_per_host(chosen)
    if choice.sample:
        chosen = sample(chosen, choice.sample)
    originals = not (choice.only_ours or choice.one_per_host or choice.sample)
    return Plan(surveys=tuple(surveys), chosen=tuple(map(tuple, chosen)), originals=originals)


def labelled(targets: Sequence[FleetTarget]) -> list[FleetTarget]:
    """With labels that are all different: they stand in file names."""
    seen: dict[str, int] = {}
    for target in targets:
        seen[target.name] = seen.get(target.name, 0) + 1
    return [
        msgspec.structs.replace(target, label=target.name if seen[target.name] == 1 else f"{target.name}-{target.port}")
        for target in targets
    ]


def manifest_of(plan: Plan, *, group_id: str, job: str, config: str, originals_reason: str) -> Manifest:
    """The manifest before anything is started."""
    hosts, processes = [], []
    for index, survey in enumerate(plan.surveys):
        offset = survey.offset
        entry = HostEntry(
            host=survey.target.host,
            port=survey.target.port,
            label=survey.target.name,
            outcome=str(survey.answer.outcome),
            error=survey.answer.error,
            original=survey.original,
            clock_offset_ns=offset.offset_ns if offset else None,
            clock_uncertainty_ns=offset.uncertainty_ns if offset else None,
            slowest_poll_s=survey.slowest_poll_s if survey.candidates else 0.0,
            matched=survey.matched,
            notes=[survey.reason] if survey.reason else [],
        )
        if survey.original and not plan.originals:
            entry.error = originals_reason
        hosts.append(entry)
        processes += [_process(entry.label, candidate) for candidate in plan.chosen[index]]
        processes += [
            ProcessEntry(host=entry.label, pid=one.pid, host_pid=one.host_pid, outcome=NOT_TRACED, reason=one.error)
            for one in survey.not_traced
            if one.code not in EXPECTED
        ]
    return Manifest(
        group_id=group_id,
        hosts=hosts,
        processes=processes,
        dyno_version=__version__,
        created_wall_ns=time.time_ns(),
        config=config,
        job=job,
    )


def _process(host: str, candidate: Candidate) -> ProcessEntry:
    trainer = candidate.trainer
    return ProcessEntry(
        host=host,
        pid=trainer.pid,
        host_pid=trainer.host_pid,
        job=trainer.job or (str(trainer.job_id) if trainer.job_id else ""),
        rank=trainer.rank,
        local_rank=trainer.local_rank,
        world_size=trainer.world_size,
        name=trainer.name,
        gpus=list(trainer.gpus),
        log_file=candidate.log_file,
    )


def requests_of(
    plan: Plan, base: SetKinetOnDemandRequest, config_for: Callable[[Survey], str]
) -> dict[str, SetKinetOnDemandRequest]:
    """Each host's request by label: exactly the chosen processes, each with its file; the original is asked as it always was."""
    requests = {}
    for index, survey in enumerate(plan.surveys):
        if not plan.starts(index):
            continue
        request = msgspec.structs.replace(base, config=config_for(survey), dry_run=False)
        if not survey.original:
            chosen = plan.chosen[index]
            request = msgspec.structs.replace(
                request,
                pids=[candidate.key for candidate in chosen],
                log_files={candidate.key: candidate.log_file for candidate in chosen},
                names=[],
                ranks=[],
                gpus=[],
            )
        requests[survey.target.name] = request
    return requests


def host_log_file(names: NameTemplate, survey: Survey, job: str) -> str:
    """The file of a host's processes that have no name of their own: all of them, to an original daemon."""
    return names.log_file(survey.target.name, job=job)
