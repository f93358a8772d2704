"""What a collector is: reading apart from computing, and one line of registration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from dynolog.model.flag import Flag, Settings
from dynolog.model.gpu import GpuReading
from dynolog.model.metric import Metric
from dynolog.model.status import CollectorStatus, ExporterStatus, IpcStatus
from dynolog.sources.gpu_source import GpuSource
from dynolog.sources.host_files import HostFiles

Snapshot = TypeVar("Snapshot")
Values = dict[str, int | float | str]


class DeviceValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one device, which make a record of their own.

    `subject` tells it from the other devices of its source and never changes while it is there (`0`, `0-gi1-ci0`); `labels` may. With
    a `reading`, those who use the device are looked up, and their labels come on top.
    """

    subject: str
    labels: Mapping[str, str]
    values: Values
    reading: GpuReading | None = None


class DeviceReport(Values):
    """Values of the host, as those of any collector, and beside them `devices`.

    `interval_ns` is the measured interval of the devices' values, where it is not that between the reads (0: it is). `age_ns` is how
    long before this round they were taken.
    """

    def __init__(
        self,
        values: Mapping[str, int | float | str],
        devices: Sequence[DeviceValues],
        *,
        interval_ns: int = 0,
        age_ns: int = 0,
    ) -> None:
        super().__init__(values)
        self.devices = tuple(devices)
        self.interval_ns = interval_ns
        self.age_ns = age_ns


class Notices(Protocol):
    """Where a collector says, once, what a person should know (`dyno status --verbose` keeps it)."""

    def say(self, key: str, sentence: str) -> None:
        """Say `sentence` once for each `key`; the same key with the same sentence again is silent."""
        ...


class Collector(Protocol[Snapshot]):
    """Reads one source, and turns two snapshots and the time between them into values.

    `read` does the I/O: it runs off the socket thread under a deadline, and raises SourceUnavailable when the whole source
    cannot be had; a single bad device, line or field costs only itself. `compute` is pure arithmetic: what cannot be known
    (reset, wrap, new or vanished device) is a missing key, never a 0 and never a guess.
    """

    def read(self) -> Snapshot:
        """One raw snapshot."""
        ...

    def compute(self, before: Snapshot, after: Snapshot, elapsed_s: float) -> Values:
        """Values of the interval from `before` to `after`, which took `elapsed_s` by the monotonic clock.

        A collector of devices gives a DeviceReport. One that has a `close` method is closed when it is switched off.
        """
        ...


class OwnCounters(Protocol):
    """What the rest of the daemon counts, for the collector that measures the daemon itself."""

    def collectors(self) -> Sequence[CollectorStatus]:
        """Each collector that is on."""
        ...

    def exporters(self) -> Sequence[ExporterStatus]:
        """Each exporter that is on."""
        ...

    def records(self) -> int | None:
        """Records made since the start; None when nobody counts."""
        ...

    def ipc(self) -> IpcStatus | None:
        """The counters of the IPC; None when it is off."""
        ...

    def log_lines_lost(self) -> int | None:
        """Lines of the daemon's log that could not be written; None when nobody counts."""
        ...


class NothingCounted:
    """For a collector that runs without a daemon around it."""

    def collectors(self) -> Sequence[CollectorStatus]:
        """None."""
        return ()

    def exporters(self) -> Sequence[ExporterStatus]:
        """None."""
        return ()

    def records(self) -> int | None:
        """Nobody counts."""
        return None

    def ipc(self) -> IpcStatus | None:
        """It is off."""
        return None

    def log_lines_lost(self) -> int | None:
        """Nobody counts."""
        return None


def declare_nothing(_metrics: Sequence[Metric]) -> None:
    """For a collector that runs without a daemon around it."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a collector is made from. `declare` takes metrics into the catalogue that only the running source can describe; `gpu` is the
    daemon's way to its accelerators (None: the collector makes its own).
    """

    host: HostFiles
    settings: Settings
    notices: Notices
    own: OwnCounters = NothingCounted()
    declare: Callable[[Sequence[Metric]], None] = declare_nothing
    gpu: GpuSource | None = None


class CollectorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The registration of a collector: the daemon derives its enable flag (`--enable_NAME_collector`) and its interval
    (`--NAME_interval_s`, 0 = the kernel monitor's) from the name, and the catalogue from `metrics`. A source that is slow or
    slow to change (sensors behind a bus) is never read more often than every `shortest_interval_s`. Where the public Dynolog
    has other names for the two flags, they are `own_enable_flag` and `own_interval_flag`; the derived names then mean the same.
    `device_source` is the source of the records of its devices, for a collector that gives a DeviceReport. `default_interval_s` is the
    default of its interval flag. One that `retries_itself` is read at every interval also while it fails, because a failing read of it
    costs nothing.
    """

    name: str
    summary: str
    needs: str
    factory: Callable[[Context], Collector[Any]]
    metrics: tuple[Metric, ...]
    flags: tuple[Flag, ...] = ()
    on_by_default: bool = True
    shortest_interval_s: float = 0.0
    own_enable_flag: str = ""
    own_interval_flag: str = ""
    device_source: str = ""
    retries_itself: bool = False
    default_interval_s: float = 0.0

    @property
    def enable_flag(self) -> str:
        """The flag that switches the collector."""
        return self.own_enable_flag or f"enable_{self.name}_collector"

    @property
    def interval_flag(self) -> str:
        """The flag that sets its interval."""
        return self.own_interval_flag or f"{self.name}_interval_s"


def counter_delta(before: int | None, after: int | None) -> int | None:
    """The growth of a counter, or None when it cannot be known: a side is missing, or it went down (reset or wrap)."""
    if before is None or after is None or after < before:
        return None
    return after - before


def put(values: Values, key: str, value: float | None) -> None:
    """Add a value unless it is missing."""
    if value is not None:
        values[key] = value


def deltas(before: Mapping[str, int], after: Mapping[str, int], keys: Mapping[str, str]) -> Values:
    """Counter deltas of the fields named by `keys` (field → record key) that both snapshots have and that did not go down."""
    values: Values = {}
    for field, key in keys.items():
        new = after.get(field)
        old = before.get(field)
        if new is not None and old is not None and new >= old:
            values[key] = new - old
    return values
