"""Times as the file spells them, in µs with decimals, into integers of ns: no digit is lost, whatever the base."""

import decimal
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.columns import NONE, Integers

_COMMA, _DOT, _ZERO = b",.0"
_MAX_NS_DIGITS = 19  # of a time in int64, when the first is small
_LARGEST_NS = 4 * 10**18  # the year 2096; leaves room to add a base


def exact_ns(texts: Sequence[msgspec.Raw]) -> Integers:
    """ns of each text; NONE for what is no number of int64 range. Digits below 1 ns are rounded half to even."""
    times = np.full(len(texts), NONE, np.int64)
    if not len(texts):
        return times
    joined = np.frombuffer(b",".join(texts) + b",", np.uint8)
    ends = np.flatnonzero(joined == _COMMA)
    if len(ends) != len(texts):  # a text that is a list or a string with a comma
        return np.fromiter((_one(bytes(text)) for text in texts), np.int64, len(texts))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    if (lengths == lengths[0]).all():
        return _of_one_length(joined.reshape(len(texts), -1)[:, :-1])
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        block = joined[starts[rows][:, None] + np.arange(length)]
        times[rows] = _of_one_length(block)
    return times


def _of_one_length(block: NDArray[np.uint8]) -> Integers:
    """A row a text. All at once where all have their dot at the same place and at most three decimals."""
    length = block.shape[1]
    dots = np.flatnonzero(block[0] == _DOT) if length else np.zeros(0, np.int64)
    dot = int(dots[0]) if len(dots) else length
    digits = np.delete(block, dot, axis=1) if dot < length else block
    decimals = length - dot - 1 if dot < length else 0
    values = digits.astype(np.int64) - _ZERO
    ns_digits = digits.shape[1] + 3 - decimals
    plain = (
        dot > 0
        and decimals <= 3
        and ns_digits <= _MAX_NS_DIGITS
        and (values >= 0).all()
        and (values <= 9).all()
        and (ns_digits < _MAX_NS_DIGITS or (values[:, 0] < 4).all())
        and (dot == length or (block[:, dot] == _DOT).all())
    )
    if not plain:
        return np.fromiter((_one(row.tobytes()) for row in block), np.int64, len(block))
    powers = 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)
    scaled: Integers = (values @ powers) * 10 ** (3 - decimals)
    return scaled


def _one(text: bytes) -> int:
    try:
        value = decimal.Decimal(text.strip(b'"').decode())
        if value.adjusted() > _MAX_NS_DIGITS:  # to spell out such a number would take all memory
            return NONE
        ns = int((value * 1000).to_integral_value())
    except (ArithmeticError, ValueError):
        return NONE
    return ns if abs(ns) <= _LARGEST_NS else NONE
