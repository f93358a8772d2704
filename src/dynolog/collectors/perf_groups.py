"""Groups of events that are counted together, and how metrics follow from their counts."""

from collections.abc import Callable, Sequence

import msgspec


class Interval(msgspec.Struct, frozen=True):
    """What counts are about: seconds that passed, those seconds summed over all CPUs counted, and the ticks of the TSC in one."""

    elapsed_s: float
    cpu_s: float
    tsc_hz: float | None = None


Value = Callable[[Sequence[float], Interval], float | None]


class Derived(msgspec.Struct, frozen=True):
    """A metric as a function of the counts of a group's events, in their order; None where it cannot be known."""

    name: str
    value: Value
    instance: str = ""


class Variant(msgspec.Struct, frozen=True):
    """One way to count a group. `indivisible` events mean something only when they are counted together."""

    events: tuple[str, ...]
    derived: tuple[Derived, ...]
    indivisible: bool = False


class GroupSpec(msgspec.Struct, frozen=True):
    """Events that are counted at the same time. The first of `variants` that a PMU has is used for it.

    `missing` says why there is no variant. `per_socket` gives the values of each socket too; `in_cgroups` means that the events
    belong to threads, so that a cgroup can be counted by itself.
    """

    name: str
    variants: tuple[Variant, ...]
    per_socket: bool = False
    in_cgroups: bool = True
    missing: str = ""


def rate(event: int, unit: float) -> Value:
    """So many `unit` of an event a second."""
    return lambda counts, interval: counts[event] / unit / interval.elapsed_s if interval.elapsed_s > 0 else None


def count(event: int) -> Value:
    """The count of an event; scaled ones are estimates, so without a fraction."""
    return lambda counts, _: round(counts[event])


def ratio(part: int, whole: int) -> Value:
    """One event for each of another."""
    return lambda counts, _: counts[part] / counts[whole] if counts[whole] > 0 else None


def misses(names: tuple[str, str, str], *events: tuple[str, str]) -> tuple[Variant, ...]:
    """References, misses and the share of misses, by the first pair of events that there is."""
    derived = (Derived(names[0], count(0)), Derived(names[1], count(1)), Derived(names[2], share(1, 0)))
    return tuple(Variant(pair, derived) for pair in events)


def share(part: int, whole: int) -> Value:
    """A ratio that cannot be above 1: events are not read in the same instant."""
    return lambda counts, _: min(counts[part] / counts[whole], 1.0) if counts[whole] > 0 else None
