"""Fetching a written trace: chunk by chunk, from where an earlier try stopped, checked at the end."""

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from dynolog.model.errors import DynologError
from dynolog.rpc.channel import MAX_REPLY_BYTES, Channel
from dynolog.rpc.client import Target, connect, decode, encode, raise_for_lost
from dynolog.rpc.messages import FetchReply, FetchTrace


class FetchInterrupted(DynologError):  # noqa: N818 - it is a state of the world
    """The stream ended before the file did. `next_offset` is where to go on."""

    def __init__(self, name: str, next_offset: int, size_bytes: int) -> None:
        super().__init__(f"{name}: the daemon stopped after {next_offset} of {size_bytes} bytes: ask again")
        self.next_offset = next_offset


class FetchedFileDiffers(DynologError):  # noqa: N818 - as above
    """What was fetched is not what was written."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: its SHA-256 is not that of the file that was written: fetch it again")


class Fetch:
    """An answer to fetchTrace: `reply` says what the file is, iterating gives its bytes from the offset on. A context manager.

    The target's timeout is for each chunk, not for the whole.
    """

    def __init__(self, target: Target, capture_id: str, offset: int = 0) -> None:
        self._target = target
        body = encode(target, FetchTrace(capture_id=capture_id, offset=offset))
        self._channel: Channel = connect(target, target.timeout_s)
        try:
            self._channel.send_frame(body)
            self.reply = decode(target, self._channel.receive_frame(), FetchReply)
        except OSError as error:
            self.close()
            raise_for_lost(target, error, target.timeout_s)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, wherever the stream is."""
        self._channel.__exit__()

    def __iter__(self) -> Iterator[bytes]:
        """The chunks. Raises FetchInterrupted when they end before the file does."""
        position = self.reply.offset
        try:
            while True:
                self._channel.extend(self._target.timeout_s)
                # One that sends more than it has announced fills no disk here.
                rest_bytes = self.reply.size_bytes - position
                chunk = self._channel.receive_frame(max(min(self.reply.chunk_bytes, rest_bytes, MAX_REPLY_BYTES), 0))
                if not chunk:
                    break
                position += len(chunk)
                yield chunk
        except OSError as error:
            raise FetchInterrupted(self.reply.name, position, self.reply.size_bytes) from error
        if position != self.reply.size_bytes:
            raise FetchInterrupted(self.reply.name, position, self.reply.size_bytes)


class Sink(Protocol):
    """Where the bytes go: an open binary file."""

    def write(self, data: bytes, /) -> object:
        """Take all of it."""
        ...


def fetch_to(target: Target, capture_id: str, sink: Sink, tries: int = 3) -> FetchReply:
    """Write the whole file into `sink`, going on after an interruption, and check its SHA-256.

    Raises what `Fetch` raises, FetchInterrupted after the last try, and FetchedFileDiffers.
    """
    import hashlib  # noqa: PLC0415 - it loads libcrypto, which the other commands do not need

    digest = hashlib.sha256()
    offset = 0
    while True:
        tries -= 1
        with Fetch(target, capture_id, offset) as fetch:
            try:
                for chunk in fetch:
                    sink.write(chunk)
                    digest.update(chunk)
                    offset += len(chunk)
            except FetchInterrupted:
                if tries <= 0:
                    raise
                continue
            if fetch.reply.sha256 != digest.hexdigest():
                raise FetchedFileDiffers(fetch.reply.name)
            return fetch.reply
