"""Collecting the arguments of events into sparse columns, batch by batch."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.columns import NONE, ArgumentColumn, Integers, Mask
from dynolog.analysis.event_fields import Arguments, ArgumentSpec
from dynolog.analysis.interning import Numbering

_Values = NDArray[Any]


def integers(values: Sequence[object]) -> Integers:
    """A column of integers; NONE for what is none or beyond int64, texts of digits are taken as numbers."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
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
    """A column of floats; nan for what is no number."""
    try:
        return np.array(values, np.float64)  # None becomes nan
    except (TypeError, ValueError, OverflowError):
        numbers = (float(value) if isinstance(value, (int, float)) else np.nan for value in values)
        return np.fromiter(numbers, np.float64, len(values))


class ColumnCollector:
    """One argument over all batches."""

    def __init__(self, spec: ArgumentSpec) -> None:
        self._get: Callable[[Arguments], object] = operator.attrgetter(spec.field)
        self._kind = spec.kind
        self._rows: list[Integers] = []
        self._values: list[_Values] = []
        self._labels: Numbering[str] = Numbering()

    def add(self, rows: Integers, arguments: Sequence[Arguments]) -> None:
        """Take the argument of some rows, in rising order."""
        given = list(map(self._get, arguments))
        values, known = self._convert(given)
        if known.all():
            self._rows.append(rows)
            self._values.append(values)
        elif known.any():
            self._rows.append(rows[known])
            self._values.append(values[known])

    def _convert(self, given: list[object]) -> tuple[_Values, Mask]:
        if self._kind == "int":
            numbers = integers(given)
            return numbers, numbers != NONE
        if self._kind == "float":
            decimals = floats(given)
            return decimals, ~np.isnan(decimals)
        if self._kind == "json":  # raw text cannot be a key either
            given = [_json(value) for value in given]
        try:
            distinct = set(given)
        except TypeError:  # lists cannot be keys
            given = [_text(value) for value in given]
            distinct = set(given)
        numbering = {value: self._labels[text] if (text := _text(value)) else NONE for value in distinct}
        labels = np.fromiter(map(numbering.__getitem__, given), np.int64, len(given))
        return labels, labels != NONE

    def column(self) -> ArgumentColumn | None:
        """What was collected; None when no event had it."""
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
