"""Lists of `key=value` pairs as OpenTelemetry's variables and flags hold them (W3C Baggage without properties)."""

import re
from urllib.parse import unquote

from dynolog.model.errors import WireError

# RFC 9110: a field name is a token; of a value we take what every server takes.
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\x20-\x7e\t]*")


def parse_pairs(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs of `a=1,b=x%2Cy`, and the entries that are none, each named without its value.

    A comma ends an entry, the first `=` in it ends the key, and only then percent escapes are decoded, once; `+` is a plus. Spaces
    around keys and values are left out, spaces within stay. Empty entries are nothing.
    """
    pairs, bad = [], []
    for number, entry in enumerate(text.split(","), 1):
        if not entry.strip():
            continue
        raw_key, equals, raw_value = entry.partition("=")
        key = unquote(raw_key.strip())
        if equals and key:
            pairs.append((key, unquote(raw_value.strip())))
        else:
            bad.append(f"entry {number} is not KEY=VALUE")
    return pairs, bad


def parse_headers(text: str) -> tuple[dict[str, str], list[str]]:
    """HTTP or gRPC headers with lower-case names, the last of a name winning, and why entries were left out (never with a value)."""
    pairs, bad = parse_pairs(text)
    headers: dict[str, str] = {}
    for name, value in pairs:
        try:
            _check_header(name, value)
        except WireError as error:
            bad.append(str(error))
        else:
            headers[name.lower()] = value
    return headers, bad


def _check_header(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise WireError("a header has a name with characters that none may have")
    if not _VALUE.fullmatch(value):
        raise WireError(f"the value of header {name} has line breaks, or characters beyond ASCII")
