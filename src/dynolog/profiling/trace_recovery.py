"""Single events out of a piece of a trace that does not parse as a whole: a damaged event costs only itself."""

import itertools
import re
from collections import deque
from typing import Generic, TypeVar

import msgspec

E = TypeVar("E")

# Where an event ends and the next begins: the first key of an event is one of the trace format's. The same bytes may stand
# inside an event (a list of objects in its arguments), so a cut here counts only when what lies before it parses.
_FIRST_KEY = rb'(\{)\s*"(?:ph|name|cat|args|ts|dur|pid|tid|id|bp|s)"\s*:'
SEPARATOR = re.compile(rb"\}\s*,\s*" + _FIRST_KEY)
# The same, and with its comma missing or several of them; a comma too many before the closing bracket.
_LOOSE_SEPARATOR = re.compile(rb"\}[\s,]*" + _FIRST_KEY)
_END = re.compile(rb"\}[\s,]*(\])")
# What of the next event is left where a file was cut just behind a whole one: too little to tell that it is one.
_CUT_IN_FIRST_KEY = re.compile(rb'\}(\s*,\s*(?:\{\s*(?:"\w*"?\s*)?)?)\Z')
_LONGEST_REMNANT = 256
# How many places that look like the end of an event may lie inside one.
_JOIN = 16
_ENDS = 64
# To try all these ways takes a millisecond an event; where so many were in vain in one piece of text, only its end is worth it.
_MOST_IN_VAIN = 500

_BARE_NUMBER = re.compile(rb"(?<=[:\[,\s])-?(?:nan|inf|infinity)(?=\s*[,\]}])", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu])')
JSON_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def mended(piece: bytes) -> bytes:
    """The piece with what libkineto is known to write wrongly made right: bare nan and inf, bytes that are not UTF-8, raw control
    characters and stray backslashes in texts."""
    piece = _CONTROL.sub(b" ", piece.decode("utf-8", "replace").encode())
    return _BAD_ESCAPE.sub(b"/", _BARE_NUMBER.sub(b"null", piece))


class Recovered(msgspec.Struct, Generic[E]):
    """What came out: `rest` is where what is not yet decided begins, `tail` where the text after the
    closing bracket does (-1: not seen). `damaged_at` and `mended_at` are where such events begin."""

    events: list[E]
    damaged_at: list[int] = []
    mended_at: list[int] = []
    rest: int = 0
    tail: int = -1

    @property
    def damaged(self) -> int:
        """How many events were dropped."""
        return len(self.damaged_at)


class Recovery(Generic[E]):
    """Takes a text apart event by event."""

    def __init__(self, event_type: type[E]) -> None:
        self._type = event_type
        self._decoder = msgspec.json.Decoder(event_type)

    def recover(self, text: bytes, final: bool) -> Recovered[E]:
        """All events of `text`, which begins at an event. Unless `final`, the last ones may be left for later as `rest`."""
        if final and (remnant := _CUT_IN_FIRST_KEY.search(text, max(len(text) - _LONGEST_REMNANT, 0))):
            text = text[: remnant.start(1)]
        starts, ends, without_comma = _pieces(text, final)
        found = Recovered[E](events=[])
        first = 0
        while first < len(starts):
            # The last piece may be half an event, or lack what follows it, until the file ends.
            if not final and first == len(starts) - 1 and not _END.search(text, starts[first]):
                break
            after = self._take(text, starts, ends, first, found)
            if (after or found.tail >= 0) and starts[first] in without_comma:
                found.mended_at.append(starts[first])
            if found.tail >= 0:
                return found
            if not after:
                if not final and first + _JOIN >= len(starts):
                    break
                # An event that lacks nothing but its end was cut, even where a list inside it closes as the list of events would.
                if final and _is_cut(memoryview(text)[starts[first] :], mend=first + _JOIN >= len(starts)):
                    break
                if final and first == len(starts) - 1 and self._damaged_last(text, starts[first], found):
                    return found
                if final and first == len(starts) - 1:
                    break
                found.damaged_at.append(starts[first])
                after = first + 1
            first = after
        found.rest = starts[first] if first < len(starts) else len(text)
        return found

    def _take(self, text: bytes, starts: list[int], ends: list[int], first: int, found: Recovered[E]) -> int:
        """Add the event that begins at piece `first`; the index of the next piece, or 0 when there is no event."""
        start = starts[first]
        if first < len(ends) and (event := self._decode(text[start : ends[first]])) is not None:
            found.events.append(event)
            return first + 1
        if found.damaged > _MOST_IN_VAIN and first + _JOIN < len(starts):
            return 0
        last = min(first + _JOIN, len(ends))
        # Where the event may end: before a separator, or before the bracket that closes the list of events.
        places = [(ends[piece], piece + 1, -1) for piece in range(first, last)]
        window = ends[last - 1] if last < len(ends) else len(text)
        closing = itertools.islice(_END.finditer(text, start, window), _ENDS)
        places += [(match.start() + 1, 0, match.end(1)) for match in closing]
        places.sort()
        for mend in (False, True):
            for end, after, tail in places:
                event = self._mend(text[start:end]) if mend else self._decode(text[start:end])
                if event is not None:
                    if mend or (tail >= 0 and b"," in text[end:tail]):
                        found.mended_at.append(start)
                    found.events.append(event)
                    found.tail = tail
                    return after
        return 0

    def _damaged_last(self, text: bytes, start: int, found: Recovered[E]) -> bool:
        """Whether the last event is only damaged: what follows it is the right end of a trace."""
        # Only the last places: each is tried with all the text behind it, so that thousands of them would take minutes.
        for match in deque(_END.finditer(text, start), maxlen=_ENDS):
            tail = text[match.end(1) :]
            if parse_tail(tail) is not None or not tail.strip():
                found.damaged_at.append(start)
                found.tail = match.end(1)
                return True
        return False

    def _decode(self, piece: bytes) -> E | None:
        try:
            return self._decoder.decode(piece)
        except JSON_ERRORS:
            return None

    def _mend(self, piece: bytes) -> E | None:
        try:
            return msgspec.convert(msgspec.json.decode(mended(piece)), self._type, strict=False)
        except JSON_ERRORS:
            return None


def _pieces(text: bytes, final: bool) -> tuple[list[int], list[int], set[int]]:
    """Where events begin and end, and which begins lack their one comma before them."""
    starts = [0]
    ends: list[int] = []
    without_comma: set[int] = set()
    for match in _LOOSE_SEPARATOR.finditer(text):
        ends.append(match.start() + 1)
        starts.append(match.start(1))
        if text[ends[-1] : starts[-1]].strip() != b",":
            without_comma.add(starts[-1])
    if final:
        ends.append(len(text))
    return starts, ends, without_comma


def _is_cut(piece: memoryview, mend: bool) -> bool:
    """Whether the piece is JSON as far as it goes, and goes on; `mend`: after a repair, too, which takes its time."""
    for text in (piece, None) if mend else (piece,):
        try:
            msgspec.json.decode(mended(bytes(piece)) if text is None else text)
        except msgspec.DecodeError as error:
            if "truncated" in str(error):
                return True
        except JSON_ERRORS:
            continue
    return False


def parse_tail(tail: bytes) -> dict[str, object] | None:
    """The members after the events: `, "traceName": ... }` to the end of the file; None when that is not what it is."""
    for text in (b'{"":0' + tail, None):
        try:
            members = msgspec.json.decode(text if text is not None else mended(b'{"":0' + tail), type=dict[str, object])
        except JSON_ERRORS:
            continue
        members.pop("", None)
        return members
    return None
