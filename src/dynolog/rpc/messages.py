"""The messages of the RPC protocol, typed: one Struct a request, one a reply.

A frame is an int32 length in native byte order and that many bytes of UTF-8 JSON. The first six functions are the public
Dynolog's and must not change; `fetchTrace` alone answers with more than one frame (see FetchReply).
"""

from collections.abc import Mapping

import msgspec

from dynolog.model.capture import CaptureInfo
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.model.host_samples import SamplePage
from dynolog.model.metric import Metric
from dynolog.model.record import Record
from dynolog.model.reload import ReloadReport
from dynolog.model.status import DaemonStatus
from dynolog.model.trace_request import NotTraced, RequestProgress
from dynolog.model.trainer import TrainerInfo


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to anything that could not be done; old clients print it, ours tests `code`."""

    status: str = "failed"
    code: str = "error"
    error: str = ""


# --- functions of the public Dynolog -----------------------------------------------------------------------------------


class GetStatus(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="getStatus"):
    """Plain: exactly `{"status":1}`. `time` adds the daemon's clock and what `dyno status` shows beside it, `verbose` everything."""

    verbose: bool = False
    time: bool = False


class StatusReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`status` 1, or 0 while the GPU source fails; no defaults so that it is always there. `gpu_paused_until_wall_ns` is 0
    unless GPU profiling is paused. `recent_troubles` is how many things went wrong in the last hour.
    """

    status: int
    wall_ns: int = 0
    gpu_paused_until_wall_ns: int = 0
    recent_troubles: int = 0
    daemon: DaemonStatus | None = None


class GetVersion(msgspec.Struct, frozen=True, tag_field="fn", tag="getVersion"):
    """Asks for `{"version":"X.Y.Z"}`."""


class VersionReply(msgspec.Struct, frozen=True):
    """The daemon's version."""

    version: str


class SetKinetOnDemandRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="setKinetOnDemandRequest"):
    """A trace request (the spelling is the protocol's). The second half are ours; see model.trace_request."""

    config: str
    pids: list[int] = []
    job_id: int = 0
    process_limit: int = 1000
    job: str = ""
    names: list[str] = []
    ranks: list[int] = []
    include_launchers: bool = False
    dry_run: bool = False
    log_files: dict[int, str] = {}
    gpus: list[str] = []
    host_interval_ms: int = 0


class TraceReply(msgspec.Struct, frozen=True, kw_only=True):
    """The public Dynolog's five keys always; ours beside them."""

    processesMatched: list[int]  # noqa: N815 - the protocol's names
    eventProfilersTriggered: list[int]  # noqa: N815
    activityProfilersTriggered: list[int]  # noqa: N815
    eventProfilersBusy: int  # noqa: N815
    activityProfilersBusy: int  # noqa: N815
    request_id: str = ""
    captures: tuple[CaptureInfo, ...] = ()
    not_traced: tuple[NotTraced, ...] = ()
    no_match_code: str = ""
    no_match_reason: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    expected_s: float = 0.0


class DcgmProfPause(msgspec.Struct, frozen=True, tag_field="fn", tag="dcgmProfPause"):
    """Pause DCGM profiling for `duration_s` seconds."""

    duration_s: int = 300


class DcgmProfResume(msgspec.Struct, frozen=True, tag_field="fn", tag="dcgmProfResume"):
    """Resume DCGM profiling now."""


class BoolReply(msgspec.Struct, frozen=True):
    """`{"status": bool}`."""

    status: bool


# --- ours --------------------------------------------------------------------------------------------------------------


class ListProcesses(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="listProcesses"):
    """Asks for the trainers; `job` "" and `pids` [] mean all."""

    job: str = ""
    pids: list[int] = []


class ProcessesReply(msgspec.Struct, frozen=True, kw_only=True):
    """The trainers, and whether the IPC is on at all; `wall_ns` is the daemon's clock."""

    ipc_enabled: bool
    trainers: tuple[TrainerInfo, ...]
    wall_ns: int
    status: str = "ok"


class GetTrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="getTrace"):
    """Asks for the captures of a request; "" means all that the daemon remembers, or of these the ones of `group_id`."""

    request_id: str = ""
    group_id: str = ""


class WaitTrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="waitTrace"):
    """Like getTrace for one request, but answers when something changed after `seen_version`, or after `timeout_s` (at most 60)."""

    request_id: str
    seen_version: int = -1
    timeout_s: float = 30.0


class TraceProgressReply(msgspec.Struct, frozen=True, kw_only=True):
    """Captures of the requests asked for."""

    requests: tuple[RequestProgress, ...]
    status: str = "ok"


class FetchTrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="fetchTrace"):
    """Asks for the file of a written capture from byte `offset` on."""

    capture_id: str
    offset: int = 0


class FetchReply(msgspec.Struct, frozen=True, kw_only=True):
    """The first frame of a fetchTrace answer.

    Then follow frames (int32 length, raw bytes, at most `chunk_bytes` each) until `size_bytes - offset` bytes are sent, then a
    frame of length 0, then the close. A stream that ends before that frame is incomplete: ask again from where it stopped.
    """

    capture_id: str
    name: str
    size_bytes: int
    sha256: str
    offset: int
    chunk_bytes: int
    status: str = "ok"


class GetHostSamples(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="getHostSamples"):
    """Asks for what the host did while the captures of a request ran ("": at any time).

    From `begin_wall_ns` to `end_wall_ns` (Unix ns; 0: no bound). Only what was sampled because a request said `host_interval_ms` is there.
    """

    request_id: str = ""
    begin_wall_ns: int = 0
    end_wall_ns: int = 0


class HostSamplesReply(SamplePage, frozen=True, kw_only=True):
    """Samples, oldest first; with `next_wall_ns` there are more: ask again with that as `begin_wall_ns`."""

    status: str = "ok"


class GetMetrics(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="getMetrics"):
    """Asks for the latest record of each source; `source` "" means all."""

    source: str = ""


class MetricsReply(msgspec.Struct, frozen=True, kw_only=True):
    """Latest records; `units` maps each key in them to its UCUM unit, so that a view needs no catalogue."""

    records: tuple[Record, ...]
    units: Mapping[str, str]
    wall_ns: int
    status: str = "ok"


class ListMetrics(msgspec.Struct, frozen=True, tag_field="fn", tag="listMetrics"):
    """Asks for the catalogue."""


class CatalogueReply(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics this daemon can produce."""

    metrics: tuple[Metric, ...]
    status: str = "ok"


class GetGpus(msgspec.Struct, frozen=True, tag_field="fn", tag="getGpus"):
    """Asks for the GPUs, how they fare, and who uses them."""


class GpusReply(msgspec.Struct, frozen=True, kw_only=True):
    """The source of the devices, and the devices of its last report; MIG instances follow their device."""

    gpu: GpuStatus
    devices: tuple[GpuDevice, ...]
    wall_ns: int
    status: str = "ok"


class Reload(msgspec.Struct, frozen=True, tag_field="fn", tag="reload"):
    """Asks the daemon to do what it does on SIGHUP: read its flag files, rules and the rest again, and reopen its log."""


class ReloadReply(ReloadReport, frozen=True, kw_only=True):
    """What came of it; `ok` also when some of it could not be read: `errors` says what."""

    status: str = "ok"


class Authenticated(msgspec.Struct, frozen=True, kw_only=True, tag_field="fn", tag="authenticated"):
    """Another request, signed with the shared secret; see rpc.token for what `mac` covers. It cannot hold another signed one."""

    time_ms: int
    nonce: str
    mac: str
    request: str


Request = (
    GetStatus
    | GetVersion
    | SetKinetOnDemandRequest
    | DcgmProfPause
    | DcgmProfResume
    | ListProcesses
    | GetTrace
    | WaitTrace
    | FetchTrace
    | GetHostSamples
    | GetMetrics
    | ListMetrics
    | GetGpus
    | Reload
)
