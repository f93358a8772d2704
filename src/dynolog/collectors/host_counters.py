"""The few counters of a host that say what it did beside a GPU, for readings many times a second while a trace is recorded.

Only what the kernel has at hand is read: no driver is asked, but for the two byte counters of an RDMA port. Keys are those of the
counter tracks in traces (docs/analysis.md, "Host counters").
"""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from dynolog.collectors.cpu import TICKS_PER_S, shares, tick_deltas
from dynolog.collectors.spec import counter_delta
from dynolog.model.clock import Clock
from dynolog.model.errors import SourceUnavailable
from dynolog.sources import proc_stat
from dynolog.sources.diskstats import COLUMNS as DISK_COLUMNS
from dynolog.sources.diskstats import SECTOR_BYTES, Disk, DiskStatsReader
from dynolog.sources.host_files import HostFiles
from dynolog.sources.net_dev import COLUMNS as NIC_COLUMNS
from dynolog.sources.net_dev import NetDevReader, NicCounters
from dynolog.sources.pressure import PressureReader, Stall
from dynolog.sources.proc_stat import FIELDS, ProcStat
from dynolog.sources.rdma_bytes import RdmaBytesReader, Traffic

Reading = TypeVar("Reading")
Rates = dict[str, float]

_MODES = {
    "user": ("user", "nice"),
    "system": ("system",),
    "irq": ("irq", "softirq"),
    "iowait": ("iowait",),
    "steal": ("steal",),
    "idle": ("idle",),
}
_CPU_KEYS = {f"cpu_{mode}_pct": tuple(FIELDS.index(column) for column in columns) for mode, columns in _MODES.items()}
_RX, _TX = NIC_COLUMNS.index("rx_bytes"), NIC_COLUMNS.index("tx_bytes")
_READ, _WRITTEN = DISK_COLUMNS.index("read_sectors"), DISK_COLUMNS.index("write_sectors")
# Devices on top of others, whose bytes would count twice, and those in memory.
_NO_DISKS = ("loop", "ram", "zram", "dm-", "md", "drbd")
# Beside the sum of all devices, each by itself, unless there are more than anybody would look at.
_MOST_DEVICES = 16


class HostReading(msgspec.Struct, frozen=True, kw_only=True):
    """One reading, and when it began, by both clocks. None and {}: not to be had. `rdma_ns` is when the ports were read (monotonic)."""

    wall_ns: int
    monotonic_ns: int
    stat: ProcStat | None = None
    stalls: Mapping[str, Mapping[str, Stall]] = {}
    nics: Mapping[str, NicCounters] = {}
    disks: Mapping[str, Disk] = {}
    rdma: Mapping[str, Traffic] = {}
    rdma_ns: int = 0


class HostCounters:
    """Reads the sources, and makes rates of two readings. `missing` says which sources cannot be read and why; those are left alone."""

    def __init__(self, host: HostFiles, clock: Clock) -> None:
        self._clock = clock
        # Not the reader that collectors share: what it gives may be 10 ms old.
        self._stat = host.file("proc/stat")
        self._pressure = PressureReader(host)
        self._nics = NetDevReader(host)
        self._disks = DiskStatsReader(host)
        self._rdma = RdmaBytesReader(host)
        self._has_hardware = _HasHardware(host)
        self.missing: dict[str, str] = {}

    def read(self) -> HostReading:
        """One reading. The clocks are read first, the processors right after them."""
        wall_ns, monotonic_ns = self._clock.wall_ns(), self._clock.monotonic_ns()
        stat = self._try("/proc/stat", lambda: proc_stat.parse(self._stat.read()))
        stalls = self._try("/proc/pressure", self._pressure.read)
        nics = self._try("/proc/net/dev", self._nics.read)
        disks = self._try("/proc/diskstats", lambda: self._disks.read(False, _NO_DISKS))
        rdma_ns = self._clock.monotonic_ns()
        return HostReading(
            wall_ns=wall_ns,
            monotonic_ns=monotonic_ns,
            stat=stat,
            stalls=stalls or {},
            nics=nics or {},
            disks=disks or {},
            rdma=self._rdma.read(),
            rdma_ns=rdma_ns,
        )

    def _try(self, name: str, read: Callable[[], Reading]) -> Reading | None:
        if name in self.missing:
            return None
        try:
            return read()
        except (SourceUnavailable, OSError, ValueError) as error:
            self.missing[name] = str(error)
            return None

    def compute(self, before: HostReading, after: HostReading) -> Rates:
        """The counters of the time between two readings. What is no count of events (tasks, CPUs) is as it was at its begin."""
        elapsed_s = (after.monotonic_ns - before.monotonic_ns) / 1e9
        if elapsed_s <= 0:
            return {}
        rates = _cpu(before.stat, after.stat, elapsed_s)
        for resource in ("cpu", "io", "memory"):
            grown = counter_delta(_stalled_us(before, resource), _stalled_us(after, resource))
            if grown is not None:
                rates[f"pressure_{resource}_pct"] = round(min(grown / elapsed_s / 1e4, 100.0), 3)
        for direction, column in (("rx", _RX), ("tx", _TX)):
            found = self._nic_bytes(before.nics, after.nics, column)
            _add_devices(rates, f"nic_{direction}_bytes_per_s", found, elapsed_s)
        for action, column in (("read", _READ), ("write", _WRITTEN)):
            _add_devices(rates, f"disk_{action}_bytes_per_s", _disk_bytes(before.disks, after.disks, column), elapsed_s)
        between_s = (after.rdma_ns - before.rdma_ns) / 1e9
        for number, direction in enumerate(("rx", "tx")):
            found = {
                name: counter_delta(before.rdma[name][number], new[number])
                for name, new in after.rdma.items()
                if name in before.rdma and between_s > 0
            }
            _add_devices(rates, f"rdma_{direction}_bytes_per_s", found, between_s)
        return rates

    def _nic_bytes(
        self, before: Mapping[str, NicCounters], after: Mapping[str, NicCounters], column: int
    ) -> dict[str, int | None]:
        return {
            name: counter_delta(before[name][column], new[column])
            for name, new in after.items()
            if name in before and self._has_hardware[name]
        }


class _HasHardware(dict[str, bool]):
    """Whether a network interface is a device of its own, not one on top of others whose bytes would count twice; looked up once."""

    def __init__(self, host: HostFiles) -> None:
        super().__init__()
        self._host = host

    def __missing__(self, name: str) -> bool:
        self[name] = there = os.path.exists(self._host.path(f"sys/class/net/{name}/device"))
        return there


def _cpu(before: ProcStat | None, after: ProcStat | None, elapsed_s: float) -> Rates:
    if before is None or after is None:
        return {}
    rates: Rates = {"cpu_count": float(before.cpu_count)}
    if before.procs_running is not None:
        # The thread that reads is one of them.
        rates["run_queue"] = float(max(before.procs_running - 1, 0))
    limit = (elapsed_s * TICKS_PER_S * 1.1 + 2) * max(after.cpu_count, 1)
    if found := shares(tick_deltas(before.total, after.total, limit)):
        for key, columns in _CPU_KEYS.items():
            if all(column in found[1] for column in columns):
                rates[key] = round(sum(found[1][column] for column in columns), 3)
    return rates


def _stalled_us(reading: HostReading, resource: str) -> int | None:
    stall = reading.stalls.get(resource, {}).get("some")
    return stall.total_us if stall is not None else None


def _disk_bytes(before: Mapping[str, Disk], after: Mapping[str, Disk], column: int) -> dict[str, int | None]:
    """By disk; one that was replaced by another of its name is left out."""
    found: dict[str, int | None] = {}
    for name, new in after.items():
        if name in before and before[name].number == new.number:
            sectors = counter_delta(before[name].counters[column], new.counters[column])
            found[name] = None if sectors is None else sectors * SECTOR_BYTES
    return found


def _add_devices(rates: Rates, key: str, grown: Mapping[str, int | None], elapsed_s: float) -> None:
    """The sum of all devices, and each by itself. No sum where one is not known: it would be a part."""
    known = {name: float(round(value / elapsed_s)) for name, value in grown.items() if value is not None}
    if known and len(known) == len(grown):
        rates[key] = sum(known.values())
    if 1 < len(grown) <= _MOST_DEVICES:
        rates.update((f"{key}.{name}", value) for name, value in known.items())
