"""From the text of `--perf_metrics` to what is to be opened on which PMU."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import msgspec.structs

from dynolog.collectors.perf_groups import Derived, GroupSpec, Variant
from dynolog.collectors.perf_sets import SETS, event_group
from dynolog.sources.perf_event.attributes import EventSpec, EventType
from dynolog.sources.pmu_devices import PmuDevices
from dynolog.sources.pmu_events import UnknownEvent

# Counters that every core PMU of the last ten years has free for one thread of a core; the NMI watchdog takes one of them.
COUNTERS = 4
_IN_SOFTWARE = (EventType.SOFTWARE, EventType.TRACEPOINT)


class Option(msgspec.Struct, frozen=True):
    """One way to count a group on one PMU: the events of each bank, which are counted at the same time, and what follows."""

    banks: tuple[tuple[EventSpec, ...], ...]
    derived: tuple[Derived, ...]

    @property
    def events(self) -> tuple[EventSpec, ...]:
        """The events of all banks, in the order of the counts."""
        return tuple(event for bank in self.banks for event in bank)


class Planned(msgspec.Struct, frozen=True):
    """A group on one PMU ("" for the kernel's own events), with the ways to count it, the best first."""

    group: GroupSpec
    pmu: str
    core_type: str
    options: tuple[Option, ...]


class Plan(msgspec.Struct, frozen=True):
    """What to open, in the order of importance, and one sentence for each group that this machine cannot have.

    The groups named in `partial` exist on some core types of a hybrid processor only, and have no sum over all of them.
    """

    planned: tuple[Planned, ...]
    problems: Mapping[str, str]
    partial: frozenset[str] = frozenset()


def groups_of(words: Iterable[str], devices: PmuDevices) -> tuple[GroupSpec, ...]:
    """The groups that sets and events name; the same group from two sets is one, with the metrics of both."""
    sets = {one.name: one for one in SETS}
    groups: dict[str, GroupSpec] = {}
    for word in words:
        for group in sets[word].groups(devices) if word in sets else (event_group(word),):
            known = groups.get(group.name)
            groups[group.name] = _merged(known, group) if known else group
    return tuple(groups.values())


def _merged(one: GroupSpec, other: GroupSpec) -> GroupSpec:
    variants = tuple(
        msgspec.structs.replace(
            mine, derived=mine.derived + tuple(new for new in theirs.derived if new not in mine.derived)
        )
        for mine, theirs in zip(one.variants, other.variants, strict=True)
    )
    return msgspec.structs.replace(one, variants=variants)


def make_plan(
    groups: Sequence[GroupSpec],
    parse: Callable[[str], tuple[EventSpec, ...]],
    counters: int = COUNTERS,
    core_types: int = 1,
) -> Plan:
    """Resolve the events of `groups` with `parse` (UnknownEvent: not here); no bank needs more than `counters` at once."""
    planned: list[Planned] = []
    problems: dict[str, str] = {}
    partial: set[str] = set()
    for group in groups:
        options: dict[tuple[str, str], list[Option]] = {}
        if not group.variants:
            problems[group.name] = group.missing
        if not group.variants:
            problems[group.name] = group.missing
        for variant in group.variants:
            try:
                found = _by_pmu([parse(event) for event in variant.events])
            except UnknownEvent as error:
                problems.setdefault(group.name, str(error))
                continue
            for pmu, events in found.items():
                options.setdefault(pmu, []).append(Option(_banks(events, variant, counters), variant.derived))
        if options:
            problems.pop(group.name, None)
        if 0 < sum(bool(core_type) for _, core_type in options) < core_types:
            partial.add(group.name)
        planned += [Planned(group, pmu, core_type, tuple(ways)) for (pmu, core_type), ways in options.items()]
    return Plan(tuple(planned), problems, frozenset(partial))


def _by_pmu(found: Sequence[Sequence[EventSpec]]) -> dict[tuple[str, str], tuple[EventSpec, ...]]:
    """The events of each PMU that has all of them; events of the kernel (PMU "") do not mix with those of a PMU."""
    by_pmu: dict[tuple[str, str], dict[int, EventSpec]] = {}
    for place, specs in enumerate(found):
        for spec in specs:
            by_pmu.setdefault((spec.pmu, spec.core_type), {})[place] = spec
    return {
        pmu: tuple(places[place] for place in range(len(found)))
        for pmu, places in by_pmu.items()
        if len(places) == len(found)
    }


def _banks(events: tuple[EventSpec, ...], variant: Variant, counters: int) -> tuple[tuple[EventSpec, ...], ...]:
    if variant.indivisible or len(events) <= counters or all(event.type in _IN_SOFTWARE for event in events):
        return (events,)
    return tuple(events[start : start + counters] for start in range(0, len(events), counters))


def smaller(option: Option) -> Option | None:
    """The same in groups of half the size, for a PMU with fewer counters; None when they cannot be smaller."""
    longest = max(map(len, option.banks))
    if longest == 1:
        return None
    size = (longest + 1) // 2
    events = option.events
    return Option(tuple(events[start : start + size] for start in range(0, len(events), size)), option.derived)


def descriptors_of(planned: Planned, online: int) -> int:
    """How many file descriptors the first way to count it takes on a machine with so many CPUs."""
    return sum(online if event.cpus is None else min(len(event.cpus), online) for event in planned.options[0].events)
