"""Scripted services behind the RPC: a test sets what they answer and looks at what they were asked."""

import asyncio
import hashlib
import os

from dynolog.model.capture import CaptureInfo, CaptureState
from dynolog.model.errors import RequestError
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.model.host_samples import SamplePage
from dynolog.model.metric import Catalogue, Kind, Metric
from dynolog.model.record import Record
from dynolog.model.status import DaemonStatus, IpcStatus, RecentTrouble, SelfStatus
from dynolog.model.trace_request import Caller, RequestProgress, TraceOutcome, TraceRequest
from dynolog.model.trainer import TrainerInfo, TrainerState
from dynolog.rpc.services import Services, WrittenTrace

METRICS = (
    Metric(name="cpu_u", kind=Kind.RATIO, unit="%", description="Share of CPU time: user mode"),
    Metric(name="uptime", kind=Kind.GAUGE, unit="s", description="Time since boot"),
)


def trainer(pid: int = 4242, **changes: object) -> TrainerInfo:
    """A trainer of root, idle; any field can be changed."""
    fields: dict[str, object] = {
        "pid": pid,
        "host_pid": pid,
        "uid": 0,
        "job_id": 0,
        "job": "",
        "name": "python",
        "command": "python train.py",
        "state": TrainerState.IDLE,
        "age_s": 12.5,
        "last_poll_age_s": 1.5,
        "polls": 3,
    }
    return TrainerInfo(**(fields | changes))  # type: ignore[arg-type] # fields are checked by the tests that use them


def capture(pid: int = 4242, **changes: object) -> CaptureInfo:
    """A pending capture of request `r1`; any field can be changed."""
    fields: dict[str, object] = {
        "id": f"c{pid}",
        "request_id": "r1",
        "pid": pid,
        "host_pid": pid,
        "uid": 0,
        "state": CaptureState.PENDING,
        "path": f"/tmp/t_{pid}.json",
    }
    return CaptureInfo(**(fields | changes))  # type: ignore[arg-type] # fields are checked by the tests that use them


class FakeTraceService:
    """Answers `outcome` (or raises it), keeps requests; `publish` moves a request on and wakes its waiters."""

    def __init__(self) -> None:
        self.ipc_enabled = True
        self.outcome: TraceOutcome | Exception = TraceOutcome(no_match_code="no_trainer_registered")
        self.registered: tuple[TrainerInfo, ...] = ()
        self.requests: list[tuple[TraceRequest, Caller]] = []
        self.fetches: list[tuple[str, Caller]] = []
        self.files: dict[str, str] = {}
        self.waiting = 0
        self._progress: dict[str, RequestProgress] = {}
        self._changed: dict[str, asyncio.Event] = {}

    async def request_traces(self, request: TraceRequest, caller: Caller) -> TraceOutcome:
        self.requests.append((request, caller))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def trainers(self) -> tuple[TrainerInfo, ...]:
        return self.registered

    def publish(self, *captures: CaptureInfo, request_id: str = "r1", group_id: str = "") -> None:
        """The captures of a request change to these. Call it on the server's loop, or before the server starts."""
        before = self._progress.get(request_id)
        self._progress[request_id] = RequestProgress(
            request_id=request_id,
            version=before.version + 1 if before else 0,
            done=all(one.state.is_final for one in captures),
            captures=captures,
            group_id=group_id,
        )
        if event := self._changed.pop(request_id, None):
            event.set()

    def progress(self, request_id: str) -> tuple[RequestProgress, ...]:
        if not request_id:
            return tuple(self._progress.values())
        try:
            return (self._progress[request_id],)
        except KeyError:
            raise RequestError("not_found", f"no request {request_id} is remembered") from None

    async def wait(self, request_id: str, seen_version: int, timeout_s: float) -> RequestProgress:
        (now,) = self.progress(request_id)
        if now.done or now.version > seen_version:
            return now
        event = self._changed.setdefault(request_id, asyncio.Event())
        self.waiting += 1
        try:
            async with asyncio.timeout(timeout_s):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            self.waiting -= 1
        return self.progress(request_id)[0]

    async def open_written(self, capture_id: str, caller: Caller) -> WrittenTrace:
        self.fetches.append((capture_id, caller))
        path = self.files.get(capture_id)
        if path is None:
            raise RequestError("not_found", f"no capture {capture_id} is remembered")
        return await asyncio.to_thread(_open_written, capture_id, path)


def _open_written(capture_id: str, path: str) -> WrittenTrace:
    with open(path, "rb") as file:
        content = file.read()
    return WrittenTrace(
        capture=capture(id=capture_id, path=path, state=CaptureState.WRITTEN),
        fd=os.open(path, os.O_RDONLY | os.O_CLOEXEC),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


class FakeMetricsService:
    """Two metrics and the records that a test sets."""

    def __init__(self) -> None:
        self.catalogue = Catalogue(METRICS)
        self.records: tuple[Record, ...] = (
            Record(wall_ns=1_700_000_000_000_000_000, source="kernel", values={"cpu_u": 12.5, "uptime": 99}),
        )

    def latest(self, source: str = "") -> tuple[Record, ...]:
        return tuple(record for record in self.records if source in ("", record.source))


class FakeStatusService:
    """A healthy daemon."""

    def __init__(self) -> None:
        self.status = 1
        self.daemon = DaemonStatus(
            version="0.0.0",
            hostname="node1",
            wall_ns=1_700_000_000_000_000_000,
            own=SelfStatus(
                pid=77, cpu_pct=0.1, cpu_pct_1m=0.2, rss_bytes=20 << 20, threads=4, open_files=30, uptime_s=61.0
            ),
            ipc=IpcStatus(enabled=True, addresses=("@dynolog",)),
        )

    def health(self) -> int:
        return self.status

    def recent(self) -> tuple[RecentTrouble, ...]:
        return self.daemon.recent

    def describe(self) -> DaemonStatus:
        return self.daemon


class FakeGpuService:
    """Devices that a test sets, and profiling that can be paused; keeps what was asked."""

    def __init__(self) -> None:
        self.source = GpuStatus(enabled=False)
        self.listed: tuple[GpuDevice, ...] = ()
        self.answer = False
        self.pauses: list[float] = []

    def status(self) -> GpuStatus:
        return self.source

    def devices(self) -> tuple[GpuDevice, ...]:
        return self.listed

    async def pause(self, duration_s: float) -> bool:
        self.pauses.append(duration_s)
        return self.answer

    async def resume(self) -> bool:
        self.pauses.append(0)
        return self.answer


class FakeHostSamples:
    """Pages that a test sets, by the time that they begin at; remembers what was asked."""

    def __init__(self) -> None:
        self.pages: dict[int, SamplePage] = {}
        self.asked: list[tuple[int, int]] = []

    def page(self, begin_wall_ns: int, end_wall_ns: int) -> SamplePage:
        self.asked.append((begin_wall_ns, end_wall_ns))
        return self.pages.get(begin_wall_ns, SamplePage())


class FakeServices:
    """The fakes, and the Services made of them."""

    def __init__(self) -> None:
        self.traces = FakeTraceService()
        self.metrics = FakeMetricsService()
        self.status = FakeStatusService()
        self.gpus = FakeGpuService()
        self.host = FakeHostSamples()
        self.services = Services(
            traces=self.traces, metrics=self.metrics, status=self.status, gpus=self.gpus, host=self.host
        )
