"""The bytes of a trace file, decompressed when they are gzip, without ever holding the whole file."""

import zlib
from collections.abc import Callable, Iterator

from dynolog.model.errors import DynologError

BLOCK_BYTES = 1 << 20
# deflate cannot blow up by more than about 1,032; a small file that claims this much is an attack, not a trace.
MAX_TEXT_BYTES = 64 << 30
_GZIP = b"\x1f\x8b"
_HOLE = bytes(64)
# Within a damaged block, so that hardly anything before the damage is lost.
_SALVAGED_BYTES = 1 << 10


class TraceUnreadable(DynologError):  # noqa: N818 - it is what the file is, not what went wrong here
    """The file is not a whole trace; the text says why, `events` how many whole events came before."""

    def __init__(self, reason: str, events: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.events = events


class NotATrace(TraceUnreadable):
    """The file is something else, or nothing at all; not a trace that lost its end."""


def telling(read: Callable[[], bytes], progress: Callable[[int], None] | None) -> Callable[[], bytes]:
    """The same `read`, which tells `progress` of each block how many more bytes of the file that is."""
    if progress is None:
        return read

    def told() -> bytes:
        block = read()
        if block:
            progress(len(block))
        return block

    return told


class TraceText:
    """Iterates over the text of a trace in blocks; `compressed` tells by the first bytes, not by the name.

    `read` gives the next bytes of the file, b"" at its end (`partial(os.read, fd, BLOCK_BYTES)`). Raises TraceUnreadable for a gzip
    stream that is cut, damaged or followed by something else, and OSError as `read` does.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self.compressed = False
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        first = self._next()
        while 0 < len(first) < 2 and (more := self._next()):
            first += more
        if not first:
            raise NotATrace("the file is empty (0 bytes)")
        self.compressed = first.startswith(_GZIP)
        if self.compressed:
            yield from self._inflate(first)
            return
        while first:
            if (hole := first.find(_HOLE)) >= 0:
                if hole:
                    yield first[:hole]
                raise TraceUnreadable("a part of the file holds only zero bytes: it was never written to the disk")
            yield first
            first = self._next()

    def _next(self) -> bytes:
        block = self._read()
        self.size_bytes += len(block)
        return block

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        produced = 0
        stream = zlib.decompressobj(wbits=31)
        try:
            while True:
                before = stream.copy()  # 40 kB
                try:
                    text = stream.decompress(data, BLOCK_BYTES)
                except zlib.error:
                    yield from _up_to_the_damage(before, data)
                    raise
                produced += len(text)
                if produced > MAX_TEXT_BYTES:
                    raise TraceUnreadable(f"the gzip stream holds more than {MAX_TEXT_BYTES >> 30} GiB")
                if text:
                    yield text
                data = stream.unconsumed_tail
                if stream.eof:
                    data = stream.unused_data or self._next()
                    if not data:
                        return
                    # gzip files may be joined; each member has a header and a checksum of its own.
                    stream = zlib.decompressobj(wbits=31)
                elif not data and not text and not (data := self._next()):
                    raise TraceUnreadable("the gzip stream is cut short")
        except zlib.error as error:
            what = "something that is not gzip follows the stream" if "header" in str(error) else str(error)
            raise TraceUnreadable(f"the gzip stream is damaged: {what}") from None


def _up_to_the_damage(stream: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """What a block that cannot be inflated as a whole still gives: zlib keeps nothing of a call that fails."""
    try:
        while text := stream.decompress(data, _SALVAGED_BYTES):
            yield text
            data = stream.unconsumed_tail
    except zlib.error:
        return
