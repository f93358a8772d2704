"""A streaming reader of Kineto traces: batches of typed events, in bounded memory, lenient about single events, strict about the end."""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from dynolog.profiling.trace_bytes import NotATrace, TraceUnreadable
from dynolog.profiling.trace_recovery import JSON_ERRORS, SEPARATOR, Recovered, Recovery, mended, parse_tail

# Text that is parsed at once. Larger is no faster, and costs memory.
BATCH_BYTES = 1 << 20
# What lies outside the events (device properties, process groups, log messages) is kept whole, up to this.
MAX_METADATA_BYTES = 64 << 20
MAX_EVENT_BYTES = 32 << 20
# So many places of damage are kept.
MAX_PLACES = 100
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER_TRIES = 4
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_EVENTS = re.compile(rb"\s*\]")


class TraceEvent(msgspec.Struct, gc=False):
    """The fields of a trace event that every view needs; times in µs. A time that is missing or not a number is None."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float | None = None
    dur: float | None = None


E = TypeVar("E")


class TraceReader(Generic[E]):
    """Reads one trace: iterate once over batches of events, then look at `metadata`, `damaged` and `mended`.

    `blocks` is the text of the file in pieces of any size (TraceText). `event_type` is the Struct that an event becomes; fields it does not
    have are skipped without being built. Iteration raises TraceUnreadable unless the text is one whole JSON document with nothing after it.
    `damaged` counts events that were dropped, `mended` those that were read after a repair (bare nan, bytes that are not UTF-8);
    `damaged_at` and `mended_at` are the offsets in the text where the first of them begin.
    """

    def __init__(self, blocks: Iterable[bytes], event_type: type[E]) -> None:
        self._blocks = self._counted(blocks)
        self._read_bytes = 0
        self._event_type = event_type
        self._batch_bytes = BATCH_BYTES
        self._batch: msgspec.json.Decoder[list[E]] = msgspec.json.Decoder(list[event_type])  # type: ignore[valid-type]
        self.metadata: dict[str, object] = {}
        self.events = 0
        self.damaged = 0
        self.mended = 0
        self.damaged_at: list[int] = []
        self.mended_at: list[int] = []
        self.metadata_damaged = False

    def __iter__(self) -> Iterator[list[E]]:
        text, bare_list = self._read_header()
        if empty := _NO_EVENTS.match(text):
            self._read_tail(text[empty.end() :], bare_list)
            return
        recovery = self._recovery()
        for block in self._blocks:
            text += block
            if len(text) < self._batch_bytes:
                continue
            events, text, tail = self._parse(text, recovery, final=False)
            self.events += len(events)
            yield events
            if tail is not None:
                self._read_tail(tail, bare_list)
                return
            if len(text) > MAX_EVENT_BYTES:
                raise TraceUnreadable(f"no event ends within {MAX_EVENT_BYTES >> 20} MiB", self.events)
        events, text, tail = self._parse(text, recovery, final=True)
        self.events += len(events)
        yield events
        if tail is None:
            raise TraceUnreadable(f"the file is cut short after {self.events} whole events", self.events)
        self._read_tail(tail, bare_list)

    def _parse(self, text: bytes, recovery: Recovery[E], final: bool) -> tuple[list[E], bytes, bytes | None]:
        """Events, the text that is left, and the text after the closing bracket if it was met."""
        events: list[E] = []
        if cut := _last_separator(text):
            try:
                # One copy: those of megabytes cost page faults.
                events, rest = self._decode_batch(b"".join((b"[", memoryview(text)[: cut[0]], b"]"))), text[cut[1] :]
            except JSON_ERRORS:
                pass  # something in there needs a closer look
            else:
                if not final:
                    return events, rest, None
                text = rest
        found = recovery.recover(text, final)
        self._note(found, self._read_bytes - len(text))
        return events + found.events, text[found.rest :], text[found.tail :] if found.tail >= 0 else None

    def _recovery(self) -> Recovery[E]:
        """What takes a batch apart that does not parse as a whole."""
        return Recovery(self._event_type)

    def _decode_batch(self, text: bytes) -> list[E]:
        """A list of events that is whole. Raises one of JSON_ERRORS."""
        return self._batch.decode(text)

    def _note(self, found: Recovered[E], offset_bytes: int) -> None:
        self.damaged += len(found.damaged_at)
        self.mended += len(found.mended_at)
        for places, found_at in ((self.damaged_at, found.damaged_at), (self.mended_at, found.mended_at)):
            places += [offset_bytes + at for at in found_at[: MAX_PLACES - len(places)]]

    def _counted(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._read_bytes += len(block)
            yield block

    def _read_header(self) -> tuple[bytes, bool]:
        """Take the members before the events; the text from the first event on, and whether the document is a bare list."""
        text = b""
        first_key: re.Match[bytes] | None = None
        for block in self._blocks:
            text += block
            start = text.removeprefix(_BYTE_ORDER_MARK).lstrip()
            if not start:
                continue
            if start.startswith(b"["):
                return start[1:], True
            if not start.startswith(b"{"):
                raise NotATrace("the file is neither JSON nor gzip")
            for key in itertools.islice(_EVENTS_KEY.finditer(text), _HEADER_TRIES):
                first_key = first_key or key
                if self._take_header(text[: key.end()].removeprefix(_BYTE_ORDER_MARK) + b"]}"):
                    return text[key.end() :], False
            if len(text) > (BATCH_BYTES if first_key else MAX_METADATA_BYTES):
                break
        if first_key:
            self.metadata_damaged = True
            return text[first_key.end() :], False
        raise _without_events(text)

    def _take_header(self, document: bytes) -> bool:
        for text in (document, mended(document)):
            try:
                members = msgspec.json.decode(text, type=dict[str, object])
            except JSON_ERRORS:
                continue
            # The key may also stand deeper, inside another member: then it is not the document's.
            if members.pop("traceEvents", None) == []:
                self.metadata.update(members)
                return True
        return False

    def _read_tail(self, tail: bytes, bare_list: bool) -> None:
        parts = [tail]
        size = len(tail)
        for block in self._blocks:
            parts.append(block)
            size += len(block)
            if size > MAX_METADATA_BYTES:
                raise TraceUnreadable(f"more than {MAX_METADATA_BYTES >> 20} MiB follow the events", self.events)
        tail = b"".join(parts)
        if bare_list:
            if tail.strip():
                raise TraceUnreadable(f"{len(tail.strip())} bytes follow the end of the trace", self.events)
            return
        members = parse_tail(tail)
        if members is None:
            raise TraceUnreadable(_bad_tail(tail, self.events), self.events)
        self.metadata.update(members)


def _last_separator(text: bytes) -> tuple[int, int] | None:
    """Where the last event that surely ended ends, and where the next begins."""
    for window in (1 << 11, 1 << 14, 1 << 18, len(text)):
        last = None
        for last in SEPARATOR.finditer(text, max(0, len(text) - window)):  # noqa: B007 - only the last one is wanted
            pass
        if last:
            return last.start() + 1, last.start(1)
    return None


def _without_events(text: bytes) -> TraceUnreadable:
    if not text.strip():
        return NotATrace("the file holds nothing but white space")
    try:
        msgspec.json.decode(text)
    except JSON_ERRORS:
        return TraceUnreadable("the file is cut short before the first event, after 0 whole events")
    return NotATrace("the file is JSON but has no traceEvents: it is not a trace")


def _bad_tail(tail: bytes, events: int) -> str:
    import json  # noqa: PLC0415 - only for a file that is broken already

    text = '{"":0' + tail.decode("utf-8", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return f"the file is cut short or damaged after its {events} events, in what follows them"
    return f"{len(text[end:].strip().encode())} bytes follow the end of the trace"
