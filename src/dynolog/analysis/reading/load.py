"""Loading a trace file into columns, in one pass and bounded memory."""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.base_time import find_base_ns
from dynolog.analysis.reading.column_builder import FIELDS, Keys, RowBuilder
from dynolog.analysis.reading.columns import TraceColumns
from dynolog.analysis.reading.event_fields import Event, RawEvent
from dynolog.analysis.reading.event_reader import MOST_BATCH_BYTES, CutText, EventReader
from dynolog.analysis.reading.load_options import LoadOptions
from dynolog.analysis.reading.mark_builder import CounterBuilder, FlowBuilder, MarkBuilder, key
from dynolog.analysis.reading.pairs import Pairs
from dynolog.analysis.reading.phases import NO_CODE, PhaseGroup, chosen, groups_of, phase_codes
from dynolog.analysis.reading.problems import problems
from dynolog.analysis.reading.read_report import UNPAIRED, ReadReport
from dynolog.analysis.reading.trace_head import trace_head
from dynolog.profiling.trace_bytes import NotATrace, TraceText, TraceUnreadable, telling

__all__ = ["LoadOptions", "load"]

BLOCK_BYTES = MOST_BATCH_BYTES
Progress = Callable[[int], None]


def load(path: str, options: LoadOptions | None = None, progress: Progress | None = None) -> TraceColumns:
    """Read a trace, whatever its state: cut, damaged, compressed or not, by its bytes and not its name.

    `progress` is told how many more bytes of the file were read. What was skipped, repaired or lost is in the `report`. Raises NotATrace
    for a file that is something else or empty, and OSError.
    """
    options = options or LoadOptions()
    report = ReadReport(path=path, file_bytes=os.stat(path).st_size)
    started_s = time.monotonic()
    window = _window(path, options)
    with open(path, "rb", buffering=0) as file:
        text = TraceText(telling(partial(file.read, BLOCK_BYTES), progress))
        cut = CutText(text)
        reader = EventReader(cut)
        loading = _Loading(options, report, window)
        try:
            for batch in reader:
                loading.add(batch, reader.described)
                reader.described.clear()
        except TraceUnreadable as error:
            if isinstance(error, NotATrace) and not cut.cut:
                raise
            report.truncated = error.reason
    report.truncated = cut.cut or report.truncated
    report.text_bytes, report.compressed = cut.size_bytes, text.compressed
    report.damaged, report.mended = reader.damaged, reader.mended
    report.problems = problems(path, reader)
    if reader.metadata_damaged:
        report.warnings.append("what stands before the events is damaged and was not read")
    trace = loading.finish(reader.metadata)
    report.seconds = time.monotonic() - started_s
    return trace


def _window(path: str, options: LoadOptions) -> tuple[int | None, int | None]:
    """The window in the file's own times. Its base often stands behind the events, so it is looked up before."""
    if options.from_ns is None and options.to_ns is None:
        return None, None
    base_ns = find_base_ns(path)
    return tuple(None if at is None else at - base_ns for at in (options.from_ns, options.to_ns))  # type: ignore[return-value]


class _Loading:
    """Sorts the events of a file by phase and hands them to what collects them."""

    def __init__(self, options: LoadOptions, report: ReadReport, window: tuple[int | None, int | None]) -> None:
        self._options = options
        self._report = report
        self._window = window
        self._keys = Keys()
        self._rows = RowBuilder(options, report, self._keys)
        self._flows = FlowBuilder(report, self._keys)
        self._marks = MarkBuilder(report, self._keys)
        self._counters = CounterBuilder(report)
        self._pairs = Pairs()

    def add(self, events: Sequence[Event], described: Sequence[RawEvent]) -> None:
        """Take a batch."""
        self._report.events += len(events)
        if described:
            self._marks.add_names([event for event in described if event.ph == "M"])
            if self._options.counters:
                self._counters.add([event for event in described if event.ph == "C"])
        codes = phase_codes(events)
        self._count_phases(events, codes)
        groups = groups_of(codes)
        present = np.bincount(groups, minlength=len(PhaseGroup))
        if present[PhaseGroup.FLOW] and self._options.flows:
            self._flows.add(chosen(events, groups == PhaseGroup.FLOW))
        if present[PhaseGroup.MARK]:
            self._marks.add_marks(chosen(events, groups == PhaseGroup.MARK))
        if present[PhaseGroup.PAIRED]:
            self._rows.add(self._pairs.add(chosen(events, groups == PhaseGroup.PAIRED)), self._window)
        if present[PhaseGroup.UNKNOWN]:
            for event in chosen(events, groups == PhaseGroup.UNKNOWN):
                self._report.skip(f"phase {event.ph!r}")
        if present[PhaseGroup.COMPLETE]:
            self._rows.add(chosen(events, groups == PhaseGroup.COMPLETE), self._window)

    def _count_phases(self, events: Sequence[Event], codes: NDArray[np.uint8]) -> None:
        counts = np.bincount(codes)
        phases = {chr(code): int(counts[code]) for code in np.flatnonzero(counts).tolist()}
        if phases.pop(chr(NO_CODE), 0):
            phases.update(Counter(event.ph for event in chosen(events, codes == NO_CODE)))
        for phase, number in phases.items():
            self._report.phases[phase] = self._report.phases.get(phase, 0) + number

    def finish(self, members: dict[str, object]) -> TraceColumns:
        """The columns, with the base added."""
        head = trace_head(members)
        report = self._report
        report.skip(UNPAIRED, self._pairs.left)
        report.kept = len(self._rows)
        if self._rows.negative_durations:
            report.warnings.append(f"{self._rows.negative_durations:,} events have a negative duration")
        if self._rows.unknown_durations:
            report.warnings.append(f"{self._rows.unknown_durations:,} events have no usable duration; it is taken as 0")
        columns = {field: self._rows.take(field) for field in FIELDS}
        columns["begin_ns"] = np.add(columns["begin_ns"], head.base_ns, out=columns["begin_ns"])
        return TraceColumns(
            **columns,  # type: ignore[arg-type]
            arguments=self._rows.take_arguments(),
            names=list(self._keys.names),
            raw_categories=list(self._keys.raw_categories),
            processes=[key(process) for process in self._keys.processes],
            threads=[key(thread) for thread in self._keys.threads],
            flows=self._flows.finish(head.base_ns),
            counters=self._counters.finish(head.base_ns),
            instants=self._marks.finish(head.base_ns),
            process_names=self._marks.process_names,
            thread_names=self._marks.thread_names,
            head=head,
            report=report,
        )
