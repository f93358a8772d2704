"""When the interval of a value began, and running totals for receivers that want them."""

from collections.abc import Hashable

import msgspec

from dynolog.model.record import Record

Number = int | float


class Interval(msgspec.Struct):
    """The interval that one collector's values in one record are about, in ns since the epoch; `start_ns` 0: nobody knows.

    `follows` says that it begins where that collector's interval before it ended: nothing is missing between them.
    """

    start_ns: int
    end_ns: int
    follows: bool
    totals: "Totals"


class Totals:
    """Running totals of one collector's counters on one device. A counter that leaves out an interval (reset, device gone, records
    lost) has no total that could be gone on with: its next value begins a new one, with a start time of its own.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[int, Number]] = {}
        self._next: dict[Hashable, tuple[int, Number]] = {}

    def begin(self, follows: bool) -> None:
        """A new interval begins."""
        self._kept = self._next if follows else {}
        self._next = {}

    def add(self, counter: Hashable, added: Number, start_ns: int) -> tuple[int, Number]:
        """Since when `counter` is counted, and its total."""
        since_ns, total = self._kept.get(counter, (start_ns, 0))
        grown = self._next[counter] = (since_ns, total + added)
        return grown


class _Stream(msgspec.Struct):
    last_ns: int
    totals: Totals


class Intervals:
    """Remembers, for each collector and device, where its last interval ended."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str, str], _Stream] = {}

    def of(self, record: Record, collector: str) -> Interval:
        """The interval of `collector`'s values in `record`; ask once for each record, in the order of the records.

        Measured intervals and stamps come from two clocks and differ by some ms. Where the intervals of two records touch but for
        that, the later one begins where the earlier one ended, so that they neither overlap nor leave a hole.
        """
        end_ns = record.wall_ns
        measured_ns = self._measured_ns(record, collector)
        key = (record.source, record.about, collector)
        stream = self._streams.get(key)
        follows = False
        start_ns = end_ns - measured_ns if measured_ns > 0 else 0
        if stream is None:
            stream = self._streams[key] = _Stream(end_ns, Totals())
        else:
            # A last end after this one means that the wall clock was set back.
            follows = stream.last_ns < end_ns and start_ns - stream.last_ns <= measured_ns // 4
            if follows:
                start_ns = stream.last_ns
            stream.last_ns = end_ns
        stream.totals.begin(follows)
        return Interval(start_ns, end_ns, follows, stream.totals)

    @staticmethod
    def _measured_ns(record: Record, collector: str) -> int:
        intervals = record.intervals_ns
        if collector in intervals:
            return intervals[collector]
        return next(iter(intervals.values())) if len(intervals) == 1 else 0
