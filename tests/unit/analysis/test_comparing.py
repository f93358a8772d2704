"""How sure a difference is: the rank test against all pairs, the correction for many tests, and the verdicts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynolog.analysis.job.rank_sum import adjusted, rank_test

numbers = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@settings(deadline=None)
@given(numbers, numbers)
def test_the_effect_is_the_share_of_pairs_that_got_longer_ties_half(before: list[int], after: list[int]) -> None:
    wins = sum((b > a) + (b == a) / 2 for a in before for b in after)
    result = rank_test(np.array(before), np.array(after))
    assert result.effect == pytest.approx(wins / (len(before) * len(after)))
    assert 0 <= result.probability <= 1


def test_the_probability_is_near_that_of_all_ways_to_divide_the_values() -> None:
    """12 values, every choice of 6 for the first group: how many are at least as uneven as the one seen."""
    before, after = [3, 5, 6, 8, 9, 12], [7, 10, 11, 13, 14, 15]
    values = before + after

    def wins(first: tuple[int, ...]) -> int:
        return sum(b > a for a in first for b in values if b not in first)

    seen = abs(wins(tuple(before)) - 18)
    uneven = [abs(wins(first) - 18) >= seen for first in itertools.combinations(values, 6)]
    exact = sum(uneven) / len(uneven)
    assert rank_test(np.array(before), np.array(after)).probability == pytest.approx(exact, rel=0.25)


def test_equal_values_are_no_difference() -> None:
    result = rank_test(np.full(9, 4), np.full(7, 4))
    assert (result.probability, result.effect) == (1.0, 0.5)


def test_a_clear_difference_of_many_is_beyond_chance() -> None:
    assert rank_test(np.arange(100), np.arange(100) + 60).probability < 1e-9


def test_probabilities_are_corrected_for_how_many_tests_there_are() -> None:
    """Benjamini and Hochberg: p × m / rank, never less than that of a more probable one's."""
    assert adjusted([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert adjusted([]) == []
    assert all(not math.isnan(one) for one in adjusted([1.0, 1.0]))
