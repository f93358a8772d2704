"""All samples that Prometheus can scrape, from the records that have come."""

import logging
import threading
from collections.abc import Mapping

import msgspec

from dynolog import __version__
from dynolog.exporters.prometheus.names import Families, Family, NameTaken, Type
from dynolog.exporters.prometheus.part import Part
from dynolog.exporters.prometheus.sample import Sample
from dynolog.model.clock import Clock
from dynolog.model.metric import Catalogue, Scope, Series
from dynolog.model.record import Record

_log = logging.getLogger(__name__)
# Whatever no collector is known for.
_WHOLE = ""
# Totals of devices that have gone are kept for their return.
_MOST_DEPARTED = 20_000
# Sources and devices that one daemon may have; past it, new ones are left out.
_MOST_GROUPS = 1024
_MOST_SOURCES = 64
_FOR_EVER_NS = 1 << 62

_SOURCE_UP = Family(
    name="dynolog_source_up",
    type=Type.GAUGE,
    help="1 while a source of records reports, 0 when its last report is older than three intervals",
    label="source",
)
_SOURCE_TIME = Family(
    name="dynolog_source_last_report_timestamp_seconds",
    type=Type.GAUGE,
    help="When a source of records reported last",
    unit="seconds",
    label="source",
    divide=1_000_000_000,
)
_BUILD = Family(name="dynolog_build", type=Type.INFO, help="Version and host of this daemon", label="version")
OWN_FAMILIES = (_SOURCE_UP, _SOURCE_TIME, _BUILD)


class _Source:
    """When a source reported last, and until when that counts as fresh."""

    def __init__(self, name: str, labels: Mapping[str, str]) -> None:
        self.up = Sample(_SOURCE_UP, name, name, labels)
        self.time = Sample(_SOURCE_TIME, name, name, labels)
        self.stale_ns = 0


class _Group:
    """One source and device (Record.about): its samples by key of the record (None: a key that is left out), and its parts by collector."""

    def __init__(self, source: str, device: str) -> None:
        self.source = source
        self.device = device
        self.labels: Mapping[str, str] = {}
        self.entries: dict[str, tuple[Sample, Part] | None] = {}
        self.parts: dict[str, Part] = {}


class View(msgspec.Struct, frozen=True):
    """What there is to scrape; it stays as it is until `until_ns` (monotonic) or the next `generation`."""

    generation: int
    until_ns: int
    families: list[tuple[Family, list[Sample]]]


class SeriesStore:
    """Takes records in on one thread and is scraped on another. Hold `lock` while using a view.

    `owners` says which collector gives a metric, so that each value ages with its own collector's interval.
    `common_labels` are on every sample.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        families: Families,
        clock: Clock,
        *,
        owners: Mapping[tuple[str, Scope], str],
        common_labels: Mapping[str, str],
        hostname: str,
    ) -> None:
        self.lock = threading.RLock()
        self._catalogue = catalogue
        self._names = families
        self._clock = clock
        self._owners = owners
        self._common = common_labels
        self._generation = 0
        self._sources: dict[str, _Source] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        # In the order of the catalogue, so that all pages look alike.
        self._members: dict[Family, dict[Sample, None]] = {family: {} for family in (*OWN_FAMILIES, *families.all)}
        self._departed: dict[tuple[str, str, str], float] = {}
        build = Sample(_BUILD, "", "", {**common_labels, "host_name": hostname})
        build.take(__version__)
        self._members[_BUILD][build] = None

    @property
    def families(self) -> tuple[Family, ...]:
        """Every family that there may be."""
        return tuple(self._members)

    def take_over(self, before: "SeriesStore") -> None:
        """Go on with the counters of a store that takes no more records; each shows again when its device does."""
        counters = {
            (group.source, group.device, key): entry[0].value
            for group in before._groups.values()  # noqa: SLF001 - of its own kind
            for key, entry in group.entries.items()
            if entry is not None and entry[0].family.type is Type.COUNTER and entry[0].value is not None
        }
        self._departed = before._departed | counters  # noqa: SLF001 - of its own kind

    # --- records come -------------------------------------------------------------------------------------------------

    def put(self, record: Record) -> None:
        """Take a record in."""
        now_ns = self._clock.monotonic_ns()
        with self.lock:
            self._expire(now_ns)
            self._generation += 1
            group = self._group_of(record)
            if group is None:
                return
            begun = self._begin_round(group, record, now_ns)
            entries = group.entries
            for key, value in record.values.items():
                entry = entries[key] if key in entries else self._add(group, key)
                if entry is not None and entry[0].take(value):
                    entry[0].seen = entry[1].round
            for part in begun:
                for sample in part.leaving():
                    self._remove(group, part, sample)
            self._heard_of(record, now_ns + min(part.age_ns for part in group.parts.values()))

    def _group_of(self, record: Record) -> _Group | None:
        identity = (record.source, record.about)
        group = self._groups.get(identity)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                return None
            group = self._groups[identity] = _Group(*identity)
        if group.labels != record.labels:
            group.labels = dict(record.labels)
            labels = self._labels_of(group)
            for entry in group.entries.values():
                if entry is not None:
                    entry[0].relabel(labels)
        return group

    def _labels_of(self, group: _Group) -> dict[str, str]:
        return {**self._common, **group.labels}

    def _begin_round(self, group: _Group, record: Record, now_ns: int) -> list[Part]:
        """The parts that this record is about."""
        if not record.intervals_ns:
            # Without its intervals, all of a record is one part, and what it lacks is not known.
            part = group.parts.setdefault(_WHOLE, Part())
            part.begin(now_ns, record.wall_ns, None, exact=True)
            return [part]
        begun = []
        for collector, interval_ns in record.intervals_ns.items():
            part = group.parts.setdefault(collector, Part())
            part.begin(now_ns, record.wall_ns, interval_ns, exact=True)
            begun.append(part)
        if (rest := group.parts.get(_WHOLE)) is not None:
            # Which of these rounds should have had its keys cannot be told.
            rest.begin(now_ns, record.wall_ns, None, exact=False)
            begun.append(rest)
        return begun

    def _add(self, group: _Group, key: str) -> tuple[Sample, Part] | None:
        """A key that the group did not have: what it stands for is looked up once. None when it is left out."""
        series = self._catalogue.resolve(key)
        family = self._family(key, series)
        instance, collector = "", _WHOLE
        if series is not None:
            instance = series.instance
            collector = self._owners.get((series.metric.name, series.metric.scope), _WHOLE)
        if family is None:
            if len(group.entries) < _MOST_DEPARTED:
                group.entries[key] = None
            return None
        part = group.parts.get(collector)
        if part is None:
            part = group.parts[collector] = Part()
            part.begin(self._clock.monotonic_ns(), self._clock.wall_ns(), None, exact=False)
        total = self._departed.pop((group.source, group.device, key), None) if family.type is Type.COUNTER else None
        sample = Sample(family, key, instance, self._labels_of(group), total)
        part.samples[key] = sample
        self._members.setdefault(family, {})[sample] = None
        entry = group.entries[key] = (sample, part)
        return entry

    def _family(self, key: str, series: Series | None) -> Family | None:
        try:
            return self._names.undeclared(key) if series is None else self._names.of(series.metric)
        except NameTaken as error:
            _log.warning("%s: the second is left out", error)
            return None

    def _heard_of(self, record: Record, stale_ns: int) -> None:
        source = self._sources.get(record.source)
        if source is None:
            if len(self._sources) >= _MOST_SOURCES:
                return
            source = self._sources[record.source] = _Source(record.source, self._common)
            self._members[_SOURCE_UP][source.up] = None
            self._members[_SOURCE_TIME][source.time] = None
        source.stale_ns = stale_ns
        source.up.value = 1
        source.time.value = record.wall_ns

    # --- values leave -------------------------------------------------------------------------------------------------

    def _expire(self, now_ns: int) -> bool:
        """Let go of what is too old; whether anything was."""
        changed = False
        for identity, group in list(self._groups.items()):
            for collector, part in list(group.parts.items()):
                if part.stale_ns <= now_ns:
                    changed = True
                    for sample in list(part.samples.values()):
                        self._remove(group, part, sample)
                    del group.parts[collector]
            if not group.parts:
                del self._groups[identity]
        for source in self._sources.values():
            if source.stale_ns <= now_ns and source.up.value:
                changed = True
                source.up.value = 0
        return changed

    def _remove(self, group: _Group, part: Part, sample: Sample) -> None:
        del part.samples[sample.key]
        group.entries.pop(sample.key, None)
        members = self._members[sample.family]
        del members[sample]
        if sample.family.type is Type.COUNTER and sample.value is not None:
            self._departed[group.source, group.device, sample.key] = sample.value
            if len(self._departed) > _MOST_DEPARTED:
                del self._departed[next(iter(self._departed))]

    # --- somebody scrapes ---------------------------------------------------------------------------------------------

    def is_current(self, view: View) -> bool:
        """Whether what was made from `view` still holds."""
        return view.generation == self._generation and self._clock.monotonic_ns() < view.until_ns

    def view(self) -> View:
        """What there is now; the caller holds the lock."""
        now_ns = self._clock.monotonic_ns()
        if self._expire(now_ns):
            self._generation += 1
        ages = [part.stale_ns for group in self._groups.values() for part in group.parts.values()]
        ages += [source.stale_ns for source in self._sources.values() if source.up.value]
        families = []
        for family, members in self._members.items():
            # Two samples with the same labels would cost the whole scrape: names that differ in bytes that are no UTF-8, two sources
            # with the same metric. The one that came last stays.
            if lines := {sample.head: sample for sample in members if sample.value is not None}:
                families.append((family, list(lines.values())))
        return View(self._generation, min(ages, default=_FOR_EVER_NS), families)
