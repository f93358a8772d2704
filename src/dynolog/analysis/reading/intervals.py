"""Sets of times as sorted, disjoint intervals: unions, what two have in common, what is left; all in whole ns over arrays."""

import msgspec
import numpy as np

from dynolog.analysis.reading.columns import Integers

_EMPTY = np.zeros(0, np.int64)


class Intervals(msgspec.Struct, frozen=True):
    """Disjoint intervals [begin, end), rising; neighbours that touch are one."""

    begin_ns: Integers = _EMPTY
    end_ns: Integers = _EMPTY

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def total_ns(self) -> int:
        """How long all of them are together."""
        return int((self.end_ns - self.begin_ns).sum())

    def covered_before(self, at_ns: Integers) -> Integers:
        """How much of the set lies before each of some times."""
        if not len(self):
            return np.zeros(len(at_ns), np.int64)
        lengths = np.concatenate(([0], np.cumsum(self.end_ns - self.begin_ns)))
        place = np.searchsorted(self.begin_ns, at_ns, side="right")
        last = np.maximum(place - 1, 0)
        beyond = np.where(place > 0, np.maximum(self.end_ns[last] - at_ns, 0), 0)
        covered: Integers = lengths[place] - beyond
        return covered

    def within(self, begin_ns: Integers, end_ns: Integers) -> Integers:
        """How much of the set lies in each of some intervals, which may overlap."""
        return self.covered_before(np.maximum(end_ns, begin_ns)) - self.covered_before(begin_ns)


def union(begin_ns: Integers, end_ns: Integers) -> Intervals:
    """Everything that at least one of some intervals covers; empty and negative ones cover nothing."""
    some = end_ns > begin_ns
    begin_ns, end_ns = begin_ns[some], end_ns[some]
    if not len(begin_ns):
        return Intervals()
    order = np.argsort(begin_ns, kind="stable")
    begin_ns, reach_ns = begin_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.concatenate(([True], begin_ns[1:] > reach_ns[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(begin_ns[first], reach_ns[last])


def gaps(covered: Intervals, begin_ns: int, end_ns: int) -> Intervals:
    """What of one interval a set does not cover."""
    begins = np.concatenate(([begin_ns], np.clip(covered.end_ns, begin_ns, end_ns)))
    ends = np.concatenate((np.clip(covered.begin_ns, begin_ns, end_ns), [end_ns]))
    some = ends > begins
    return Intervals(begins[some], ends[some])


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """What both cover."""
    if not len(one) or not len(other):
        return Intervals()
    times = np.concatenate((one.begin_ns, other.begin_ns, one.end_ns, other.end_ns))
    change = np.repeat([1, -1], len(one) + len(other))
    order = np.lexsort((change, times))  # at one time the ends come first: touching is no overlap
    depth = np.cumsum(change[order])
    starts = np.flatnonzero(depth == 2)
    return union(times[order][starts], times[order][starts + 1])


def difference(one: Intervals, other: Intervals) -> Intervals:
    """What the first covers and the second does not."""
    if not len(one):
        return one
    rest = gaps(other, int(one.begin_ns[0]), int(one.end_ns[-1]))
    return intersection(one, rest)
