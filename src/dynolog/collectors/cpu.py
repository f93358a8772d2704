"""CPU time by mode, of the host, of each NUMA node and (with --per_cpu) of each CPU."""

import operator
import os
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import cast

import msgspec

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.flag import Flag
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.proc_stat import COLUMNS, NO_CPUS, CpuTable, CpuTimes, ProcStat, ProcStatReader, parse_cpus
from dynolog.sources.topology import cpus_of_nodes

MS_PER_TICK = 1000 / os.sysconf("SC_CLK_TCK")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# Columns of /proc/stat. Guest times are already inside user and nice, so they are not part of the total.
_USER, _NICE, _SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _STEAL, _GUEST, _GUEST_NICE = range(10)
_IN_TOTAL = 8
_SHARES = (
    ("cpu_u", _USER),
    ("cpu_s", _SYSTEM),
    ("cpu_i", _IDLE),
    ("cpu_guest", _GUEST),
    ("cpu_guest_nice", _GUEST_NICE),
)
_TIMES = (
    ("cpu_u_ms", _USER),
    ("cpu_s_ms", _SYSTEM),
    ("cpu_n_ms", _NICE),
    ("cpu_w_ms", _IOWAIT),
    ("cpu_x_ms", _IRQ),
    ("cpu_y_ms", _SOFTIRQ),
    ("cpu_z_ms", _STEAL),
    ("cpu_guest_ms", _GUEST),
    ("cpu_guest_nice_ms", _GUEST_NICE),
)
_NAMES = {
    "cpu_u": "user mode, guests included",
    "cpu_s": "kernel mode",
    "cpu_i": "idle, not waiting for I/O",
    "cpu_guest": "running guests (inside user)",
    "cpu_guest_nice": "running niced guests (inside nice)",
    "cpu_util": "anything but idle",
}
_TIME_NAMES = ("user", "system", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")

METRICS = (
    *(
        Metric(name=name, kind=Kind.RATIO, unit="%", description=f"Share of CPU time of the host: {what}")
        for name, what in _NAMES.items()
    ),
    *(
        Metric(
            name=name, kind=Kind.DELTA, unit="ms", description=f"CPU time of the host in mode {mode}, all CPUs together"
        )
        for (name, _), mode in zip(_TIMES, _TIME_NAMES, strict=True)
    ),
    *(
        Metric(
            name=name,
            scope=scope,
            kind=Kind.RATIO,
            unit="%",
            description=f"Share of CPU time of {what}: {_NAMES[name]}",
        )
        for scope, what in ((Scope.NODE, "a NUMA node"), (Scope.CPU, "a CPU (--per_cpu)"))
        for name in ("cpu_u", "cpu_s", "cpu_i")
    ),
    Metric(
        name="cpu_util",
        scope=Scope.CPU,
        kind=Kind.RATIO,
        unit="%",
        description="Share of CPU time of a CPU (--per_cpu): not idle",
    ),
)
_KEYS = {(metric.name, metric.scope): metric for metric in METRICS}
PER_CPU = Flag(
    name="per_cpu",
    default=False,
    help="give CPU shares and other CPU detail for each CPU",
    section="collectors",
    live=True,
)


class CpuSnapshot(msgspec.Struct, frozen=True):
    """One reading, the topology at that time, and the single CPUs where node or CPU values are wanted."""

    stat: ProcStat
    nodes: dict[int, tuple[int, ...]]
    cpus: CpuTable


class CpuDeltas(msgspec.Struct, frozen=True):
    """Growth of the columns of single CPUs, laid out as in CpuTable; None where it cannot be known (never when `complete`)."""

    ids: list[int]
    ticks: Sequence[int | None]
    complete: bool


def _bounded(delta: int, limit: float) -> int | None:
    if delta > limit or delta < -TICKS_PER_S:
        return None
    return max(delta, 0)


def tick_deltas(before: CpuTimes, after: CpuTimes, limit: float) -> list[int | None]:
    """Growth of each column in ticks; None where it cannot be known.

    The kernel lets idle and iowait go back a little: that is no growth, so 0. A column that grew by more than `limit`
    ticks, or went back by more than a second of one CPU, was reset or wrapped: unknown.
    """
    return [_bounded(new - old, limit) for old, new in zip(before, after, strict=True)]


def cpu_deltas(before: CpuTable, after: CpuTable, limit: float) -> CpuDeltas:
    """`tick_deltas` of all CPUs that are in both tables, by id."""
    if before.ids != after.ids:
        common = set(before.ids) & set(after.ids)
        before, after = _only(before, common), _only(after, common)
    grown = list(map(operator.sub, after.ticks, before.ticks))
    if not grown or (min(grown) >= 0 and max(grown) <= limit):
        return CpuDeltas(after.ids, grown, complete=True)
    return CpuDeltas(after.ids, [_bounded(ticks, limit) for ticks in grown], complete=False)


def _only(table: CpuTable, wanted: set[int]) -> CpuTable:
    rows = sorted((cpu, row) for row, cpu in enumerate(table.ids) if cpu in wanted)
    ticks = [tick for _, row in rows for tick in table.ticks[row * COLUMNS : (row + 1) * COLUMNS]]
    return CpuTable([cpu for cpu, _ in rows], ticks)


def shares(grown: Sequence[int | None]) -> tuple[float, dict[int, float]] | None:
    """Total ticks, and the percentage of each known column; None when no time has passed."""
    total = sum(ticks or 0 for ticks in grown[:_IN_TOTAL])
    if total <= 0:
        return None
    return total, {column: 100 * ticks / total for column, ticks in enumerate(grown) if ticks is not None}


class CpuCollector:
    """Shares and times of CPU modes from two readings of `/proc/stat`."""

    # Topology changes only when memory or CPUs are hot-plugged.
    NODES_EVERY = 60

    def __init__(self, context: Context) -> None:
        self._reader = ProcStatReader(context.host)
        self._host = context.host
        self._settings = context.settings
        self._nodes: dict[int, tuple[int, ...]] = {}
        self._rounds = 0

    def read(self) -> CpuSnapshot:
        """One reading; the topology is looked at every sixtieth time, single CPUs only when somebody wants them."""
        if self._rounds % self.NODES_EVERY == 0:
            self._nodes = cpus_of_nodes(self._host)
        self._rounds += 1
        stat = self._reader.read()
        wanted = len(self._nodes) > 1 or self._settings.on("per_cpu")
        return CpuSnapshot(stat, self._nodes, parse_cpus(stat.cpu_lines) if wanted else NO_CPUS)

    def compute(self, before: CpuSnapshot, after: CpuSnapshot, elapsed_s: float) -> Values:
        """Host values, node shares when there is more than one node, CPU shares with --per_cpu."""
        old, new = before.stat, after.stat
        cpu_limit = elapsed_s * TICKS_PER_S * 1.1 + 2
        grown = tick_deltas(old.total, new.total, cpu_limit * max(new.cpu_count, 1))
        values: Values = {}
        for name, column in _TIMES:
            ticks = grown[column]
            if ticks is not None:
                values[name] = round(ticks * MS_PER_TICK)
        if host := shares(grown):
            for name, column in _SHARES:
                if column in host[1]:
                    values[name] = host[1][column]
            if _IDLE in host[1]:
                values["cpu_util"] = 100 - host[1][_IDLE]
        if before.cpus.ids and after.cpus.ids:
            cpus = cpu_deltas(before.cpus, after.cpus, cpu_limit)
            if len(after.nodes) > 1:
                _add_nodes(values, after.nodes, cpus)
            if self._settings.on("per_cpu"):
                _add_cpus(values, cpus)
        return values


def _add_nodes(values: Values, nodes: dict[int, tuple[int, ...]], cpus: CpuDeltas) -> None:
    columns = [cpus.ticks[column::COLUMNS] for column in range(_IN_TOTAL)]
    known = set(cpus.ids)
    if not cpus.complete:
        # A CPU with a column that is not known would tilt its node's shares: it is left out whole.
        known = {cpu for cpu, *row in zip(cpus.ids, *columns, strict=True) if None not in row}
    for node, members in nodes.items():
        here = list(map(known.intersection(members).__contains__, cpus.ids))
        sums = [sum(cast("Iterator[int]", compress(column, here))) for column in columns]
        if node_shares := shares(sums):
            for name, column in _SHARES[:3]:
                values[_KEYS[name, Scope.NODE].key(node)] = node_shares[1][column]


def _add_cpus(values: Values, cpus: CpuDeltas) -> None:
    for row, cpu in enumerate(cpus.ids):
        if cpu_shares := shares(cpus.ticks[row * COLUMNS : (row + 1) * COLUMNS]):
            for name, column in _SHARES[:3]:
                if column in cpu_shares[1]:
                    values[f"{name}.cpu{cpu}"] = cpu_shares[1][column]
            if _IDLE in cpu_shares[1]:
                values[f"cpu_util.cpu{cpu}"] = 100 - cpu_shares[1][_IDLE]


SPEC = CollectorSpec(
    name="cpu",
    summary="CPU time by mode",
    needs="/proc/stat",
    factory=CpuCollector,
    metrics=METRICS,
    flags=(PER_CPU,),
)
