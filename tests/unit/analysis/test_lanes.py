"""Which events get lanes of their own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynolog.analysis.editing.lanes import assign_lanes


def lanes(*events: tuple[int, int], track: int = 0) -> tuple[list[int], list[int]]:
    begin, duration = (np.array(column, np.int64) for column in zip(*events, strict=True))
    found = assign_lanes(begin, duration, np.full(len(events), track, np.int64))
    return found.lane.tolist(), found.duration_ns.tolist()


def test_g11_a_kernel_that_begins_before_the_last_one_ends_gets_another_lane() -> None:
    assert lanes((100_001, 50_000), (140_000, 40_000)) == ([0, 1], [50_000, 40_000])


def test_events_beside_and_inside_others_stay() -> None:
    assert lanes((0, 100), (100, 50), (110, 20), (115, 15), (110, 20), (150, 0))[0] == [0] * 6


def test_an_operator_that_outlasts_its_caller_by_rounding_stays_and_is_shortened() -> None:
    assert lanes((0, 100_000), (50_000, 51_000)) == ([0, 0], [100_000, 50_000])
    assert lanes((1, 100_000), (50_000, 50_002)) == ([0, 0], [100_000, 50_001])
    assert lanes((1, 100_000), (50_000, 51_000)) == ([0, 1], [100_000, 51_000])


def test_a_negative_duration_overlaps_nothing() -> None:
    assert lanes((0, -5), (10, 20), (15, -5))[0] == [0, 0, 0]


def test_tracks_do_not_touch_each_other() -> None:
    found = assign_lanes(np.array([0, 5]), np.array([10, 10]), np.array([1, 2]))
    assert found.lane.tolist() == [0, 0]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80), st.integers(0, 2)), max_size=60))
def test_no_two_events_of_a_lane_overlap_and_nothing_is_lost(events: list[tuple[int, int, int]]) -> None:
    # Odd numbers of ns, far apart, so that nothing counts as rounding.
    begin = np.array([begin * 1_000_003 for begin, _, _ in events], np.int64)
    duration = np.array([lasts * 1_000_003 for _, lasts, _ in events], np.int64)
    track = np.array([where for *_, where in events], np.int64)
    found = assign_lanes(begin, duration, track)
    assert found.duration_ns.tolist() == duration.tolist()
    for one in range(len(events)):
        for other in range(one):
            if (track[one], found.lane[one]) != (track[other], found.lane[other]):
                continue
            (first, first_end), (second, second_end) = sorted((begin[i], begin[i] + duration[i]) for i in (one, other))
            beside = second >= first_end
            inside = second_end <= first_end
            same_begin = first == second
            assert beside or inside or same_begin
