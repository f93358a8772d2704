"""What a request is answered with: one frame, or a file to stream."""

import os
from collections.abc import Callable

import msgspec

from dynolog.rpc.messages import Failed
from dynolog.rpc.services import WrittenTrace

_encode = msgspec.json.Encoder().encode


class Fetch(msgspec.Struct, frozen=True):
    """The answer to fetchTrace: not one frame, but an open file to stream from `offset` on. Whoever gets it calls `end` once nothing reads
    the file any more.
    """

    trace: WrittenTrace
    offset: int
    give_back: Callable[[], None]

    def end(self) -> None:
        """Close the file, and let its caller have another one."""
        os.close(self.trace.fd)
        self.give_back()


Answer = bytes | Fetch


def failed(code: str, error: str) -> bytes:
    """The encoded reply to what could not be done."""
    # A lone surrogate, which JSON can spell, cannot be sent back.
    return _encode(Failed(code=code, error=error.encode("utf-8", "replace").decode()))
