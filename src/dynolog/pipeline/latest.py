"""The latest values of each source and device, for `getMetrics`."""

import threading
from collections.abc import Iterable, Mapping

import msgspec

from dynolog.collectors.spec import CollectorSpec, Values
from dynolog.model.clock import Clock
from dynolog.model.metric import Catalogue, Scope
from dynolog.model.record import Record

# A value is shown for three of its intervals, and for no less than this: at 0.1 s it would flicker.
_LEAST_AGE_NS = 3_000_000_000
# For a source that does not say its interval.
_DEFAULT_AGE_NS = 180_000_000_000
_INTERVALS_KEPT = 3
# Whatever carries no interval of its own collector.
_WHOLE = ""


class _Arrived(msgspec.Struct, frozen=True):
    record: Record
    monotonic_ns: int

    def is_stale(self, collector: str, now_ns: int) -> bool:
        interval = self.record.intervals_ns.get(collector)
        limit = _DEFAULT_AGE_NS if interval is None else max(_INTERVALS_KEPT * interval, _LEAST_AGE_NS)
        return now_ns - self.monotonic_ns > limit


class LatestRecords:
    """Remembers, for each source and device, the newest record that each collector has a part in.

    A record shown is put together from those: a disk value of 10 s ago stands beside a CPU value of 1 s ago, and what is
    older than three intervals of its own collector is left out.
    """

    def __init__(self, catalogue: Catalogue, specs: Iterable[CollectorSpec], clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._owners: dict[tuple[str, Scope], str] = {
            (metric.name, metric.scope): spec.name for spec in specs for metric in spec.metrics
        }
        self._lock = threading.Lock()
        self._groups: dict[tuple[str, str], dict[str, _Arrived]] = {}

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of this daemon."""
        return self._catalogue

    def put(self, record: Record) -> None:
        """Take a record in; constant work for each collector in it."""
        arrived = _Arrived(record, self._clock.monotonic_ns())
        with self._lock:
            group = self._groups.setdefault((record.source, record.about), {})
            for collector in record.intervals_ns or (_WHOLE,):
                group[collector] = arrived

    def latest(self, source: str = "") -> tuple[Record, ...]:
        """The latest record of each source and device, or of one source's; stale values and empty records are left out."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            for key, group in list(self._groups.items()):
                for collector in [name for name, arrived in group.items() if arrived.is_stale(name, now_ns)]:
                    del group[collector]
                if not group:
                    del self._groups[key]  # a device that is gone must not fill memory
            groups = [dict(group) for (name, _), group in self._groups.items() if source in ("", name)]
        return tuple(self._merge(group) for group in groups)

    def _merge(self, group: Mapping[str, _Arrived]) -> Record:
        newest = max(group.values(), key=lambda arrived: arrived.monotonic_ns).record
        records = {id(arrived.record): arrived.record for arrived in group.values()}
        if len(records) == 1 and len(group) == max(len(newest.intervals_ns), 1):
            return newest
        values: Values = {}
        for record in records.values():
            for key, value in record.values.items():
                if self._newest_with(key, group, newest) is record:
                    values[key] = value
        intervals = {
            name: arrived.record.intervals_ns[name]
            for name, arrived in group.items()
            if name in arrived.record.intervals_ns
        }
        return msgspec.structs.replace(newest, values=values, intervals_ns=intervals)

    def _newest_with(self, key: str, group: Mapping[str, _Arrived], newest: Record) -> Record | None:
        """The newest record of the collector that gives `key`; None when that collector's values are stale."""
        series = self._catalogue.resolve(key)
        owner = self._owners.get((series.metric.name, series.metric.scope)) if series else None
        if owner is None:
            return newest
        return group[owner].record if owner in group else None
