"""When collectors are read."""

from hypothesis import given
from hypothesis import strategies as st

from dynolog.pipeline.schedule import (
    effective_interval_ns,
    interval_ns,
    next_due_ns,
    next_multiple_ns,
    patience_ns,
    phase_ns,
    retry_delay_ns,
)

SECOND = 1_000_000_000
intervals = st.integers(min_value=1_000_000, max_value=3600 * SECOND)
times = st.integers(min_value=0, max_value=10**18)
offsets = st.integers(min_value=-(10**18), max_value=2 * 10**18)


@given(times, intervals, offsets)
def test_the_next_reading_is_on_a_multiple_of_the_wall_clock_half_to_one_and_a_half_intervals_later(
    last: int, interval: int, offset: int
) -> None:
    due = next_due_ns(last, interval, offset)
    assert (due + offset) % interval == 0
    assert last + interval // 2 <= due < last + interval // 2 + interval


@given(times, intervals, offsets)
def test_a_multiple_is_the_first_one_not_before(earliest: int, interval: int, offset: int) -> None:
    due = next_multiple_ns(earliest, interval, offset)
    assert earliest <= due < earliest + interval
    assert (due + offset) % interval == 0


def test_two_hosts_that_started_at_different_times_read_at_the_same_moments() -> None:
    """The monotonic clocks differ by the boot times, the multiples are those of the shared wall clock."""
    interval = interval_ns(0.25)
    wall_of_a = next_due_ns(7 * SECOND + 123, interval, 1000 * SECOND) + 1000 * SECOND
    wall_of_b = next_due_ns(900 * SECOND + 123, interval, 107 * SECOND) + 107 * SECOND
    assert wall_of_a == wall_of_b == 1007 * SECOND + interval


@given(
    intervals,
    offsets,
    st.lists(st.tuples(st.floats(0.01, 0.99), st.integers(-3600 * SECOND, 3600 * SECOND)), min_size=1, max_size=20),
)
def test_steps_of_the_wall_clock_neither_burst_nor_stop_the_readings(
    interval: int, offset: int, steps: list[tuple[float, int]]
) -> None:
    """D23: whatever NTP or a person does between two readings, they stay half to one and a half intervals apart."""
    now = last = 5000 * SECOND
    for share, step in steps:
        planned = next_due_ns(last, interval, offset)
        now += int((planned - now) * share)  # the step comes somewhere in the wait
        offset += step
        now = max(now, next_due_ns(last, interval, offset))
        assert interval // 2 <= now - last <= 1.5 * interval
        last = now


@given(st.floats(0.01, 100), st.floats(0, 100), st.floats(0, 100))
def test_an_interval_is_never_below_the_shortest_and_joins_the_shared_grid(
    shared: float, own: float, shortest: float
) -> None:
    interval = effective_interval_ns(shared, own, shortest)
    assert interval >= interval_ns(shortest)
    if own == 0:
        assert interval % interval_ns(shared) == 0
        assert interval < max(interval_ns(shared), interval_ns(shortest)) + interval_ns(shared)


def test_intervals_take_fractions_and_own_ones_win() -> None:
    assert effective_interval_ns(0.1, 0.0, 0.0) == 100_000_000
    assert effective_interval_ns(60.0, 0.5, 0.0) == 500_000_000
    assert effective_interval_ns(1.0, 0.5, 10.0) == 10 * SECOND
    assert effective_interval_ns(0.3, 0.0, 10.0) == 10_200_000_000
    assert effective_interval_ns(60.0, 0.0, 10.0) == 60 * SECOND


def test_a_round_waits_for_less_than_half_an_interval_and_never_beyond_the_deadline() -> None:
    assert patience_ns(2 * SECOND, SECOND) == 400_000_000
    assert patience_ns(2 * SECOND, 60 * SECOND) == 2 * SECOND
    assert patience_ns(2 * SECOND, SECOND // 100) == SECOND // 10
    assert patience_ns(SECOND // 20, SECOND) == SECOND // 20


@given(st.integers(1, 10_000), intervals)
def test_a_failing_source_is_left_alone_for_twice_as_long_each_time_up_to_a_minute(
    failures: int, interval: int
) -> None:
    delay = retry_delay_ns(failures, interval)
    assert interval <= delay <= max(60 * SECOND, interval)
    assert delay <= retry_delay_ns(failures + 1, interval) <= 2 * delay


def test_slow_collectors_are_read_in_different_rounds_of_the_same_grid() -> None:
    """Seven that are read every 10 s beside a round every second: one a round, on whole seconds of every host's wall clock."""
    interval = effective_interval_ns(1.0, 0.0, 10.0)
    phases = [phase_ns(slot, 1.0, interval) for slot in range(7)]
    assert phases == [slot * SECOND for slot in range(7)]
    for offset in (0, 1_700_000_000 * SECOND, 123 * SECOND):
        walls = [next_due_ns(7 * SECOND, interval, offset - phase) + offset for phase in phases]
        assert [wall % interval for wall in walls] == phases
    assert phase_ns(11, 1.0, interval) == SECOND
