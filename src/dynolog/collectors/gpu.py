"""GPUs: one record for each device and MIG instance, whoever makes them."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from dynolog.collectors.gpu_contradiction import Contradictions, Identity
from dynolog.collectors.gpu_devices import XidLog, device_values
from dynolog.collectors.spec import CollectorSpec, Context, DeviceReport, Values
from dynolog.model.clock import SystemClock
from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag, Settings
from dynolog.model.gpu import GpuReading
from dynolog.model.gpu_metrics import GPU_METRICS, HOST_GPU_METRICS
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_registry import BACKENDS, is_known
from dynolog.sources.gpu_source import GpuSource
from dynolog.sources.gpu_wire import Sampled

# How long a round may wait for the child: a share of the interval of the collectors that share the round.
_WAIT_SHARE = 0.25
_LEAST_WAIT_S, _MOST_WAIT_S = 0.05, 1.0
_DEFAULT_INTERVAL_S = 10.0
_DCGM = "dcgm"
_FIELD = re.compile(r"\w+")
_DEFAULT_FIELDS = "50,54,100,155,204,1001,1002,1003,1004,1005,1006,1007,1008,1009,1010,1011,1012"

INTERVAL = Flag(
    name="dcgm_reporting_interval_s",
    aliases=("dcgm_report_interval_s", "gpu_interval_s"),
    default=_DEFAULT_INTERVAL_S,
    minimum=0.0,
    maximum=86400.0,
    help="seconds between readings of the GPUs; 0: as often as reports are made",
    section="gpu",
)
BACKEND = Flag(
    name="gpu_backend",
    default="auto",
    help=f"what reads the GPUs: {', '.join(entry.name for entry in BACKENDS)}, none, or MODULE:CLASS of a backend of your own; "
    "auto takes the first of them that works",
    section="gpu",
)
DEADLINE = Flag(
    name="gpu_deadline_s",
    default=10.0,
    minimum=0.1,
    maximum=600.0,
    help="seconds after which the process with the GPU's library is killed because a call has not returned; opening may take "
    "six times that",
    section="gpu",
)
LIBRARY = Flag(
    name="dcgm_lib_path", default="/lib64/libdcgm.so", help="where libdcgm is looked for first", section="gpu"
)
FIELDS = Flag(
    name="dcgm_fields",
    default=_DEFAULT_FIELDS,
    help="fields that DCGM is asked for, by id or name, with commas between",
    section="gpu",
)
ADDRESS = Flag(
    name="dcgm_standalone_address",
    default="auto",
    help="the DCGM host engine to join, HOST:PORT or the path of its unix socket; auto: one that answers on localhost:5555, else an "
    "engine of our own; empty: always one of our own",
    section="gpu",
)


def options_of(settings: Settings, root_dir: str, interval_s: float) -> GpuOptions:
    """What the child is told. Raises FlagError."""
    backend = settings.text(BACKEND.name)
    fields = settings.names(FIELDS.name)
    if bad := [field for field in fields if not _FIELD.fullmatch(field)]:
        raise FlagError(f"--{FIELDS.name}: {bad[0]!r} is no field: give ids (203) or names (DCGM_FI_DEV_GPU_UTIL)")
    if not is_known(backend):
        names = ", ".join(("auto", *(entry.name for entry in BACKENDS), "none"))
        raise FlagError(f"--gpu_backend={backend}: it must be one of {names}, or MODULE:CLASS")
    return GpuOptions(
        backend=backend,
        interval_s=interval_s,
        root_dir=root_dir,
        dcgm_lib_path=settings.text(LIBRARY.name),
        dcgm_fields=fields,
        dcgm_fields_given=settings.is_given(FIELDS.name),
        dcgm_standalone_address=settings.text(ADDRESS.name),
    )


def source_of(settings: Settings, root_dir: str, kernel_interval_s: float) -> GpuSource:
    """The source that the flags describe. Raises FlagError."""
    interval_s = settings.number(INTERVAL.name) or kernel_interval_s
    shortest_s = min(interval_s, kernel_interval_s)
    return GpuSource(
        options_of(settings, root_dir, interval_s),
        settings.number(DEADLINE.name),
        SystemClock(),
        wait_s=min(max(shortest_s * _WAIT_SHARE, _LEAST_WAIT_S), _MOST_WAIT_S),
    )


class GpuSnapshot(msgspec.Struct, frozen=True):
    """A sample (None: none has come yet) with its readings by identity, when it was taken, and what was seen until then."""

    sampled: Sampled | None
    readings: Mapping[Identity, GpuReading]
    xids: XidLog
    contradictions: Contradictions
    read_ns: int

    def comparable(self, backend: str) -> Mapping[Identity, GpuReading]:
        """The readings, when they are of that backend: the counters of another library began elsewhere."""
        return self.readings if self.sampled is not None and self.sampled.sample.backend == backend else {}


_NOTHING = GpuSnapshot(None, {}, XidLog(), Contradictions(), 0)


class GpuCollector:
    """Reads through the daemon's GpuSource, so that a driver that hangs costs the others nothing."""

    def __init__(self, context: Context) -> None:
        self._source = context.gpu or source_of(context.settings, context.host.root, _DEFAULT_INTERVAL_S)
        self._declare = context.declare
        self._notices = context.notices
        self._newest = _NOTHING
        self._said: frozenset[str] = frozenset()

    def read(self) -> GpuSnapshot:
        """The newest sample; the same snapshot again when there is no newer one."""
        clock = self._source.clock
        read_ns = clock.monotonic_ns()
        sampled = self._source.read()
        if sampled is not None:
            sample = sampled.sample
            if sample.declared:
                self._declare(sample.declared)
            self._say({**dict(sample.notices), **_down(sample.readings)})
            readings = {reading.identity: reading for reading in sample.readings}
            xids = self._newest.xids.after(self._newest.comparable(sample.backend), readings, clock.wall_ns() / 1e9)
            contradictions = self._newest.contradictions.after(sample.readings, sampled.taken_ns)
            self._newest = GpuSnapshot(sampled, readings, xids, contradictions, read_ns)
        return self._newest

    def compute(self, before: GpuSnapshot, after: GpuSnapshot, _elapsed_s: float) -> Values:
        """A record for each device that was read since `before`."""
        if after.sampled is None or after is before:
            return {}
        sample, taken_ns = after.sampled.sample, after.sampled.taken_ns
        known = before.comparable(sample.backend)
        devices = []
        for reading in sample.readings:
            device = device_values(
                known.get(reading.identity), reading, after.xids.of(reading.identity), after.contradictions
            )
            if sample.backend == _DCGM and reading.is_up:
                device.values.setdefault("dcgm_error", int(sample.blank_values > 0))
            devices.append(device)
        since_ns = before.sampled.taken_ns if before.sampled is not None else 0
        return DeviceReport(
            {
                "gpus_expected": sample.expected,
                "gpus_seen": sample.seen,
                "gpu_sample_age_seconds": (after.read_ns - min(taken_ns, after.read_ns)) / 1e9 + sample.age_s,
            },
            devices,
            interval_ns=taken_ns - since_ns if since_ns else 0,
            age_ns=max(after.read_ns - taken_ns, 0),
        )

    def _say(self, notices: Mapping[str, str]) -> None:
        for key in self._said - notices.keys():
            self._notices.say(key, "")  # it is over
        for key, sentence in notices.items():
            self._notices.say(key, sentence)
        self._said = frozenset(notices)

    def close(self) -> None:
        """Let go of the child."""
        self._source.close()


def _down(readings: Iterable[GpuReading]) -> dict[str, str]:
    """A sentence for each whole device that does not answer."""
    said = {}
    for reading in readings:
        if not reading.is_up and reading.gpu_instance_id is None:
            who = f"GPU {reading.device} ({reading.uuid or 'uuid unknown'})"
            said[f"down {reading.device}"] = f"{who} is down: {reading.error or 'it does not answer'}"
    return said


SPEC = CollectorSpec(
    name="gpu",
    summary="GPUs: use, profiling counters, clocks, power, links, errors, per device and MIG instance",
    needs="DCGM or NVML (NVIDIA), amdgpu (AMD), xe or i915 (Intel)",
    factory=GpuCollector,
    metrics=(*GPU_METRICS, *HOST_GPU_METRICS),
    flags=(INTERVAL, BACKEND, DEADLINE, LIBRARY, FIELDS, ADDRESS),
    on_by_default=False,
    own_enable_flag="enable_gpu_monitor",
    own_interval_flag=INTERVAL.name,
    device_source="gpu",
    retries_itself=True,
)
