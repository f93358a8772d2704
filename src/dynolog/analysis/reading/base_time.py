"""Finding `baseTimeNanoseconds` without reading the events: it may stand before or behind them."""

import os
import re
from functools import partial

from dynolog.profiling.trace_bytes import BLOCK_BYTES, TraceText, TraceUnreadable

_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})\b')
_ENDS_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"


def find_base_ns(path: str) -> int:
    """The base of a trace's times; 0 when it has none. A compressed file is decompressed to its end. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        first = file.read(_ENDS_BYTES)
        if first.startswith(_GZIP):
            file.seek(0)
            return _in_stream(TraceText(partial(file.read, BLOCK_BYTES)))
        file.seek(max(0, os.fstat(file.fileno()).st_size - _ENDS_BYTES))
        return _last(file.read(_ENDS_BYTES)) or _last(first)


def _in_stream(text: TraceText) -> int:
    kept = b""
    found = 0
    try:
        for block in text:
            kept = kept[-64:] + block
            found = _last(kept) or found
    except TraceUnreadable:
        pass  # cut: then it may be missing, as it is in the file
    return found


def _last(text: bytes) -> int:
    if b"baseTimeNanoseconds" not in text:  # a plain search is ten times as fast as the pattern's
        return 0
    found = _BASE.findall(text)
    return int(found[-1]) if found else 0
