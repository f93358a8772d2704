"""What the RPC methods need from the rest of the daemon; the daemon room wires the real ones, tests wire fakes."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dynolog.model.capture import WrittenTrace as WrittenTrace  # noqa: PLC0414 - part of this Protocol, so named from here too
from dynolog.model.errors import RequestError
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.model.host_samples import SamplePage
from dynolog.model.metric import Catalogue
from dynolog.model.record import Record
from dynolog.model.reload import ReloadReport
from dynolog.model.status import DaemonStatus, RecentTrouble
from dynolog.model.trace_request import Caller, RequestProgress, TraceOutcome, TraceRequest
from dynolog.model.trainer import TrainerInfo


class TraceService(Protocol):
    """Requests, captures and trainers (profiling.service). Lives on the socket thread; awaits what may block."""

    @property
    def ipc_enabled(self) -> bool:
        """Whether trainers can reach this daemon at all."""
        ...

    async def request_traces(self, request: TraceRequest, caller: Caller) -> TraceOutcome:
        """Match, check and arm. Raises RequestError for a request that cannot be carried out at all."""
        ...

    def trainers(self) -> tuple[TrainerInfo, ...]:
        """All registered trainers."""
        ...

    def progress(self, request_id: str) -> tuple[RequestProgress, ...]:
        """One request's captures, or all that are remembered for "". Raises RequestError("not_found")."""
        ...

    async def wait(self, request_id: str, seen_version: int, timeout_s: float) -> RequestProgress:
        """Returns at the first change after `seen_version`, at once when done, or as it stands after `timeout_s`."""
        ...

    async def open_written(self, capture_id: str, caller: Caller) -> WrittenTrace:
        """Open the file of a written capture, beneath the trainer's root. Raises RequestError (not_found, not_written, forbidden)."""
        ...


class MetricsService(Protocol):
    """The latest record of each source and device (pipeline.latest)."""

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of this daemon."""
        ...

    def latest(self, source: str = "") -> tuple[Record, ...]:
        """Latest records, stale ones left out."""
        ...


class StatusService(Protocol):
    """What the daemon says of itself (daemon.status)."""

    def health(self) -> int:
        """1, or 0 while the GPU source fails."""
        ...

    def describe(self) -> DaemonStatus:
        """Everything."""
        ...

    def recent(self) -> Sequence[RecentTrouble]:
        """What went wrong in the last hour and stands nowhere else."""
        ...


class GpuService(Protocol):
    """The GPUs (daemon.gpus). Lives on the socket thread; awaits what may block."""

    def status(self) -> GpuStatus:
        """The source of all devices."""
        ...

    def devices(self) -> Sequence[GpuDevice]:
        """The devices of the last report."""
        ...

    async def pause(self, duration_s: float) -> bool:
        """Pause profiling for so long; False when there is none to pause."""
        ...

    async def resume(self) -> bool:
        """Resume profiling now; False when there is none to resume."""
        ...


class NoGpus:
    """For a server without GPU monitoring."""

    def status(self) -> GpuStatus:
        """It is off."""
        return GpuStatus(enabled=False)

    def devices(self) -> Sequence[GpuDevice]:
        """None."""
        return ()

    async def pause(self, duration_s: float) -> bool:  # noqa: ARG002 - the name is the Protocol's
        """There is none to pause."""
        return False

    async def resume(self) -> bool:
        """There is none to resume."""
        return False


class HostSampleService(Protocol):
    """What the host did beside traces (pipeline.host_burst)."""

    def page(self, begin_wall_ns: int, end_wall_ns: int) -> SamplePage:
        """Samples that reach into a time, Unix ns, as many as fit into one reply."""
        ...


class NoHostSamples:
    """For a server that samples nothing."""

    def page(self, begin_wall_ns: int, end_wall_ns: int) -> SamplePage:  # noqa: ARG002 - the names are the Protocol's
        """There are none."""
        return SamplePage()


class ReloadService(Protocol):
    """What SIGHUP does (daemon.life_cycle). Lives on the socket thread."""

    async def reload(self) -> ReloadReport:
        """Do it."""
        ...


class NoReload:
    """For a server without a daemon around it."""

    async def reload(self) -> ReloadReport:
        """It cannot."""
        raise RequestError("unavailable", "this server has nothing to reload")


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, as the methods get them."""

    traces: TraceService
    metrics: MetricsService
    status: StatusService
    gpus: GpuService = NoGpus()
    reload: ReloadService = NoReload()
    host: HostSampleService = NoHostSamples()
