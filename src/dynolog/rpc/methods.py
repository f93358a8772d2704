"""From a request's bytes to its reply: decoding, the functions, and how what goes wrong is said."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

import dynolog
from dynolog.model.clock import Clock
from dynolog.model.errors import DynologError, RequestError
from dynolog.model.json_text import encode_json
from dynolog.model.trace_request import Caller
from dynolog.profiling.job import identity_of, parse_job
from dynolog.rpc.answers import Answer, Fetch, failed
from dynolog.rpc.audit import AuditLog
from dynolog.rpc.auth import Gate
from dynolog.rpc.messages import (
    Authenticated,
    BoolReply,
    CatalogueReply,
    DcgmProfPause,
    DcgmProfResume,
    FetchTrace,
    GetGpus,
    GetHostSamples,
    GetMetrics,
    GetStatus,
    GetTrace,
    GetVersion,
    GpusReply,
    HostSamplesReply,
    ListMetrics,
    ListProcesses,
    MetricsReply,
    ProcessesReply,
    Reload,
    ReloadReply,
    Request,
    SetKinetOnDemandRequest,
    StatusReply,
    TraceProgressReply,
    VersionReply,
    WaitTrace,
)
from dynolog.rpc.origin import Origin
from dynolog.rpc.requests import decode
from dynolog.rpc.roles import needed
from dynolog.rpc.services import Services, WrittenTrace
from dynolog.rpc.shares import Shares, whose
from dynolog.rpc.trace_messages import trace_reply, trace_request
from dynolog.rpc.turns import Turns

log = logging.getLogger(__name__)

MAX_WAIT_S = 60.0
# A week: whoever forgets to resume shall not lose the counters for good.
MAX_PAUSE_S = 604_800
# Bodies from here on take more than a tenth of a millisecond to decode.
LARGE_BODY_BYTES = 1 << 14
# Of one caller at once. Each trace request begins by starting a process that looks at the directories of trainers; each wait takes a
# connection; each fetch takes a thread, for as long as a disk hangs.
MAX_TRACE_REQUESTS = 32
MAX_WAITS = 64
MAX_FETCHES = 8


class Methods:
    """Answers requests. What is asked most (`getStatus`) is answered at once, without a task."""

    def __init__(self, services: Services, gate: Gate, clock: Clock) -> None:
        self._services = services
        self._gate = gate
        self._clock = clock
        self.internal_errors = 0
        self._audit = AuditLog()
        self._turns = Turns()
        self._tracing = Shares(MAX_TRACE_REQUESTS, "trace requests", "are being looked at")
        self._waits = Shares(MAX_WAITS, "waits", "are going on")
        self._fetches = Shares(MAX_FETCHES, "fetches", "are going on")
        self._plain = {status: encode_json({"status": status}) for status in (0, 1)}
        self._version = encode_json(VersionReply(dynolog.__version__))
        # What needs no waiting and no caller, by the type of the request.
        self._at_once: dict[type, Callable[[Any], bytes]] = {
            GetStatus: self._get_status,
            GetVersion: lambda _: self._version,
            ListProcesses: self._list_processes,
            GetTrace: self._get_trace,
            GetHostSamples: self._get_host_samples,
            GetMetrics: self._get_metrics,
            ListMetrics: self._list_metrics,
            GetGpus: self._get_gpus,
        }
        self._later: dict[type, Callable[[Any, Caller], Awaitable[Answer]]] = {
            SetKinetOnDemandRequest: self._set_kinet_on_demand_request,
            WaitTrace: self._wait_trace,
            FetchTrace: self._fetch_trace,
            DcgmProfPause: self._dcgm_prof_pause,
            DcgmProfResume: self._dcgm_prof_resume,
            Reload: self._reload,
        }

    def answer(self, body: bytes, origin: Callable[[], Origin]) -> bytes | Coroutine[Any, Any, Answer]:
        """The encoded reply, or what will give it. `origin` is asked only when it matters. Never raises, whatever `body` is."""
        if len(body) >= LARGE_BODY_BYTES:
            return self._answer_large(body, origin)
        return self._answer(body, origin)

    async def _answer_large(self, body: bytes, origin: Callable[[], Origin]) -> Answer:
        await self._turns.take()
        answer = self._answer(body, origin)
        return answer if isinstance(answer, bytes) else await answer

    def _answer(self, body: bytes, origin: Callable[[], Origin]) -> bytes | Coroutine[Any, Any, Answer]:
        try:
            request = decode(body)
            kind = type(request)
            if kind is GetStatus and not request.verbose:  # type: ignore[union-attr] # the type was just looked at
                return self._get_status(request)  # type: ignore[arg-type]
            try:
                where = origin()
            except OSError:
                # It was reset meanwhile: nobody will read this.
                return failed("disconnected", "the connection is gone")
            return self._admit(request, where)
        except Exception as error:  # noqa: BLE001 - the boundary of a request: counted, logged and answered
            return self._failed(error)

    def _admit(self, request: Request | Authenticated, origin: Origin) -> bytes | Coroutine[Any, Any, Answer]:
        if isinstance(request, Authenticated):
            return self._answer_signed(request, origin)
        if type(request) is GetVersion:
            return self._version
        at_once = self._at_once.get(type(request))
        if at_once and self._gate.admits_at_once(origin, needed(request)):
            return self._answer_in_turn(at_once, request)
        return self._answer_known(request, origin, token=None)

    async def _answer_in_turn(self, at_once: Callable[[Any], bytes], request: Request) -> bytes:
        try:
            await self._turns.take()
            return at_once(request)
        except Exception as error:  # noqa: BLE001 - the boundary of a request: counted, logged and answered
            return self._failed(error)

    async def _answer_signed(self, signed: Authenticated, origin: Origin) -> Answer:
        try:
            token = await self._gate.check(signed, origin)
            request = decode(signed.request.encode("utf-8", "replace"))
        except Exception as error:  # noqa: BLE001 - the boundary of a request: counted, logged and answered
            return self._failed(error)
        if isinstance(request, Authenticated):
            return failed("bad_request", "a signed request cannot hold another one")
        return await self._answer_known(request, origin, token)

    async def _answer_known(self, request: Request, origin: Origin, token: str | None) -> Answer:
        """The answer to a caller whose role is looked up first."""
        role, function = needed(request), str(request.__struct_config__.tag)
        try:
            caller = await self._gate.caller(origin, token)
            try:
                self._gate.require(caller, role, origin, function)
                if at_once := self._at_once.get(type(request)):
                    return await self._answer_in_turn(at_once, request)
                answer = await self._later[type(request)](request, caller)
            except RequestError as error:
                self._audit.refused(role, function, caller, request, error)
                if error.code == "forbidden":
                    self._gate.refusals.add(origin, function, error, caller.uid)
                raise
        except Exception as error:  # noqa: BLE001 - the boundary of a request: counted, logged and answered
            return self._failed(error)
        self._audit.done(role, function, caller, request, answer if isinstance(answer, bytes) else answer.trace)
        return answer

    def _failed(self, error: Exception) -> bytes:
        match error:
            case RequestError():
                return failed(error.code, error.sentence)
            case DynologError():
                return failed("error", str(error))
            case _:
                self.internal_errors += 1
                log.error("rpc: a request raised %s", type(error).__name__, exc_info=error)
                return failed(
                    "internal", f"the daemon failed on this request ({type(error).__name__}): its log says more"
                )

    # --- functions -----------------------------------------------------------------------------------------------------

    def _get_status(self, request: GetStatus) -> bytes:
        status = self._services.status.health()
        if not (request.verbose or request.time):
            return self._plain[1 if status else 0]
        daemon = self._services.status.describe() if request.verbose else None
        return encode_json(
            StatusReply(
                status=status,
                wall_ns=self._clock.wall_ns(),
                gpu_paused_until_wall_ns=self._services.gpus.status().paused_until_wall_ns,
                recent_troubles=len(self._services.status.recent()),
                daemon=daemon,
            )
        )

    def _list_processes(self, request: ListProcesses) -> bytes:
        wanted = frozenset(request.pids) - {0}
        # A trainer's step is not listed, so it cannot be asked for either.
        job = parse_job(request.job.partition(".")[0]) if request.job.strip() else None
        trainers = tuple(
            one
            for one in self._services.traces.trainers()
            if (job is None or job.matches(identity_of(one.job, one.job_id)))
            and (not wanted or one.pid in wanted or one.host_pid in wanted)
        )
        ipc_enabled = self._services.traces.ipc_enabled
        return encode_json(ProcessesReply(ipc_enabled=ipc_enabled, trainers=trainers, wall_ns=self._clock.wall_ns()))

    def _get_trace(self, request: GetTrace) -> bytes:
        found = self._services.traces.progress(request.request_id)
        if request.group_id:
            found = tuple(progress for progress in found if progress.group_id == request.group_id)
        return encode_json(TraceProgressReply(requests=found))

    def _get_host_samples(self, request: GetHostSamples) -> bytes:
        begin_ns, end_ns = request.begin_wall_ns, request.end_wall_ns or self._clock.wall_ns()
        if request.request_id:
            captures = self._services.traces.progress(request.request_id)[0].captures
            steps = [step.wall_ns for capture in captures for step in capture.history]
            if all(capture.state.is_final for capture in captures):
                end_ns = min(end_ns, max(steps, default=0))
            begin_ns = max(begin_ns, min(steps, default=0))
        page = self._services.host.page(begin_ns, end_ns)
        return encode_json(HostSamplesReply(blocks=page.blocks, next_wall_ns=page.next_wall_ns))

    def _get_metrics(self, request: GetMetrics) -> bytes:
        records = self._services.metrics.latest(request.source)
        catalogue = self._services.metrics.catalogue
        units: dict[str, str] = {}
        for record in records:
            for key in record.values:
                if key not in units and (series := catalogue.resolve(key)):
                    units[key] = series.metric.unit
        return encode_json(MetricsReply(records=records, units=units, wall_ns=self._clock.wall_ns()))

    def _list_metrics(self, _: ListMetrics) -> bytes:
        return encode_json(CatalogueReply(metrics=tuple(self._services.metrics.catalogue)))

    def _get_gpus(self, _: GetGpus) -> bytes:
        gpus = self._services.gpus
        return encode_json(GpusReply(gpu=gpus.status(), devices=tuple(gpus.devices()), wall_ns=self._clock.wall_ns()))

    async def _set_kinet_on_demand_request(self, request: SetKinetOnDemandRequest, caller: Caller) -> bytes:
        who = whose(caller)
        self._tracing.take(who)
        try:
            await self._turns.take()
            return encode_json(trace_reply(await self._services.traces.request_traces(trace_request(request), caller)))
        finally:
            self._tracing.give(who)

    async def _wait_trace(self, request: WaitTrace, caller: Caller) -> bytes:
        timeout_s = min(max(request.timeout_s, 0.0), MAX_WAIT_S)
        who = whose(caller)
        self._waits.take(who)
        try:
            progress = await self._services.traces.wait(request.request_id, request.seen_version, timeout_s)
        finally:
            self._waits.give(who)
        return encode_json(TraceProgressReply(requests=(progress,)))

    async def _fetch_trace(self, request: FetchTrace, caller: Caller) -> Fetch:
        if request.offset < 0:
            raise RequestError("bad_request", f"the offset is {request.offset}: it must not be negative")
        who = whose(caller)
        self._fetches.take(who)

        def give_back() -> None:
            self._fetches.give(who)

        opening = asyncio.ensure_future(self._services.traces.open_written(request.capture_id, caller))
        try:
            trace = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The client left while the file was being opened, which may hang: nobody else would close it, and until then it takes a thread.
            opening.add_done_callback(_close_unwanted)
            opening.add_done_callback(lambda _: give_back())
            raise
        except BaseException:
            give_back()
            raise
        return Fetch(trace, request.offset, give_back)

    async def _dcgm_prof_pause(self, request: DcgmProfPause, _: Caller) -> bytes:
        if not 0 < request.duration_s <= MAX_PAUSE_S:
            raise RequestError("bad_request", f"duration_s is {request.duration_s}: it must be 1 to {MAX_PAUSE_S}")
        return encode_json(BoolReply(status=await self._services.gpus.pause(request.duration_s)))

    async def _dcgm_prof_resume(self, _request: DcgmProfResume, _caller: Caller) -> bytes:
        return encode_json(BoolReply(status=await self._services.gpus.resume()))

    async def _reload(self, _request: Reload, _caller: Caller) -> bytes:
        report = await self._services.reload.reload()
        return encode_json(ReloadReply(**msgspec.structs.asdict(report)))


def _close_unwanted(opening: asyncio.Future[WrittenTrace]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        os.close(opening.result().fd)
