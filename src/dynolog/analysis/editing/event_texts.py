"""Events as the texts that they are in the file, for tools that write traces: what is not changed is passed on to the letter."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from dynolog.analysis.reading.columns import NONE, Integers, Mask
from dynolog.analysis.reading.exact_time import exact_ns
from dynolog.analysis.reading.quotes import QuoteRepair
from dynolog.profiling.trace_reader import TraceReader
from dynolog.profiling.trace_recovery import JSON_ERRORS, Recovery, mended

# Where an event lacks a member: known by its identity, and no number.
NOT_GIVEN = msgspec.Raw(b"null")


class EventText(msgspec.Struct, gc=False):
    """An event's text, and the fields by which it is judged; those may be of any type."""

    ph: object = ""
    cat: object = ""
    name: object = ""
    pid: object = None
    tid: object = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = NOT_GIVEN
    tts: msgspec.Raw = NOT_GIVEN
    tdur: msgspec.Raw = NOT_GIVEN
    text: msgspec.Raw = msgspec.Raw(b"")


class TextBatch:
    """Some events with their times in ns, as in the file (without its base); `at_ns` is NONE where an event has no usable time,
    `duration_ns` where it has no usable duration."""

    def __init__(self, events: Sequence[EventText]) -> None:
        self.events = events
        self.at_ns: Integers = exact_ns([event.ts for event in events])
        self.duration_ns: Integers = exact_ns([event.dur for event in events])
        self.end_ns: Integers = self.at_ns + np.where(self.duration_ns > 0, self.duration_ns, 0)
        self.end_ns[self.at_ns == NONE] = NONE
        self.complete: Mask = np.fromiter((event.ph == "X" for event in events), np.bool_, len(events))


class EventTextReader(TraceReader[EventText]):
    """Batches of EventText. Their texts are strict JSON: what was mended is written as mended."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        super().__init__(blocks, EventText)
        self._texts: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])

    def _decode_batch(self, text: bytes) -> list[EventText]:
        if not text.isascii():
            text.decode()  # the decoder does not look into texts that it skips
        events = super()._decode_batch(text)
        for event, piece in zip(events, self._texts.decode(text), strict=True):
            event.text = piece
        return events

    def _recovery(self) -> Recovery[EventText]:
        return _TextRecovery()


class _TextRecovery(Recovery[EventText]):
    def __init__(self) -> None:
        super().__init__(EventText)
        self._quotes = QuoteRepair()

    def _decode(self, piece: bytes) -> EventText | None:
        try:
            piece.decode()
            event = super()._decode(piece)
        except UnicodeDecodeError:
            return None
        if event is not None:
            event.text = msgspec.Raw(piece)
        return event

    def _mend(self, piece: bytes) -> EventText | None:
        text = mended(piece)
        event = self._decode(text)
        if event is None and (repaired := self._quotes.repaired(text)) is not None:
            event = self._decode(repaired)
        return event


def members(text: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The members of an event, each as its text."""
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def arguments(fields: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """The members of its `args`; none when they are no object."""
    try:
        return msgspec.json.decode(fields.get("args", b"{}"), type=dict[str, msgspec.Raw])
    except JSON_ERRORS:
        return {}


def microseconds(ns: int) -> msgspec.Raw:
    """A time as Kineto writes it: µs with three decimals, exact."""
    sign = "-" if ns < 0 else ""
    return msgspec.Raw(f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}".encode())
