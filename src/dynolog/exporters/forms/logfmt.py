"""logfmt: `key=value` pairs, one record a line; values with spaces, quotes or nothing in them stand in quotes."""

import re
from collections.abc import Mapping

import msgspec

from dynolog.exporters.forms.json_line import flat
from dynolog.exporters.forms.stamps import Stamps
from dynolog.model.json_text import readable
from dynolog.model.record import Record

# A key ends at `=` or at white space and cannot be quoted; `%` is what escapes them.
_NOT_IN_KEYS = re.compile(r'[\s\x00-\x20"=%\x7f-\xa0]')
# What a bare value consists of: everything that no reader takes for the end of the value or for the start of a quote.
_BARE = re.compile(r'[^\s\x00-\x20"=\\\x7f-\xa0]+')
# Characters that JSON leaves as they are, and that some readers take for the end of a line.
_LINE_ENDS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA1), 0x2028, 0x2029)}


def key_text(key: str) -> str:
    """The key with what may not stand in one percent-encoded, so that two keys stay two: `fs_free_bytes./mnt/my%20disk`."""
    return _NOT_IN_KEYS.sub(_percent, readable(key)) or "%"


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def value_text(value: object) -> str:
    """Numbers bare, text bare where that is unmistakable, else in quotes with the escapes of JSON."""
    if not isinstance(value, str):
        return repr(value)
    text = readable(value)
    if _BARE.fullmatch(text):
        return text
    return msgspec.json.encode(text).decode().translate(_LINE_ENDS)


def pairs(fields: Mapping[str, object]) -> str:
    """All pairs on one line, without a newline."""
    return " ".join(f"{key_text(key)}={value_text(value)}" for key, value in fields.items())


class LogfmtLines:
    """Makes the lines of one host: `time=2022-07-21T23:42:34.141104000Z host=gpu17 source=kernel cpu_i=71.34 ...`."""

    def __init__(self, hostname: str) -> None:
        self._hostname = hostname
        self._stamps = Stamps()
        self._keys: dict[str, str] = {}

    def line(self, record: Record) -> bytes:
        """One record, without a newline at its end and with none in it."""
        fields = flat(record, self._stamps.nanos(record.wall_ns), self._hostname)
        return " ".join([f"{self._key(key)}={value_text(value)}" for key, value in fields.items()]).encode()

    def _key(self, key: str) -> str:
        text = self._keys.get(key)
        if text is None:
            if len(self._keys) > 20_000:  # devices that come and go must not fill memory
                self._keys.clear()
            text = self._keys[key] = key_text(key)
        return text
