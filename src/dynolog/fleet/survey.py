"""Phase one of a trace of many hosts: what would each daemon trace, how fast do its trainers poll, and what is its clock."""

import time
from collections.abc import Sequence

import msgspec

from dynolog.fleet.clocks import ClockOffset, clock_offset
from dynolog.fleet.fan_out import FanOutOptions, each, run
from dynolog.fleet.host_call import HostAnswer, HostCaller, Outcome
from dynolog.fleet.naming import NameTemplate, with_host_pid
from dynolog.fleet.targets import FleetTarget
from dynolog.model.trace_request import NotTraced
from dynolog.model.trainer import TrainerInfo
from dynolog.rpc.messages import (
    GetStatus,
    ListProcesses,
    ProcessesReply,
    SetKinetOnDemandRequest,
    StatusReply,
    TraceReply,
)

DEFAULT_POLL_S = 5.0  # libkineto's own
# A clock that was looked at while all hosts answered at once is looked at again when that is over.
_GOOD_ENOUGH_NS = 1_000_000


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A process that its daemon would trace, and the file it is to write (as ACTIVITIES_LOG_FILE)."""

    trainer: TrainerInfo
    log_file: str

    @property
    def key(self) -> int:
        """How the daemon is told which one: the host's pid, or its own where that is not known."""
        return key_of(self.trainer)


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What one host said. `original`: it traces when asked, and can say nothing before."""

    target: FleetTarget
    answer: HostAnswer
    original: bool = False
    offset: ClockOffset | None = None
    candidates: tuple[Candidate, ...] = ()
    matched: int = 0
    not_traced: tuple[NotTraced, ...] = ()
    reason: str = ""
    warnings: tuple[str, ...] = ()
    elapsed_s: float = 0.0

    @property
    def can_start(self) -> bool:
        """Whether something would be traced here, as far as can be known."""
        return self.answer.answered and (self.original or bool(self.candidates))

    @property
    def slowest_poll_s(self) -> float:
        """The longest poll interval among those to be traced."""
        return max(
            (candidate.trainer.poll_interval_s or DEFAULT_POLL_S for candidate in self.candidates),
            default=DEFAULT_POLL_S,
        )


def key_of(trainer: TrainerInfo) -> int:
    """See Candidate.key."""
    return trainer.pid if trainer.unverified or not trainer.host_pid else trainer.host_pid


def survey_hosts(
    targets: Sequence[FleetTarget], request: SetKinetOnDemandRequest, names: NameTemplate, options: FanOutOptions
) -> list[Survey]:
    """Ask all; the timeout is for all questions to one host together. Raises TokenFileError only."""

    async def all_of_them() -> list[Survey]:
        surveyor = _Surveyor(HostCaller(options.token_file, options.tls), request, names, options.timeout_s)
        return await each(targets, surveyor.ask, options.fanout)

    return run(all_of_them())


class _Surveyor:
    def __init__(
        self, caller: HostCaller, request: SetKinetOnDemandRequest, names: NameTemplate, timeout_s: float
    ) -> None:
        self._caller = caller
        self._request = request
        self._names = names
        self._timeout_s = timeout_s

    async def ask(self, target: FleetTarget) -> Survey:
        started_s = time.monotonic()
        status = await self._caller.ask(target, GetStatus(time=True), self._timeout_s)
        reply = status.decode(StatusReply)
        if reply is None:
            return Survey(target=target, answer=_unless_answered(status))
        if not reply.wall_ns:
            return Survey(target=target, answer=status, original=True, elapsed_s=status.elapsed_s)
        survey = await self._ask_ours(target, clock_offset(status), started_s)
        return msgspec.structs.replace(survey, elapsed_s=time.monotonic() - started_s)

    async def _ask_ours(self, target: FleetTarget, offset: ClockOffset | None, started_s: float) -> Survey:
        def left_s() -> float:
            return max(started_s + self._timeout_s - time.monotonic(), 0.001)

        listed = await self._caller.ask(target, ListProcesses(), left_s())
        processes = listed.decode(ProcessesReply)
        if processes is None:
            return Survey(target=target, answer=_unless_answered(listed), offset=offset)
        files = log_files(target.name, processes.trainers, self._names)
        request = msgspec.structs.replace(
            self._request,
            dry_run=True,
            log_files={key_of(trainer): files[index] for index, trainer in enumerate(processes.trainers)},
        )
        answer = await self._caller.ask(target, request, left_s())
        reply = answer.decode(TraceReply)
        if reply is None:
            return Survey(target=target, answer=_unless_answered(answer), offset=offset)
        if offset is not None and offset.uncertainty_ns > _GOOD_ENOUGH_NS:
            again = clock_offset(await self._caller.ask(target, GetStatus(time=True), left_s()))
            if again is not None and again.uncertainty_ns < offset.uncertainty_ns:
                offset = again
        return Survey(
            target=target,
            answer=answer,
            offset=offset,
            candidates=_candidates(reply, processes.trainers, files, self._request),
            matched=len(reply.processesMatched),
            not_traced=reply.not_traced,
            reason=reply.no_match_reason,
            warnings=reply.warnings,
        )


def _unless_answered(answer: HostAnswer) -> HostAnswer:
    """The failure; an answer that was not understood is one too."""
    if not answer.answered:
        return answer
    return msgspec.structs.replace(
        answer, outcome=Outcome.NOT_UNDERSTOOD, code=str(Outcome.NOT_UNDERSTOOD), error="its reply is not understood"
    )


def log_files(host: str, trainers: Sequence[TrainerInfo], names: NameTemplate) -> list[str]:
    """A file for each trainer, all different once libkineto has put the pids in."""
    files: list[str] = []
    taken: set[tuple[str, int]] = set()
    for trainer in trainers:
        job = trainer.job or (str(trainer.job_id) if trainer.job_id else "")
        file = names.log_file(host, job=job, rank=trainer.rank, pid=trainer.pid)
        if (file, trainer.pid) in taken:
            file = with_host_pid(file, trainer.host_pid)
        taken.add((file, trainer.pid))
        files.append(file)
    return files


def _candidates(
    reply: TraceReply, trainers: Sequence[TrainerInfo], files: Sequence[str], request: SetKinetOnDemandRequest
) -> tuple[Candidate, ...]:
    """The trainers behind the pids that would be triggered; a pid may be that of several, in containers."""
    left_out = {(entry.pid, entry.host_pid) for entry in reply.not_traced}
    job = request.job or (str(request.job_id) if request.job_id else "")
    known: dict[int, list[Candidate]] = {}
    for trainer, file in zip(trainers, files, strict=True):
        if (trainer.pid, trainer.host_pid) not in left_out:
            known.setdefault(trainer.pid, []).append(Candidate(trainer=trainer, log_file=file))
    for same in known.values():
        same.sort(key=lambda one: (job not in ("", one.trainer.job, str(one.trainer.job_id)), one.trainer.host_pid))
    return tuple(known[pid].pop(0) for pid in reply.activityProfilersTriggered if known.get(pid))
