"""Whether the durations of one group tend to be longer than those of another: the Mann-Whitney test, and how large the effect is."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import Integers


class RankTest(msgspec.Struct, frozen=True, kw_only=True):
    """`probability` that chance alone gives so large a difference (two-sided, normal approximation with ties); `effect` that one of
    the second group lasts longer than one of the first, ties half: 0.5 is no difference."""

    probability: float
    effect: float


def rank_test(before: Integers, after: Integers) -> RankTest:
    """Both of at least one; below 8 each the approximation is poor, and callers should say so."""
    first, second = len(before), len(after)
    together = np.concatenate((before, after))
    ranks, ties = _mid_ranks(together)
    wins = float(ranks[first:].sum()) - second * (second + 1) / 2
    count = first + second
    variance = first * second / 12 * (count + 1 - float((ties**3 - ties).sum()) / (count * (count - 1)))
    effect = wins / (first * second)
    if variance <= 0:  # all are equal
        return RankTest(probability=1.0, effect=0.5)
    distance = max(abs(wins - first * second / 2) - 0.5, 0.0)
    return RankTest(probability=math.erfc(distance / math.sqrt(2 * variance)), effect=effect)


def _mid_ranks(values: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rank of each, equal ones sharing theirs; and how many are equal, by value."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mid = ends - (counts - 1) / 2
    return mid[place], counts.astype(np.float64)


def adjusted(probabilities: list[float]) -> list[float]:
    """For as many tests as there are: the share of false alarms among all at most as probable (Benjamini and Hochberg)."""
    count = len(probabilities)
    order = sorted(range(count), key=lambda i: -probabilities[i])
    result, least = [1.0] * count, 1.0
    for place, i in enumerate(order):
        least = min(least, probabilities[i] * count / (count - place))
        result[i] = least
    return result
