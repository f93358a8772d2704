"""Frames of the RPC: an int32 length in native byte order, then that many bytes. No I/O here."""

import struct

from dynolog.model.errors import WireError

LENGTH = struct.Struct("=i")
MAX_REQUEST_BYTES = 1 << 20


class FrameRefused(WireError):  # noqa: N818 - what happened to it is its name
    """A header that announces what no request may be."""

    def __init__(self, length: int, limit_bytes: int) -> None:
        super().__init__(
            f"a request says that it has {length} bytes: it must have 1 to {limit_bytes}, after its length as int32"
        )
        self.length = length


def frame(body: bytes) -> bytes:
    """Header and body as one message, so that they leave in one send."""
    return LENGTH.pack(len(body)) + body


class FrameReader:
    """Puts one frame together from pieces. It holds what has arrived and nothing else, whatever the header claims."""

    __slots__ = ("_buffer", "_limit_bytes", "extra_bytes")

    def __init__(self, limit_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._buffer = bytearray()
        self._limit_bytes = limit_bytes
        self.extra_bytes = 0

    @property
    def held_bytes(self) -> int:
        """How much of an unfinished frame is held."""
        return len(self._buffer)

    def feed(self, data: bytes) -> bytes | None:
        """The body once it is complete, None before. Raises FrameRefused as soon as the header is known to be bad.

        Bytes after the frame are dropped and counted in `extra_bytes`: a connection carries one request.
        """
        buffer: bytes | bytearray = data
        if self._buffer:
            self._buffer += data
            buffer = self._buffer
        if len(buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(buffer)
            if not 0 < length <= self._limit_bytes:
                self._buffer = bytearray()
                raise FrameRefused(length, self._limit_bytes)
            end = LENGTH.size + length
            if len(buffer) >= end:
                self.extra_bytes = len(buffer) - end
                body = bytes(buffer[LENGTH.size : end])
                self._buffer = bytearray()
                return body
        if buffer is data:
            self._buffer += data
        return None
