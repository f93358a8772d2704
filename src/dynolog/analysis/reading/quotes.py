"""Texts whose writer forgot to escape the quotes in them: `"name": "{"device": "cpu"}(12): run"`."""

import re

# A text that is a value of an object: from its colon to a quote that can end it, which a next key or the end of the object follows.
_VALUE = re.compile(
    rb'("(?:[^"\\]|\\.)*"\s*:\s*")(.*?)'
    rb'(?="\s*(?:,\s*"(?:[^"\\]|\\.)*"\s*:\s*(?:["\[{\d-]|true|false|null)|\}\s*(?:[,\]}]|\Z)))',
    re.DOTALL,
)
_BARE_QUOTE = re.compile(rb'(?<!\\)"')
# Where a member begins: a text that runs over it is not one text with quotes, but damage of another kind.
_NEXT_MEMBER = re.compile(rb'"\s*,\s*"(?:[^"\\]|\\.)*"\s*:')
# The search for ends of texts takes time that grows with the square of the length; an event is rarely longer.
_LONGEST_BYTES = 16 << 10
_MOST_TRIES = 4


def with_quotes_escaped(piece: bytes) -> bytes:
    """The event with quotes inside its texts escaped; where a text ends is a guess that the decoder judges."""
    return piece if len(piece) > _LONGEST_BYTES else _VALUE.sub(_escaped, piece)


def _escaped(match: re.Match[bytes]) -> bytes:
    text = match[2]
    return match[0] if _NEXT_MEMBER.search(text) else match[1] + _BARE_QUOTE.sub(rb"\"", text)


class QuoteRepair:
    """Repairs pieces that may be one event. Of the ever longer pieces that begin at one place only the first few are worth the time."""

    def __init__(self) -> None:
        self._last = b""
        self._tries = 0

    def repaired(self, piece: bytes) -> bytes | None:
        """The piece with quotes escaped; None when nothing was found to escape, or enough was tried."""
        same_begin = len(self._last) > 0 and piece.startswith(self._last)
        self._tries = self._tries + 1 if same_begin else 0
        self._last = piece
        if self._tries >= _MOST_TRIES:
            return None
        text = with_quotes_escaped(piece)
        return text if text != piece else None
