"""Batches of events for columns: the streaming reader of traces, with counters kept whole and every kind of damage survived."""

from collections.abc import Iterable, Iterator

import msgspec

from dynolog.analysis.reading.event_fields import Arguments, Event, RawEvent
from dynolog.analysis.reading.quotes import QuoteRepair
from dynolog.profiling.trace_bytes import NotATrace, TraceText, TraceUnreadable
from dynolog.profiling.trace_reader import TraceReader
from dynolog.profiling.trace_recovery import JSON_ERRORS, Recovery, mended

# Counters and names of tracks: what they say stands in arguments with names of their own.
_DESCRIBED = frozenset({"C", "M"})
# What becomes of it, ten times as large, should still be in the cache when it is made into columns.
MOST_BATCH_BYTES = 512 << 10
_ARGUMENTS = msgspec.json.Decoder(Arguments)


class CutText:
    """The text of a trace up to where the file ends, however it ends; `cut` says why it ends early. Raises NotATrace, and OSError."""

    def __init__(self, text: TraceText) -> None:
        self._text = text
        self.size_bytes = 0
        self.cut = ""

    def __iter__(self) -> Iterator[bytes]:
        try:
            for block in self._text:
                self.size_bytes += len(block)
                yield block
        except NotATrace:
            raise
        except TraceUnreadable as error:
            self.cut = error.reason


class EventReader(TraceReader[Event]):
    """Batches of Event. Counters and metadata among them stand once more in `described`, with all their arguments; take them out after
    each batch."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        super().__init__(blocks, Event)
        self._batch_bytes = min(self._batch_bytes, MOST_BATCH_BYTES)
        self._texts: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
        self._raw = msgspec.json.Decoder(RawEvent)
        self.described: list[RawEvent] = []

    def _decode_batch(self, text: bytes) -> list[Event]:
        events = super()._decode_batch(text)
        phases = "".join([event.ph for event in events])
        if any(phase in phases for phase in _DESCRIBED):
            places = [place for place, event in enumerate(events) if event.ph in _DESCRIBED]
            texts = self._texts.decode(text)
            self.described += [self._raw.decode(texts[place]) for place in places]
        return events

    def _recovery(self) -> Recovery[Event]:
        return _EventRecovery(self.described)


class _EventRecovery(Recovery[Event]):
    """Judges an event by its own fields first: arguments that are not as they should be cost only themselves."""

    def __init__(self, described: list[RawEvent]) -> None:
        super().__init__(Event)
        self._described = described
        self._raw = msgspec.json.Decoder(RawEvent)
        self._quotes = QuoteRepair()

    def _decode(self, piece: bytes) -> Event | None:
        try:
            event = self._raw.decode(piece)
            typed = event.typed(_arguments(event.args))
        except JSON_ERRORS:
            return None
        if typed.ph in _DESCRIBED:
            self._described.append(event)
        return typed

    def _mend(self, piece: bytes) -> Event | None:
        text = mended(piece)
        event = self._decode(text)
        if event is None and (repaired := self._quotes.repaired(text)) is not None:
            event = self._decode(repaired)
        return event


def _arguments(text: msgspec.Raw) -> Arguments | None:
    """The arguments of an event; None when they are no object."""
    try:
        return _ARGUMENTS.decode(text)
    except msgspec.ValidationError:
        return None
