"""Collecting the arguments of events into sparse columns, batch by batch."""

import math
import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import NONE, ArgumentColumn, Integers, Mask
from dynolog.analysis.reading.event_fields import Arguments, ArgumentSpec
from dynolog.analysis.reading.interning import Numbering

_Values = NDArray[Any]
# So many values become an array at once, or all of a batch.
_AT_ONCE = 1024
_NOTHING = frozenset({None, ""})


def integers(values: Sequence[object]) -> Integers:
    """A column of integers; NONE for what is none or beyond int64, texts of digits are taken as numbers."""
    try:
        # In half the time of an array's own constructor, and unlike it never of a fraction.
        return np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
    except struct.error:
        return np.fromiter(map(_integer, values), np.int64, len(values))


def _integer(value: object) -> int:
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            return NONE
    if isinstance(value, float):
        value = int(value) if abs(value) < 2**63 and value == int(value) else None
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else NONE


def floats(values: Sequence[object]) -> NDArray[np.float64]:
    """A column of floats; nan for what is no number, texts of numbers are taken as such."""
    try:
        return np.frombuffer(struct.pack(f"{len(values)}d", *values), np.float64)
    except (struct.error, OverflowError):
        return np.fromiter(map(_float, values), np.float64, len(values))


def _float(value: object) -> float:
    try:
        return float(value) if isinstance(value, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        return math.nan


class ColumnCollector:
    """One argument over all batches."""

    def __init__(self, spec: ArgumentSpec) -> None:
        self._get: Callable[[Arguments], object] = operator.attrgetter(spec.field)
        self._kind = spec.kind
        self._given: list[object] = []
        self._given_rows: list[Integers] = []
        self._rows: list[Integers] = []
        self._values: list[_Values] = []
        self._labels: Numbering[str] = Numbering()

    def add(self, rows: Integers, arguments: Iterable[Arguments]) -> None:
        """Take the argument of some rows, in rising order. Few at a time wait for more: an array costs as much for one as for hundreds."""
        given = map(self._get, arguments)
        # Raw text holds on to the whole batch that it stands in.
        self._given += map(_json, given) if self._kind == "json" else given
        self._given_rows.append(rows)
        if len(self._given) >= _AT_ONCE:
            self._take_given()

    def _take_given(self) -> None:
        values, known = self._convert(self._given)
        if known.any():
            self._rows.append(np.concatenate(self._given_rows)[known])
            self._values.append(values[known])
        self._given, self._given_rows = [], []

    def _convert(self, given: list[object]) -> tuple[_Values, Mask]:
        if self._kind == "int":
            numbers = integers(given)
            return numbers, numbers != NONE
        if self._kind == "float":
            decimals = floats(given)
            return decimals, ~np.isnan(decimals)
        try:
            distinct = set(given)
        except TypeError:  # lists cannot be keys
            given = [_text(value) for value in given]
            distinct = set(given)
        if distinct <= _NOTHING:
            return np.full(len(given), NONE), np.zeros(len(given), np.bool_)
        numbering = {value: self._labels[text] if (text := _text(value)) else NONE for value in distinct}
        labels = np.fromiter(map(numbering.__getitem__, given), np.int64, len(given))
        return labels, labels != NONE

    def column(self) -> ArgumentColumn | None:
        """What was collected; None when no event had it."""
        if self._given:
            self._take_given()
        if not self._rows:
            return None
        rows, values = np.concatenate(self._rows), np.concatenate(self._values)
        order = np.argsort(rows, kind="stable")  # two kinds of events may share a column within one batch
        labels = list(self._labels) if self._kind in ("label", "json") else None
        return ArgumentColumn(rows[order], values[order], labels)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else msgspec.json.encode(value).decode()


def _json(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, msgspec.Raw) else ""
