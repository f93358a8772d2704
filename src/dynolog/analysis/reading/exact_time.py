"""Times as the file spells them, in µs with decimals, into integers of ns: no digit is lost, whatever the base."""

import decimal
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import NONE, Integers

_COMMA, _DOT, _ZERO = b",.0"
_MAX_NS_DIGITS = 19  # of a time in int64, when the first is small
_LARGEST_NS = 4 * 10**18  # the year 2096; leaves room to add a base


def exact_ns(texts: Sequence[msgspec.Raw]) -> Integers:
    """ns of each text; NONE for what is no number of int64 range. Digits below 1 ns are rounded half to even."""
    count = len(texts)
    if not count:
        return np.zeros(0, np.int64)
    joined = np.frombuffer(b",".join(texts) + b",", np.uint8)
    width, uneven = divmod(len(joined), count)
    # Plain digits before each comma: then the commas are those that join, and the rows are the texts.
    if not uneven and (joined[width - 1 :: width] == _COMMA).all():
        plain = _plain(joined.reshape(count, width)[:, :-1])
        if plain is not None:
            return plain
    ends = np.flatnonzero(joined == _COMMA)
    if len(ends) != count:  # a text that is a list or a string with a comma
        return _each(map(bytes, texts), count)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    times = np.full(count, NONE, np.int64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        block = joined[starts[rows][:, None] + np.arange(length)]
        plain = _plain(block)
        times[rows] = _each((row.tobytes() for row in block), len(block)) if plain is None else plain
    return times


def _plain(block: NDArray[np.uint8]) -> Integers | None:
    """A row a text; None unless all are digits, with the dot at the same place and at most three decimals."""
    length = block.shape[1]
    dots = np.flatnonzero(block[0] == _DOT)
    dot = int(dots[0]) if len(dots) else length
    decimals = max(length - dot - 1, 0)
    ns_digits = min(dot, length) + 3
    if dot == 0 or decimals > 3 or ns_digits > _MAX_NS_DIGITS:
        return None
    digits = np.delete(block, dot, axis=1) if dot < length else block
    values = digits - np.uint8(_ZERO)  # what is no digit wraps to more than 9
    if (
        values.max() > 9
        or (dot < length and (block[:, dot] != _DOT).any())
        or (ns_digits == _MAX_NS_DIGITS and values[:, 0].max() >= 4)
    ):
        return None
    powers = 10 ** np.arange(values.shape[1] + 2 - decimals, 2 - decimals, -1, dtype=np.int64)
    times: Integers = values.astype(np.int64) @ powers
    return times


def _each(texts: Iterable[bytes], count: int) -> Integers:
    return np.fromiter(map(_one, texts), np.int64, count)


def _one(text: bytes) -> int:
    try:
        value = decimal.Decimal(text.strip(b'"').decode())
        if value.adjusted() > _MAX_NS_DIGITS:  # to spell out such a number would take all memory
            return NONE
        ns = int((value * 1000).to_integral_value())
    except (ArithmeticError, ValueError):
        return NONE
    return ns if abs(ns) <= _LARGEST_NS else NONE
