"""What two readings of the counters say: pure arithmetic."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from dynolog.collectors.perf_counting import Counts, OpenGroup
from dynolog.collectors.perf_groups import Derived, Interval
from dynolog.collectors.spec import Values
from dynolog.sources.perf_event.table import Growth, growth

_NS_PER_S = 1e9


class GroupGrowth(msgspec.Struct, frozen=True):
    """What a group on one PMU counted: a growth for each of its banks."""

    group: OpenGroup
    growths: tuple[Growth, ...]

    @property
    def lowest_ratio(self) -> float | None:
        """The smallest share of time in which one of its banks counted on one CPU."""
        return min((growth.lowest_ratio for growth in self.growths if growth.lowest_ratio is not None), default=None)

    def totals(self) -> list[float]:
        """Scaled counts of its events over all CPUs."""
        raw = [total for growth in self.growths for total in growth.totals()]
        return [total * scale for total, scale in zip(raw, self.group.scales, strict=True)]

    def totals_of(self, cpus: frozenset[int]) -> list[float] | None:
        """The same of some CPUs only; None when none of them counted."""
        if not any(cpu in cpus for growth in self.growths for cpu in growth.cpus):
            return None
        raw = [
            sum(count for cpu, count in zip(growth.cpus, column, strict=True) if cpu in cpus)
            for growth in self.growths
            for column in growth.counts
        ]
        return [total * scale for total, scale in zip(raw, self.group.scales, strict=True)]


class Shares(msgspec.Struct, frozen=True):
    """Which groups were counted long enough. `minimum` is a ratio; `withheld` is told of each group that gets no value."""

    minimum: float
    withheld: Callable[[str], None]

    def is_enough(self, name: str, members: Sequence[GroupGrowth]) -> bool:
        """Whether a group's values may be given."""
        ratios = [ratio for member in members if (ratio := member.lowest_ratio) is not None]
        if all(ratio > 0 and ratio >= self.minimum for ratio in ratios):
            return True
        self.withheld(name)
        return False


def grown(before: Counts, after: Counts, *, idle_is_zero: bool) -> dict[str, list[GroupGrowth]]:
    """What was counted between two readings, by name of the group; one that is new has no entry yet."""
    old = {id(read.group): read for read in before.reads}
    groups: dict[str, list[GroupGrowth]] = {}
    for read in after.reads:
        earlier = old.get(id(read.group))
        if earlier is None:
            continue
        growths = tuple(
            growth(first, second, idle_is_zero=idle_is_zero)
            for first, second in zip(earlier.tables, read.tables, strict=True)
            if len(first.counts) == len(second.counts)
        )
        # A bank in which no CPU has two readings makes the whole group unknown; one without a counter is told of by its ratio.
        if len(growths) == len(read.tables) and all(one.cpus or one.lowest_ratio is not None for one in growths):
            groups.setdefault(read.group.planned.group.name, []).append(GroupGrowth(read.group, growths))
    return groups


def running_ratios(groups: Mapping[str, Sequence[GroupGrowth]]) -> dict[str, float]:
    """The share of time in which each group counted, over all its CPUs."""
    ratios: dict[str, float] = {}
    for name, members in groups.items():
        times = [
            (sum(growth.enabled_ns for growth in member.growths), sum(growth.running_ns for growth in member.growths))
            for member in members
        ]
        enabled, running = sum(pair[0] for pair in times), sum(pair[1] for pair in times)
        if enabled > 0:
            ratios[name] = min(running / enabled, 1.0)
    return ratios


def host_values(
    groups: Mapping[str, Sequence[GroupGrowth]],
    elapsed_s: float,
    shares: Shares,
    partial: frozenset[str],
    sockets: Mapping[int, int],
) -> Values:
    """Values of the host, of each core type of a hybrid processor, and of each socket.

    `partial` groups have no value of the whole. `sockets` gives the socket of a CPU.
    """
    values: Values = {}
    ratios = running_ratios(groups)
    for name, ratio in ratios.items():
        values[f"perf_group_running_ratio.{name}"] = ratio
    if ratios:
        values["perf_running_ratio"] = min(ratios.values())
    tsc_hz = _tsc_hz(groups.get("tsc", ()))
    for name, members in groups.items():
        if not shares.is_enough(name, members):
            continue
        for member in members:
            if member.group.planned.core_type:
                _add(values, [member], elapsed_s, tsc_hz, f".{member.group.planned.core_type}")
        if name not in partial:
            _add(values, members, elapsed_s, tsc_hz, "")
            if members[0].group.planned.group.per_socket:
                _add_sockets(values, members, elapsed_s, sockets)
    return values


def cgroup_values(
    groups: Mapping[str, Sequence[GroupGrowth]], elapsed_s: float, shares: Shares, partial: frozenset[str], path: str
) -> Values:
    """Values of one cgroup."""
    values: Values = {}
    if ratios := running_ratios(groups):
        values[f"perf_running_ratio.{path}"] = min(ratios.values())
    for name, members in groups.items():
        if name not in partial and shares.is_enough(name, members):
            _add(values, members, elapsed_s, None, f".{path}")
    return values


def traffic_values(
    before: Mapping[tuple[str, int], int],
    after: Mapping[tuple[str, int], int],
    sockets: Mapping[int, int],
    elapsed_s: float,
) -> Values:
    """Memory bandwidth of the host and of each socket, from bytes by control group and domain; none when a part is not known."""
    moved = {key: after[key] - old for key, old in before.items() if key in after}
    if not moved or elapsed_s <= 0 or before.keys() != after.keys() or min(moved.values()) < 0:
        return {}
    values: Values = {"membw_bytes_per_s": sum(moved.values()) / elapsed_s}
    if all(domain in sockets for _, domain in moved):
        for socket in sorted({sockets[domain] for _, domain in moved}):
            here = sum(moved_bytes for (_, domain), moved_bytes in moved.items() if sockets[domain] == socket)
            values[f"membw_bytes_per_s.{socket}"] = here / elapsed_s
    return values


def _add(values: Values, members: Sequence[GroupGrowth], elapsed_s: float, tsc_hz: float | None, suffix: str) -> None:
    derived = members[0].group.derived
    if any(member.group.derived is not derived for member in members):
        return  # core types that are counted in different ways have no common sum
    totals = [sum(column) for column in zip(*(member.totals() for member in members), strict=True)]
    cpu_s = sum(growth.enabled_ns for member in members for growth in member.growths[:1]) / _NS_PER_S
    _put(values, derived, totals, Interval(elapsed_s, cpu_s, tsc_hz), suffix)


def _add_sockets(values: Values, members: Sequence[GroupGrowth], elapsed_s: float, sockets: Mapping[int, int]) -> None:
    by_socket: dict[int, set[int]] = {}
    for cpu, socket in sockets.items():
        by_socket.setdefault(socket, set()).add(cpu)
    for socket, cpus in by_socket.items():
        here = [totals for member in members if (totals := member.totals_of(frozenset(cpus))) is not None]
        if here and all(member.group.derived is members[0].group.derived for member in members):
            totals = [sum(column) for column in zip(*here, strict=True)]
            _put(values, members[0].group.derived, totals, Interval(elapsed_s, 0.0), f".{socket}")


def _put(values: Values, derived: Sequence[Derived], totals: Sequence[float], interval: Interval, suffix: str) -> None:
    for one in derived:
        value = one.value(totals, interval)
        if value is None:
            continue
        if not one.instance:
            values[one.name + suffix] = value
        elif suffix.startswith("./"):
            values[f"{one.name}.{one.instance}@{suffix[1:]}"] = value
        elif not suffix:
            values[f"{one.name}.{one.instance}"] = value


def _tsc_hz(members: Sequence[GroupGrowth]) -> float | None:
    """Ticks of the time stamp counter in a second, by what it counted on all CPUs."""
    enabled_ns = sum(growth.enabled_ns for member in members for growth in member.growths)
    ticks = sum(sum(member.totals()) for member in members)
    return ticks * _NS_PER_S / enabled_ns if enabled_ns > 0 and ticks > 0 else None
