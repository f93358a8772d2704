"""Records of a longer interval from those of a shorter one: deltas are summed, gauges and texts are the last, ratios and rates are averaged
by the measured time each stands for."""

from collections.abc import Callable

import msgspec

from dynolog.model.metric import Kind
from dynolog.model.record import Record

_AVERAGED = (Kind.RATIO, Kind.RATE)
# A device whose records have ended is given up after so many windows.
_STALE_WINDOWS = 2
_Group = tuple[str, tuple[tuple[str, str], ...]]


class Nature(msgspec.Struct, frozen=True):
    """What has to be known of a key: how its values are put together, and the collector whose interval they are over."""

    kind: Kind
    owner: str


class _Window:
    """What came since the last multiple of the interval, of one source and one set of labels."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.last: Record | None = None
        self.values: dict[str, int | float | str] = {}
        self.weighted: dict[str, tuple[float, float]] = {}
        self.intervals_ns: dict[str, int] = {}

    def add(self, record: Record, nature_of: Callable[[str], Nature]) -> None:
        longest_ns = max(record.intervals_ns.values(), default=1)
        for key, value in record.values.items():
            nature = nature_of(key)
            if isinstance(value, str):
                self.values[key] = value
            elif nature.kind is Kind.DELTA:
                before = self.values.get(key, 0)
                self.values[key] = value if isinstance(before, str) else before + value
            elif nature.kind in _AVERAGED:
                weight = max(record.intervals_ns.get(nature.owner, longest_ns), 1)
                total, weights = self.weighted.get(key, (0.0, 0.0))
                self.weighted[key] = total + value * weight, weights + weight
                self.values[key] = value  # keeps its place; the average is taken at the end
            else:
                self.values[key] = value
        for collector, interval_ns in record.intervals_ns.items():
            self.intervals_ns[collector] = self.intervals_ns.get(collector, 0) + interval_ns
        self.last = record

    def close(self) -> list[Record]:
        """The one record of the window, if anything came; the window is empty then."""
        if self.last is None:
            return []
        for key, (total, weights) in self.weighted.items():
            self.values[key] = total / weights
        last = self.last
        closed = msgspec.structs.replace(last, values=self.values, intervals_ns=self.intervals_ns)
        self.last, self.values, self.weighted, self.intervals_ns = None, {}, {}, {}
        return [closed]


class Windows:
    """Windows end on multiples of the interval of the wall clock, as records do."""

    def __init__(self, interval_ns: int, nature_of: Callable[[str], Nature]) -> None:
        self._interval_ns = interval_ns
        self._nature_of = nature_of
        self._windows: dict[_Group, _Window] = {}

    def add(self, record: Record) -> list[Record]:
        """Take a record in; the records that are complete with it."""
        group = record.source, tuple(sorted(record.labels.items()))
        index = record.wall_ns // self._interval_ns
        window = self._windows.get(group)
        if window is None:
            began_ns = record.wall_ns - max(record.intervals_ns.values(), default=0)
            window = self._windows[group] = _Window(began_ns // self._interval_ns)
        window.add(record, self._nature_of)
        if index == window.index:
            return []
        window.index = index
        return self._take_stale(index) + window.close()

    def flush(self) -> list[Record]:
        """What is there now, in windows that are not complete."""
        return [record for window in self._windows.values() for record in window.close()]

    def _take_stale(self, index: int) -> list[Record]:
        stale = [group for group, window in self._windows.items() if abs(index - window.index) >= _STALE_WINDOWS]
        return [record for group in stale for record in self._windows.pop(group).close()]
