"""Trace requests from callers, end to end: match, check, arm, follow, hand out (the TraceService of rpc.services)."""

import asyncio
import os
from collections.abc import Awaitable
from typing import Protocol

from dynolog.ipc.handler import RequestHandler
from dynolog.model.capture import CaptureInfo, CaptureState, WrittenTrace
from dynolog.model.clock import Clock
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import Caller, RequestProgress, TraceOutcome, TraceRequest
from dynolog.model.trainer import TrainerInfo
from dynolog.profiling.capture_desk import CaptureDesk, MakeFileWatch
from dynolog.profiling.destinations import Destination
from dynolog.profiling.estimate import estimate, notes, require_time_enough
from dynolog.profiling.gpu_holdings import GpuHoldings
from dynolog.profiling.host_windows import HostSampler
from dynolog.profiling.inspector import Facts
from dynolog.profiling.job import JobSelector, parse_job
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.profiling.matching import Selection, select, wanted_pids
from dynolog.profiling.no_match import MOST_PROBED, NOT_REGISTERED, explain
from dynolog.profiling.off_thread import call_off_thread
from dynolog.profiling.registry import ProcessWatch
from dynolog.profiling.roles import roles_of
from dynolog.profiling.trace_targets import Targets, warnings_of
from dynolog.profiling.trainer import Trainer
from dynolog.profiling.unregistered import UnregisteredLook


class CheckDestinations(Protocol):
    """Whether each trainer may write its file: profiling.destinations.check_destinations."""

    def __call__(self, destinations: list[Destination], *, make_missing: bool) -> Awaitable[list[str]]:
        """ "" or the reason for each; missing directories are made, or only judged."""
        ...


# Trainers whose first poll has just come are looked at before matching, but no look that hangs holds up a request.
_LOOK_S = 0.5
_LONGEST_WAIT_S = 60.0
# Far beyond the processes of a machine; matching runs on the thread that answers trainers.
_MOST_PIDS = 16384


class TraceService:
    """Lives on the socket thread; what may block is awaited.

    `desk` has the trainers and captures, `gpus` who holds which device.

    A dry run does all but arm: its outcome has no `request_id` and no captures, and
    `triggered` says what would be.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Clock,
        reader: Facts,
        check_destinations: CheckDestinations,
        make_watch: MakeFileWatch,
        ipc_enabled: bool,
        processes: ProcessWatch | None = None,
        sampler: HostSampler | None = None,
    ) -> None:
        self._clock = clock
        self._reader = reader
        self._check_destinations = check_destinations
        self._ipc_enabled = ipc_enabled
        self.desk = CaptureDesk(loop, clock, reader, make_watch, processes, sampler=sampler)
        self.gpus = GpuHoldings()
        self._daemon_uid = os.geteuid()
        self._unregistered = UnregisteredLook(reader, _own_net_namespace())

    @property
    def ipc_enabled(self) -> bool:
        """Whether trainers can reach this daemon at all."""
        return self._ipc_enabled

    @property
    def handler(self) -> RequestHandler:
        """What the IPC's endpoints call."""
        return self.desk

    @property
    def trainer_count(self) -> int:
        """How many trainers are registered."""
        return len(self.desk.registry)

    @property
    def active_captures(self) -> int:
        """How many captures are not final."""
        return self.desk.log.active

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know about trainers and looks at them."""
        stalled = self.desk.watch.stalled
        return (*self.desk.registry.notices, *((stalled,) if stalled else ()))

    def close(self) -> None:
        """Stop; waiters are answered with what is known."""
        self.desk.close()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def request_traces(self, request: TraceRequest, caller: Caller) -> TraceOutcome:
        """Match, check and arm.

        Raises RequestError (bad_config, bad_request, start_time) for a request that cannot be carried out at all.
        """
        config = KinetoConfig.parse(request.config)
        job = parse_job(request.job, request.job_id)
        if len(request.pids) > _MOST_PIDS:
            raise RequestError(
                "bad_request",
                f"{len(request.pids)} pids are too many: at most {_MOST_PIDS}, or none for all of the job",
            )
        await self._read_details()
        found = self._select(request, job, caller)
        if unsure := self._unsure(request, config, found):
            await self._look_again(unsure)
            found = self._select(request, job, caller)
        if not found.matched:
            return await self._no_match(request, job, found, caller)
        require_time_enough(config, found.chosen, self._clock.wall_ns())
        configs = {trainer.serial: _config_for(trainer, config, request) for trainer in found.chosen}
        paths = {trainer.serial: configs[trainer.serial].final_path(trainer.pid) for trainer in found.chosen}
        chosen = self._still_free(await self._with_destination(found, paths, make_missing=not request.dry_run), found)
        return self._outcome(request, config, caller, found, Targets(chosen, configs, paths))

    def _select(self, request: TraceRequest, job: JobSelector, caller: Caller) -> Selection:
        def may_trace(trainer: Trainer) -> bool:
            return caller.may_act_for(trainer.uid, self._daemon_uid)

        return select(self.desk.registry, request, job, may_trace, self.desk.busy_with, gpus=self.gpus)

    def _unsure(self, request: TraceRequest, config: KinetoConfig, found: Selection) -> list[Trainer]:
        """Those about whom an old look may be wrong: most open their GPU after their first poll, and it decides who is meant or preferred;
        and an ancestor of others may turn out to work itself.
        """
        if request.gpus and not self.gpus.has_list:
            return list(self.desk.registry)
        if 0 < request.process_limit < len(found.matched) or config.memory_snapshot:
            return found.matched
        return found.guessed

    async def _read_details(self) -> None:
        registry = self.desk.registry
        unread = {trainer.serial for trainer in registry if not trainer.inspected}
        if unread:
            await registry.inspector.wait(unread, _LOOK_S)

    async def _look_again(self, trainers: list[Trainer]) -> None:
        inspector = self.desk.registry.inspector
        verified = [trainer for trainer in trainers if trainer.verified]
        for trainer in verified:
            inspector.ask(trainer.serial, trainer.host_pid, trainer.uid)
        await inspector.wait({trainer.serial for trainer in verified}, _LOOK_S)

    async def _no_match(
        self, request: TraceRequest, job: JobSelector, found: Selection, caller: Caller
    ) -> TraceOutcome:
        code, reason = explain(
            request,
            job,
            tuple(self.desk.registry),
            found,
            self.gpus,
            ipc_enabled=self._ipc_enabled,
            is_alive=self._reader.exists,
        )
        if code in NOT_REGISTERED and (pid := self._live_stranger(request)):
            known = await self._unregistered.explain(
                pid, lambda uid: caller.may_act_for(uid, self._daemon_uid), _LOOK_S
            )
            reason += f" Pid {pid}: {known}." if known else ""
        return TraceOutcome(no_match_code=code, no_match_reason=reason, not_traced=tuple(found.left_out))

    def _live_stranger(self, request: TraceRequest) -> int:
        """The first process that was named, lives, and is no trainer; 0 for none."""
        trainers = {pid for trainer in self.desk.registry for pid in (trainer.pid, trainer.host_pid)}
        named = sorted(wanted_pids(request.pids) - trainers)[:MOST_PROBED]
        return next((pid for pid in named if self._reader.exists(pid)), 0)

    async def _with_destination(self, found: Selection, paths: dict[int, str], *, make_missing: bool) -> list[Trainer]:
        refusals = await self._check_destinations(
            [
                Destination(
                    host_pid=trainer.host_pid,
                    pid=trainer.pid,
                    uid=trainer.uid,
                    gid=trainer.gid,
                    trace_dir=trainer.details.trace_dir if trainer.details else "",
                    path=paths[trainer.serial],
                    view=trainer.details.file_view if trainer.details else "",
                )
                for trainer in found.chosen
            ],
            make_missing=make_missing,
        )
        allowed = []
        for trainer, refusal in zip(found.chosen, refusals, strict=True):
            if refusal:
                found.leave_out(trainer, "path", refusal)
            else:
                allowed.append(trainer)
        return allowed

    def _still_free(self, trainers: list[Trainer], found: Selection) -> list[Trainer]:
        # Meanwhile trainers may have gone, and another request may have come.
        free = []
        for trainer in trainers:
            busy = self.desk.busy_with(trainer)
            if trainer not in self.desk.registry:
                found.leave_out(trainer, "gone", "it has just ended")
            elif busy is not None:
                found.busy += 1
                found.leave_out(trainer, "busy", busy)
            else:
                free.append(trainer)
        return free

    def _outcome(
        self, request: TraceRequest, config: KinetoConfig, caller: Caller, found: Selection, targets: Targets
    ) -> TraceOutcome:
        chosen = targets.trainers
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        estimates = [estimate(trainer, config, now_ns, wall_ns) for trainer in chosen]
        again = self._written_again(targets)
        warnings = (*config.warnings, *warnings_of(targets, config, self._daemon_uid), *again)
        said = [*warnings, *notes(config, chosen, estimates)]
        if found.forbidden:
            said.append(f"{found.forbidden} matching trainers of other users were left alone")
        if request.dry_run:
            said.append("dry run: nothing was triggered")
        request_id = ""
        captures: tuple[CaptureInfo, ...] = ()
        if chosen and not request.dry_run:
            logged = self.desk.new_request(config.group_id)
            request_id = logged.id
            asked_by = describe(caller)
            captures = tuple(
                self.desk.arm(
                    logged,
                    trainer,
                    targets.paths[trainer.serial],
                    targets.configs[trainer.serial],
                    asked_by=asked_by,
                    expected_s=entry.total_s,
                    host_interval_ms=request.host_interval_ms,
                ).info()
                for trainer, entry in zip(chosen, estimates, strict=True)
            )
        return TraceOutcome(
            request_id=request_id,
            matched=tuple(trainer.pid for trainer in found.matched),
            triggered=tuple(trainer.pid for trainer in chosen),
            busy=found.busy,
            captures=captures,
            not_traced=tuple(found.left_out),
            notes=tuple(said),
            warnings=warnings,
            expected_s=max((entry.total_s for entry in estimates), default=0.0),
        )

    def _written_again(self, targets: Targets) -> list[str]:
        """libkineto replaces a file of that name without a word."""
        written = self.desk.log.written_files()
        paths = [path for one in targets.trainers if (one.host_pid, path := targets.paths[one.serial]) in written]
        if not paths:
            return []
        which = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        return [f"{which}: the earlier trace of that name is replaced: choose another --log-file to keep it"]

    # --- following ---------------------------------------------------------------------------------------------------

    def trainers(self) -> tuple[TrainerInfo, ...]:
        """All registered trainers, first come first."""
        registered = list(self.desk.registry)
        launchers = roles_of(registered, self.gpus.strength).launchers
        now_ns = self._clock.monotonic_ns()
        return tuple(
            trainer.info(now_ns, launcher=trainer.serial in launchers, gpus=self.gpus.of(trainer))
            for trainer in registered
        )

    def progress(self, request_id: str) -> tuple[RequestProgress, ...]:
        """One request's captures, or all that are remembered for "". Raises RequestError("not_found")."""
        if request_id:
            return (self.desk.log.request(request_id).progress(),)
        return tuple(request.progress() for request in self.desk.log)

    async def wait(self, request_id: str, seen_version: int, timeout_s: float) -> RequestProgress:
        """Returns at the first change after `seen_version`, at once when done, or as it stands after `timeout_s` (at most 60)."""
        request = self.desk.log.request(request_id)
        await request.wait(seen_version, min(max(timeout_s, 0.0), _LONGEST_WAIT_S))
        return request.progress()

    async def open_written(self, capture_id: str, caller: Caller) -> WrittenTrace:
        """Open the file of a written capture, beneath the trainer's root. Raises RequestError (not_found, not_written, forbidden)."""
        capture = self.desk.log.capture(capture_id)
        if not caller.may_act_for(capture.subject.uid, self._daemon_uid):
            raise RequestError(
                "forbidden",
                f"the trace belongs to uid {capture.subject.uid}: fetch it as that user, as root, or with a token",
            )
        if capture.state is not CaptureState.WRITTEN or capture.file is None:
            raise RequestError(
                "not_written", f"capture {capture.id} is {capture.state}: {capture.reason or 'wait for its file'}"
            )
        try:
            fd = await call_off_thread(lambda: self.desk.watch.open(capture_id), discard=os.close)
        except OSError as error:
            raise RequestError(
                "not_found", f"{capture.path} cannot be opened any more: {error.strerror or error}"
            ) from error
        return WrittenTrace(
            capture=capture.info(), fd=fd, size_bytes=capture.file.size_bytes, sha256=capture.file.sha256
        )


def _config_for(trainer: Trainer, config: KinetoConfig, request: TraceRequest) -> KinetoConfig:
    """The config with the file that the request has for this trainer."""
    log_file = request.log_files.get(trainer.host_pid if trainer.verified else trainer.pid)
    return config if log_file is None else config.at(log_file)


def _own_net_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return 0


def describe(caller: Caller) -> str:
    """Who asks, as others are told: `uid 1000`, `certificate ops-1`, or the address of a remote caller."""
    if caller.uid is not None:
        return f"uid {caller.uid}"
    return caller.name or caller.address or f"an unknown user ({caller.transport})"
