"""When the interval of a value began, and running totals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.otlp.intervals import Intervals, Totals
from dynolog.model.record import Record

SECOND = 10**9
T0 = 1_700_000_000 * SECOND


def record(wall_ns: int, interval_ns: int = SECOND, **labels: str) -> Record:
    return Record(wall_ns=wall_ns, source="kernel", values={}, labels=labels, intervals_ns={"cpu": interval_ns})


def test_the_first_interval_began_as_long_ago_as_it_took() -> None:
    interval = Intervals().of(record(T0, 1_002_000_000), "cpu")
    assert (interval.start_ns, interval.end_ns, interval.follows) == (T0 - 1_002_000_000, T0, False)


@pytest.mark.parametrize("measured_ns", [SECOND - 3_000_000, SECOND, SECOND + 3_000_000, SECOND + 900_000_000])
def test_intervals_touch_although_stamps_and_measurements_differ(measured_ns: int) -> None:
    intervals = Intervals()
    intervals.of(record(T0), "cpu")
    interval = intervals.of(record(T0 + SECOND, measured_ns), "cpu")
    assert (interval.start_ns, interval.end_ns, interval.follows) == (T0, T0 + SECOND, True)


def test_a_hole_is_not_papered_over() -> None:
    """A record was lost, or the collector failed: nothing is known about the time between."""
    intervals = Intervals()
    intervals.of(record(T0), "cpu")
    interval = intervals.of(record(T0 + 3 * SECOND), "cpu")
    assert (interval.start_ns, interval.follows) == (T0 + 2 * SECOND, False)


def test_a_wall_clock_that_was_set_back_makes_no_interval_that_ends_before_it_begins() -> None:
    """D23."""
    intervals = Intervals()
    intervals.of(record(T0), "cpu")
    interval = intervals.of(record(T0 - 2 * SECOND), "cpu")
    assert (interval.start_ns, interval.end_ns, interval.follows) == (T0 - 3 * SECOND, T0 - 2 * SECOND, False)


def test_devices_and_collectors_have_intervals_of_their_own() -> None:
    intervals = Intervals()
    intervals.of(record(T0, device="0"), "cpu")
    assert not intervals.of(record(T0 + SECOND, device="1"), "cpu").follows
    assert intervals.of(record(T0 + SECOND, device="0"), "cpu").follows


def test_a_metric_without_a_collector_has_the_only_interval_of_its_record() -> None:
    assert Intervals().of(record(T0, 5 * SECOND), "").start_ns == T0 - 5 * SECOND
    bare = Record(wall_ns=T0, source="x", values={})
    intervals = Intervals()
    assert intervals.of(bare, "").start_ns == 0
    assert intervals.of(Record(wall_ns=T0 + SECOND, source="x", values={}), "").start_ns == T0


@given(st.lists(st.tuples(st.integers(-5 * SECOND, 5 * SECOND), st.integers(1, 5 * SECOND)), max_size=30))
def test_whatever_the_clocks_do_an_interval_begins_before_it_ends_and_never_before_the_last_ended_unless_set_back(
    steps: list[tuple[int, int]],
) -> None:
    intervals, wall_ns, last_ns = Intervals(), T0, 0
    for step_ns, measured_ns in steps:
        wall_ns += step_ns
        interval = intervals.of(record(wall_ns, measured_ns), "cpu")
        assert interval.start_ns < interval.end_ns == wall_ns
        if last_ns < wall_ns:
            assert interval.start_ns >= last_ns
        last_ns = wall_ns


def test_a_total_goes_on_while_no_interval_is_missing() -> None:
    totals = Totals()
    totals.begin(False)
    assert totals.add("rx", 5, T0) == (T0, 5)
    totals.begin(True)
    assert totals.add("rx", 2, T0 + SECOND) == (T0, 7)


def test_a_counter_that_left_out_an_interval_begins_anew() -> None:
    """F14: a reset gives no value for one interval; the total after it has a start of its own."""
    totals = Totals()
    totals.begin(False)
    totals.add("rx", 5, T0)
    totals.add("tx", 1, T0)
    totals.begin(True)
    assert totals.add("tx", 1, T0 + SECOND) == (T0, 2)
    totals.begin(True)
    assert totals.add("rx", 3, T0 + 2 * SECOND) == (T0 + 2 * SECOND, 3)
    assert totals.add("tx", 1, T0 + 2 * SECOND) == (T0, 3)


def test_after_a_hole_every_total_begins_anew() -> None:
    totals = Totals()
    totals.begin(False)
    totals.add("rx", 5, T0)
    totals.begin(False)
    assert totals.add("rx", 2, T0 + 5 * SECOND) == (T0 + 5 * SECOND, 2)
