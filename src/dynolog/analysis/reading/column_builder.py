"""Events into columns, batch by batch: what a batch leaves behind is a few small arrays."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.argument_columns import ColumnCollector, floats, integers
from dynolog.analysis.reading.categories import Category, category
from dynolog.analysis.reading.columns import NONE, ArgumentColumn, Ids, Integers, Mask
from dynolog.analysis.reading.event_fields import ARGUMENTS, COMMUNICATION, Arguments, ArgumentSpec, Event, Key
from dynolog.analysis.reading.exact_time import exact_ns
from dynolog.analysis.reading.interning import Numbering
from dynolog.analysis.reading.load_options import LoadOptions
from dynolog.analysis.reading.phases import chosen
from dynolog.analysis.reading.read_report import NO_TIME, OTHER_CATEGORIES, OUTSIDE_WINDOW, PYTHON_FRAMES, ReadReport

_NO_ARGUMENTS = Arguments()
_LARGEST_US = 4e15
# Kinds that have no device, stream or correlation: most events of most files.
_OF_THE_HOST_ONLY = frozenset(
    {
        Category.CPU_OP,
        Category.USER_ANNOTATION,
        Category.PYTHON_FUNCTION,
        Category.OVERHEAD,
        Category.SPAN,
    }
)
_HAS_DEVICE = np.array([kind not in _OF_THE_HOST_ONLY for kind in Category])


class Keys:
    """The tables that rows, flows and marks share."""

    def __init__(self) -> None:
        self.names: Numbering[str] = Numbering()
        self.raw_categories: Numbering[str] = Numbering()
        self.processes: Numbering[Key] = Numbering()
        self.threads: Numbering[Key] = Numbering()


class RowBuilder:
    """The complete events. `base_ns` is added to every time; it may become known only at the end of the file."""

    def __init__(self, options: LoadOptions, report: ReadReport, keys: Keys) -> None:
        self._options = options
        self._report = report
        self._keys = keys
        self._kinds = np.zeros(0, np.uint8)
        self._wanted = np.array([options.wanted(kind) for kind in Category])
        self._chunks: dict[str, list[NDArray[np.generic]]] = {field: [] for field in FIELDS}
        self._collectors: dict[ArgumentSpec, ColumnCollector] = {}
        self._count = 0
        self.negative_durations = 0
        self.unknown_durations = 0

    def __len__(self) -> int:
        return self._count

    def add(self, events: Sequence[Event], window: tuple[int | None, int | None]) -> None:
        """Take complete events in; `window` is in the file's own times."""
        events, raw = self._of_wanted_kinds(events)
        begins = exact_ns([event.ts for event in events])
        durations = self._durations(events)
        timed = begins != NONE
        self._report.skip(NO_TIME, int(np.count_nonzero(~timed)))
        inside = timed.copy()
        if window[0] is not None:
            inside &= begins + np.maximum(durations, 0) >= window[0]
        if window[1] is not None:
            inside &= begins <= window[1]
        self._report.skip(OUTSIDE_WINDOW, int(np.count_nonzero(timed & ~inside)))
        if not inside.all():
            events = chosen(events, inside)
            raw, begins, durations = raw[inside], begins[inside], durations[inside]
        self._append(events, raw, begins, durations)

    def _of_wanted_kinds(self, events: Sequence[Event]) -> tuple[Sequence[Event], Ids]:
        raw = self._keys.raw_categories.of([event.cat for event in events])
        for name in itertools.islice(self._keys.raw_categories, len(self._kinds), None):
            self._kinds = np.append(self._kinds, np.uint8(category(name)))
        wanted = self._wanted[self._kinds[raw]]
        if wanted.all():
            return events, raw
        frames = int(np.count_nonzero(self._kinds[raw[~wanted]] == Category.PYTHON_FUNCTION))
        self._report.skip(PYTHON_FRAMES, frames)
        self._report.skip(OTHER_CATEGORIES, int(np.count_nonzero(~wanted)) - frames)
        return chosen(events, wanted), raw[wanted]

    def _durations(self, events: Sequence[Event]) -> Integers:
        us = floats([event.dur for event in events])
        unknown = np.isnan(us) | (np.abs(us) > _LARGEST_US)
        self.unknown_durations += int(np.count_nonzero(unknown))
        us = np.where(unknown, 0.0, us)
        self.negative_durations += int(np.count_nonzero(us < 0))
        # Exact to the ns below 100 days: there a double still has more than three decimals of a µs.
        return np.rint(us * 1000).astype(np.int64)

    def _append(self, events: Sequence[Event], raw: Ids, begins: Integers, durations: Integers) -> None:
        count = len(events)
        if not count:
            return
        kinds = self._kinds[raw]
        arguments = [event.args or _NO_ARGUMENTS for event in events]
        columns: dict[str, NDArray[Any]] = {
            "begin_ns": begins,
            "duration_ns": durations,
            "category": kinds,
            "raw_category": raw,
            "name": self._keys.names.of([event.name for event in events]),
            "process": self._keys.processes.of([event.pid for event in events]),
            "thread": self._keys.threads.of([event.tid for event in events]),
        }
        columns["external_id"] = integers([entry.external_id for entry in arguments])
        on_device = _HAS_DEVICE[kinds]
        of_devices = chosen(arguments, on_device)
        # Written out: an attribute that stands in the code is read twice as fast as one that is given by its name.
        columns["device"] = _spread(integers([entry.device for entry in of_devices]), on_device)
        columns["stream"] = _spread(integers([entry.stream for entry in of_devices]), on_device)
        columns["correlation"] = _spread(integers([entry.correlation for entry in of_devices]), on_device)
        for field, column in columns.items():
            self._chunks[field].append(column)
        if self._options.arguments:
            for kind in np.flatnonzero(np.bincount(kinds)).tolist():
                self._collect(ARGUMENTS.get(Category(kind), ()), kinds == kind, arguments)
            collectives = [entry.collective for entry in arguments]
            if collectives.count(None) < count:
                self._collect(COMMUNICATION, np.array([name is not None for name in collectives]), arguments)
        self._count += count

    def _collect(self, specs: Sequence[ArgumentSpec], mask: Mask, arguments: Sequence[Arguments]) -> None:
        rows = np.flatnonzero(mask) + self._count
        of_rows = chosen(arguments, mask)
        for spec in specs:
            if spec not in self._collectors:
                self._collectors[spec] = ColumnCollector(spec)
            self._collectors[spec].add(rows, of_rows)

    def take(self, field: str) -> NDArray[np.generic]:
        """One column whole; its pieces are given up, so that memory holds only one column twice."""
        chunks = self._chunks.pop(field)
        return np.concatenate(chunks) if chunks else np.zeros(0, FIELD_TYPES[field])

    def take_arguments(self) -> dict[str, ArgumentColumn]:
        """The columns of arguments that some event has."""
        found = {spec.field: collector.column() for spec, collector in self._collectors.items()}
        self._collectors = {}
        return {field: column for field, column in found.items() if column is not None}


def _spread(values: Integers, mask: Mask) -> Integers:
    """The values where the mask is; NONE elsewhere."""
    column = np.full(len(mask), NONE, np.int64)
    column[mask] = values
    return column


FIELD_TYPES: dict[str, type[np.generic]] = {
    "begin_ns": np.int64,
    "duration_ns": np.int64,
    "category": np.uint8,
    "raw_category": np.int32,
    "name": np.int32,
    "process": np.int32,
    "thread": np.int32,
    "device": np.int64,
    "stream": np.int64,
    "correlation": np.int64,
    "external_id": np.int64,
}
FIELDS = tuple(FIELD_TYPES)
