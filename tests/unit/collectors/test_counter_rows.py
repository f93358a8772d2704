"""Growth of rows of counters."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dynolog.collectors.counter_rows import CounterRows


def test_growth_of_every_column() -> None:
    assert CounterRows().growth("a", (1, 10), (4, 10)) == [3, 0]


def test_a_counter_that_fell_makes_the_whole_row_unknown() -> None:
    """A device reset to small values: the errors, 1 before and 2 after, did not grow by 1."""
    assert CounterRows().growth("a", (1000, 1), (5, 2)) is None


def test_a_counter_that_answers_0_once_is_not_growth_when_it_is_back() -> None:
    """D09: 398444176031 → 0 → 398444180000 gives no value twice; then it counts again."""
    rows = CounterRows()
    assert rows.growth("a", (398444176031,), (0,)) is None
    assert rows.growth("a", (0,), (398444180000,)) is None
    assert rows.growth("a", (398444180000,), (398444180007,)) == [7]


def test_after_a_true_reset_the_next_round_counts() -> None:
    rows = CounterRows()
    assert rows.growth("a", (398444176031,), (10,)) is None
    assert rows.growth("b", (5,), (6,)) == [1]
    assert rows.growth("a", (10,), (30,)) == [20]


def test_columns_of_their_own_wrap_without_the_others() -> None:
    rows = CounterRows(own=frozenset({1}))
    assert rows.growth("a", (5, 4294967290), (8, 4)) == [3, 4 - 4294967290]
    assert rows.growth("a", (8, 4), (9, 6)) == [1, 2]


def test_devices_that_fell_and_never_came_back_are_forgotten() -> None:
    rows = CounterRows()
    for number in range(5000):
        rows.growth(str(number), (1,), (0,))
    assert len(rows._fallen) < 2000


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=30))
def test_no_value_is_ever_below_zero_or_above_what_was_counted(readings: list[tuple[int, int]]) -> None:
    rows = CounterRows()
    for before, after in pairwise(readings):
        grown = rows.growth("a", before, after)
        if grown is not None:
            assert grown == [after[0] - before[0], after[1] - before[1]]
            assert min(grown) >= 0
