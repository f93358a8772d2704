"""What is no complete event: arrows, counters, marks, and the names of processes and threads."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.argument_columns import integers
from dynolog.analysis.reading.column_builder import Keys
from dynolog.analysis.reading.columns import NONE, Counters, Flows, Instants, Integers, TrackName
from dynolog.analysis.reading.event_fields import Event, RawEvent
from dynolog.analysis.reading.exact_time import exact_ns
from dynolog.analysis.reading.interning import Numbering
from dynolog.analysis.reading.read_report import NO_TIME, ReadReport
from dynolog.profiling.trace_recovery import JSON_ERRORS, mended


class FlowBuilder:
    """Arrows: `ph` s, t and f."""

    def __init__(self, report: ReadReport, keys: Keys) -> None:
        self._report = report
        self._keys = keys
        self._kinds: Numbering[str] = Numbering()
        self._chunks: dict[str, list[NDArray[Any]]] = {
            field: [np.zeros(0, kind)] for field, kind in _FLOW_TYPES.items()
        }

    def add(self, events: Sequence[Event]) -> None:
        """Take arrow ends in."""
        at_ns = exact_ns([event.ts for event in events])
        timed = at_ns != NONE
        self._report.skip(NO_TIME, int(np.count_nonzero(~timed)))
        columns: dict[str, NDArray[Any]] = {
            "at_ns": at_ns,
            "phase": np.frombuffer("".join([event.ph for event in events]).encode(), np.uint8),
            "id": integers([event.id for event in events]),
            "kind": self._kinds.of([event.cat for event in events]),
            "process": self._keys.processes.of([event.pid for event in events]),
            "thread": self._keys.threads.of([event.tid for event in events]),
        }
        for field, column in columns.items():
            self._chunks[field].append(column[timed])

    def finish(self, base_ns: int) -> Flows:
        """All that have a time."""
        columns = {field: np.concatenate(self._chunks.pop(field)) for field in _FLOW_TYPES}
        columns["at_ns"] += base_ns
        return Flows(**columns, kinds=list(self._kinds))


_FLOW_TYPES: dict[str, type[np.generic]] = {
    "at_ns": np.int64,
    "phase": np.uint8,
    "id": np.int64,
    "kind": np.int32,
    "process": np.int32,
    "thread": np.int32,
}


class MarkBuilder:
    """Marks (`ph` i, I, R) and names (`ph` M)."""

    def __init__(self, report: ReadReport, keys: Keys) -> None:
        self._report = report
        self._keys = keys
        self._marks: list[tuple[Integers, list[int], list[int], list[int]]] = []
        self.process_names: dict[int | str, TrackName] = {}
        self.thread_names: dict[tuple[int | str, int | str], TrackName] = {}

    def add_marks(self, events: Sequence[Event]) -> None:
        """Take instants in."""
        times = exact_ns([event.ts for event in events])
        self._report.skip(NO_TIME, int(np.count_nonzero(times == NONE)))
        chosen = [event for event, at_ns in zip(events, times, strict=True) if at_ns != NONE]
        self._marks.append(
            (
                times[times != NONE],
                [self._keys.names[event.name] for event in chosen],
                [self._keys.processes[event.pid] for event in chosen],
                [self._keys.threads[event.tid] for event in chosen],
            )
        )

    def add_names(self, events: Sequence[RawEvent]) -> None:
        """Take metadata events in."""
        for event in events:
            whose, _, what = event.name.partition("_") if isinstance(event.name, str) else ("", "", "")
            if whose == "thread":
                track = self.thread_names.setdefault((key(event.pid), key(event.tid)), TrackName())
            elif whose == "process":
                track = self.process_names.setdefault(key(event.pid), TrackName())
            else:
                continue
            value = _members(event.args).get(what)
            if what == "sort_index" and isinstance(value, int):
                track.sort_index = value
            elif what == "name" and isinstance(value, str):
                track.name = value
            elif what == "labels" and isinstance(value, str):
                track.labels = value

    def finish(self, base_ns: int) -> Instants:
        """All marks that have a time."""
        at_ns = np.concatenate([np.zeros(0, np.int64), *(times for times, *_ in self._marks)]) + base_ns
        names, processes, threads = (
            np.array([number for mark in self._marks for number in mark[place]], np.int32) for place in (1, 2, 3)
        )
        return Instants(at_ns, names, processes, threads)


class CounterBuilder:
    """Counter tracks (`ph` C); each number in their arguments is a series."""

    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._series: Numbering[tuple[str, str, int | str]] = Numbering()
        self._at: list[int] = []
        self._ids: list[int] = []
        self._values: list[float] = []

    def add(self, events: Sequence[RawEvent]) -> None:
        """Take samples in; what is no number is no sample."""
        times = exact_ns([event.ts for event in events])
        self._report.skip(NO_TIME, int(np.count_nonzero(times == NONE)))
        for event, at_ns in zip(events, times.tolist(), strict=True):
            if at_ns == NONE:
                continue
            for label, value in _members(event.args).items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self._at.append(at_ns)
                    self._ids.append(self._series[str(event.name), label, key(event.pid)])
                    self._values.append(value)

    def finish(self, base_ns: int) -> Counters:
        """All samples, in the order of the file."""
        return Counters(
            np.array(self._at, np.int64) + base_ns,
            np.array(self._ids, np.int32),
            np.array(self._values, np.float64),
            list(self._series),
        )


def _members(text: msgspec.Raw) -> dict[str, object]:
    try:
        return msgspec.json.decode(mended(bytes(text)), type=dict[str, object])
    except JSON_ERRORS:
        return {}


def key(value: object) -> int | str:
    """A pid or tid as a whole number or a text; "" when the event has none."""
    if isinstance(value, (int, str)):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else "" if value is None else str(value)
