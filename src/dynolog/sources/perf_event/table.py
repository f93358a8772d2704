"""Readings of one group of events on many CPUs, by columns; and what was counted between two of them."""

import operator
from array import array
from collections.abc import Sequence

import msgspec

from dynolog.sources.perf_event.reading import parse_reading, read_bytes

# Words of a row before the first value: number of events, time enabled, time running.
_HEAD = 3


class Table(msgspec.Struct, frozen=True):
    """One row a CPU. `keys` are the kernel's numbers of the leaders: a group that was opened anew is another row.

    `enabled_ns`, `running_ns` and each of `counts` (one an event) are columns.
    """

    cpus: Sequence[int]
    keys: Sequence[int]
    enabled_ns: Sequence[int]
    running_ns: Sequence[int]
    counts: Sequence[Sequence[int]]


NOTHING = Table((), (), (), (), ())


class Growth(msgspec.Struct, frozen=True):
    """What was counted between two tables. Each of `counts` is a column over `cpus`, scaled by each row's own times.

    `enabled_ns` and `running_ns` are sums over all rows, also those that never had a counter; `lowest_ratio` is the smallest share of
    time in which a row counted (0: one had no counter at all), None when no row was enabled.
    """

    cpus: Sequence[int]
    enabled_ns: int
    running_ns: int
    lowest_ratio: float | None
    counts: Sequence[Sequence[float]]

    def totals(self) -> list[float]:
        """The sum over all CPUs of each event."""
        return [sum(column) for column in self.counts]


def parse_table(data: bytes, cpus: Sequence[int], ids: Sequence[tuple[int, ...]]) -> Table:
    """Rows as the kernel gives them, one behind the other, for the CPUs in that order; `ids` are those of each row's events.

    A row with other ids than that is put in order by them, or left out when one is missing.
    """
    events = len(ids[0]) if ids else 0
    stride = _HEAD + 2 * events
    words = array("Q", data)
    in_order = all(
        words[_HEAD + 1 + 2 * event :: stride].tolist() == [row[event] for row in ids] for event in range(events)
    )
    if not in_order or words[::stride].count(events) != len(cpus):
        return _parse_each(data, cpus, ids)
    return Table(
        cpus=cpus,
        keys=[row[0] for row in ids],
        enabled_ns=words[1::stride],
        running_ns=words[2::stride],
        counts=[words[_HEAD + 2 * event :: stride] for event in range(events)],
    )


def _parse_each(data: bytes, cpus: Sequence[int], ids: Sequence[tuple[int, ...]]) -> Table:
    size = read_bytes(len(ids[0]))
    rows = [
        (cpu, row_ids[0], reading)
        for row, (cpu, row_ids) in enumerate(zip(cpus, ids, strict=True))
        if (reading := parse_reading(data[row * size : (row + 1) * size], row_ids)) is not None
    ]
    if not rows:
        return NOTHING
    return Table(
        cpus=[cpu for cpu, _, _ in rows],
        keys=[key for _, key, _ in rows],
        enabled_ns=[reading.enabled_ns for _, _, reading in rows],
        running_ns=[reading.running_ns for _, _, reading in rows],
        counts=list(zip(*(reading.counts for _, _, reading in rows), strict=True)),
    )


def growth(before: Table, after: Table, *, idle_is_zero: bool = False) -> Growth:
    """What was counted in the rows that both tables have.

    A row that had no counter, or that went back, has no value. One that was never enabled has none either (its CPU was offline)
    unless `idle_is_zero`: a cgroup is enabled on a CPU only while it runs there.
    """
    if list(before.keys) != list(after.keys):
        common = set(before.keys) & set(after.keys)
        before, after = _only(before, common), _only(after, common)
    enabled = _grown(before.enabled_ns, after.enabled_ns)
    running = _grown(before.running_ns, after.running_ns)
    counts = [_grown(old, new) for old, new in zip(before.counts, after.counts, strict=True)]
    if not enabled:
        return Growth((), 0, 0, None, [[] for _ in after.counts])
    if running == enabled and min(enabled) > 0 and all(min(column) >= 0 for column in counts):
        return Growth(after.cpus, sum(enabled), sum(enabled), 1.0, counts)
    return _scaled(after.cpus, enabled, running, counts, idle_is_zero=idle_is_zero)


def _grown(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return list(map(operator.sub, after, before))


def _scaled(
    cpus: Sequence[int], enabled: list[int], running: list[int], counts: list[list[int]], *, idle_is_zero: bool
) -> Growth:
    kept: list[int] = []
    columns: list[list[float]] = [[] for _ in counts]
    ratios: list[float] = []
    times = [0, 0]
    for row, cpu in enumerate(cpus):
        row_counts = [column[row] for column in counts]
        if enabled[row] < 0 or running[row] < 0 or min(row_counts) < 0:
            continue
        if enabled[row] == 0 and not idle_is_zero:
            continue
        if enabled[row] > 0:
            ratio = min(running[row] / enabled[row], 1.0)
            ratios.append(ratio)
            times[0] += enabled[row]
            times[1] += running[row]
            if running[row] == 0:
                continue
        kept.append(cpu)
        factor = 1.0 if running[row] >= enabled[row] else enabled[row] / running[row]
        for column, count in zip(columns, row_counts, strict=True):
            column.append(count * factor)
    return Growth(kept, times[0], times[1], min(ratios, default=None), columns)


def _only(table: Table, keys: set[int]) -> Table:
    rows = sorted((key, row) for row, key in enumerate(table.keys) if key in keys)

    def pick(column: Sequence[int]) -> list[int]:
        return [column[row] for _, row in rows]

    return Table(
        pick(table.cpus),
        pick(table.keys),
        pick(table.enabled_ns),
        pick(table.running_ns),
        [pick(column) for column in table.counts],
    )
