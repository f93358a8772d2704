"""From one trace to another in one pass: which events stay, and what changes in them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec
import numpy as np

from dynolog.analysis.editing.event_texts import EventText, EventTextReader, TextBatch, members
from dynolog.analysis.editing.trace_writer import Text, TraceWriter
from dynolog.analysis.editing.viewer_limits import ViewerLimits
from dynolog.analysis.reading.columns import NONE, Mask
from dynolog.analysis.reading.event_reader import CutText
from dynolog.analysis.reading.read_report import NO_TIME, ReadReport
from dynolog.profiling.trace_bytes import BLOCK_BYTES, NotATrace, TraceText, TraceUnreadable, telling

Fields = dict[str, msgspec.Raw]


Filter = Callable[[TextBatch], Mask]


class Change(Protocol):
    """Something that is done to events; several are done one after the other, in one pass."""

    def touches(self, batch: TextBatch) -> Mask:
        """Which events of a batch `change` has to see; called for every batch, in the order of the file."""
        ...

    def change(self, fields: Fields, row: int, /) -> None:
        """Change the members of event `row` of that batch in place."""
        ...


class Rewriting:
    """Reads one file and writes the events that pass all filters, changed, and within what viewers can hold (viewer_limits).

    `report` says what reading came across.
    """

    def __init__(
        self,
        path: str,
        filters: Sequence[Filter],
        changes: Sequence[Change],
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._path = path
        self._filters = filters
        self._limits = ViewerLimits()
        self._changes = (*changes, self._limits)
        self._progress = progress
        self.report = ReadReport(path=path)
        self.members: Mapping[str, object] = {}

    def run(self, writer: TraceWriter, begin: Callable[[Mapping[str, object]], None]) -> None:
        """Write the events; `begin` is called with the members that stand before them. Raises NotATrace, and OSError."""
        with open(self._path, "rb", buffering=0) as file:
            text = TraceText(telling(partial(file.read, BLOCK_BYTES), self._progress))
            cut = CutText(text)
            reader = EventTextReader(cut)
            begun = False
            try:
                for events in reader:
                    if not begun:
                        begin(reader.metadata)
                        begun = True
                    writer.add(self._edited(events))
            except TraceUnreadable as error:
                if isinstance(error, NotATrace) and not cut.cut:
                    raise
                self.report.truncated = error.reason
            if not begun:
                begin(reader.metadata)
        self.members = reader.metadata
        self.report.truncated = cut.cut or self.report.truncated
        self.report.events, self.report.damaged, self.report.mended = reader.events, reader.damaged, reader.mended
        self.report.file_bytes, self.report.text_bytes = text.size_bytes, cut.size_bytes
        self.report.compressed = text.compressed
        if lost := self._limits.mended:
            self.report.warnings.append(f"{lost:,} events have no usable duration: written with 0")

    def _edited(self, events: Sequence[EventText]) -> list[Text]:
        batch = TextBatch(events)
        stays = (batch.at_ns != NONE) | np.fromiter((event.ph == "M" for event in events), np.bool_, len(events))
        self.report.skip(NO_TIME, int(np.count_nonzero(~stays)))
        for passes in self._filters:
            stays &= passes(batch)
        touched = [(change, change.touches(batch)) for change in self._changes]
        changed = np.zeros(len(events), np.bool_)
        for _, mask in touched:
            changed |= mask
        texts: list[Text] = []
        for row in np.flatnonzero(stays).tolist():
            if not changed[row]:
                texts.append(events[row].text)
                continue
            fields = members(events[row].text)
            for change, mask in touched:
                if mask[row]:
                    change.change(fields, row)
            texts.append(msgspec.json.encode(fields))
        return texts
