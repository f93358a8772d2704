"""Batches of events for columns: the streaming reader of traces, with counters kept whole and every kind of damage survived."""

from collections.abc import Iterable, Iterator

import msgspec

from dynolog.analysis.event_fields import Arguments, Event, RawEvent
from dynolog.profiling.trace_bytes import NotATrace, TraceText, TraceUnreadable
from dynolog.profiling.trace_reader import TraceReader
from dynolog.profiling.trace_recovery import JSON_ERRORS, mended

_COUNTER = b'"C"'
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


class EventReader(TraceReader[Event | RawEvent]):
    """Most batches come as Event; one with counters, or damage, as RawEvent, whose `args` are still text."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        super().__init__(blocks, RawEvent)
        self._fast: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])
        self._raw: msgspec.json.Decoder[list[RawEvent]] = msgspec.json.Decoder(list[RawEvent])

    def _decode_batch(self, text: bytes) -> list[Event | RawEvent]:
        if _COUNTER in text:
            return self._raw.decode(text)  # type: ignore[return-value]
        return self._fast.decode(text)  # type: ignore[return-value]


def arguments_of(text: msgspec.Raw) -> Arguments | None:
    """The arguments of an event that came as text; None when they are no object."""
    for piece in (bytes(text), None):
        try:
            return _ARGUMENTS.decode(mended(bytes(text)) if piece is None else piece)
        except JSON_ERRORS:
            continue
    return None
