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


def with_quotes_escaped(piece: bytes) -> bytes:
    """The event with quotes inside its texts escaped; where a text ends is a guess that the decoder judges."""
    return piece if len(piece) > _LONGEST_BYTES else _VALUE.sub(_escaped, piece)


def _escaped(match: re.Match[bytes]) -> bytes:
    text = match[2]
    return match[0] if _NEXT_MEMBER.search(text) else match[1] + _BARE_QUOTE.sub(rb"\"", text)
