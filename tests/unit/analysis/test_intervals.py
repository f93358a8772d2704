"""Unions, gaps, intersections and differences of intervals, against sets of single moments."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dynolog.analysis.rank.gpu_work import clipped_ends
from dynolog.analysis.reading.intervals import Intervals, difference, gaps, intersection, union

Pairs = list[tuple[int, int]]
pairs = st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 12)), max_size=12)


def made(chosen: Pairs) -> Intervals:
    begins = np.array([begin for begin, _ in chosen], np.int64)
    return union(begins, begins + np.array([lasts for _, lasts in chosen], np.int64))


def moments(chosen: Pairs) -> set[int]:
    return {moment for begin, lasts in chosen for moment in range(begin, begin + lasts)}


def covered(intervals: Intervals) -> set[int]:
    ends = zip(intervals.begin_ns.tolist(), intervals.end_ns.tolist(), strict=True)
    return {moment for begin, end in ends for moment in range(begin, end)}


def is_proper(intervals: Intervals) -> bool:
    """Disjoint, rising, none empty, and none touching the next."""
    begins, ends = intervals.begin_ns, intervals.end_ns
    return bool((begins < ends).all() and (ends[:-1] < begins[1:]).all())


@settings(deadline=None)
@given(pairs)
def test_a_union_covers_what_any_interval_covers(chosen: Pairs) -> None:
    result = made(chosen)
    assert covered(result) == moments(chosen)
    assert is_proper(result)
    assert result.total_ns == len(moments(chosen))


@settings(deadline=None)
@given(pairs, pairs)
def test_intersection_and_difference_are_those_of_sets(one: Pairs, other: Pairs) -> None:
    both, rest = intersection(made(one), made(other)), difference(made(one), made(other))
    assert covered(both) == moments(one) & moments(other)
    assert covered(rest) == moments(one) - moments(other)
    assert is_proper(both)
    assert is_proper(rest)


@settings(deadline=None)
@given(pairs, st.integers(-25, 25), st.integers(0, 30))
def test_gaps_are_what_is_not_covered(chosen: Pairs, begin: int, lasts: int) -> None:
    result = gaps(made(chosen), begin, begin + lasts)
    assert covered(result) == set(range(begin, begin + lasts)) - moments(chosen)


@settings(deadline=None)
@given(pairs, pairs)
def test_what_lies_within_intervals_is_counted_for_each(chosen: Pairs, places: Pairs) -> None:
    begins = np.array([begin for begin, _ in places], np.int64)
    ends = begins + np.array([lasts for _, lasts in places], np.int64)
    expected = [len(moments(chosen) & set(range(begin, begin + lasts))) for begin, lasts in places]
    assert made(chosen).within(begins, ends).tolist() == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 15), st.integers(0, 2)), max_size=12))
def test_ends_are_cut_at_the_next_begin_of_the_stream(events: list[tuple[int, int, int]]) -> None:
    begins, lasts, streams = (np.array([event[i] for event in events], np.int64) for i in range(3))
    expected = []
    for begin, length, stream in events:
        later = [other for other, _, same in events if same == stream and other > begin]
        expected.append(min(begin + length, min(later, default=1 << 40)))
    assert clipped_ends(begins, begins + lasts, streams).tolist() == expected
