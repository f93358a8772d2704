"""One connection: a request comes, its reply goes, and the connection ends. Lives on the socket thread and never blocks."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING

from dynolog.rpc.answers import Answer, Fetch, failed
from dynolog.rpc.certificate import CertificateNames
from dynolog.rpc.fetch import send_trace
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.framing import FrameReader, FrameRefused, frame
from dynolog.rpc.origin import Origin, origin_of

if TYPE_CHECKING:
    from dynolog.rpc.connection_table import ConnectionTable
    from dynolog.rpc.tls_socket import TlsSocket

log = logging.getLogger(__name__)

RECEIVE_BYTES = 1 << 16
# What a client may still send after its request or after a refusal, before it is cut off.
MAX_DISCARDED_BYTES = 4 << 20


class Phase(Enum):
    """Where a connection stands."""

    NEW = 0  # just accepted
    RECEIVING = 1  # its request is not complete
    WORKING = 2  # its answer is being made, or streamed
    SENDING = 3  # its reply is not all taken by the kernel
    LINGERING = 4  # replied; what it still sends is read away, because a close with unread bytes destroys the reply (RFC 1122, 4.2.2.13)
    CLOSED = 5


class Connection:
    """Its socket, its phase, and what it holds. Created for an accepted non-blocking socket; `start` does the rest.

    `certificate` is what the client showed in its TLS handshake, which is over.
    """

    __slots__ = (
        "_body_bytes",
        "_certificate",
        "_descriptor",
        "_discarded_bytes",
        "_more_comes",
        "_out",
        "_reader",
        "_reading",
        "_sock",
        "_table",
        "_task",
        "_writable",
        "_writing",
        "half_closed",
        "phase",
    )

    def __init__(
        self,
        table: "ConnectionTable",
        sock: "socket.socket | TlsSocket",
        certificate: CertificateNames | None = None,
    ) -> None:
        self._table = table
        self._certificate = certificate
        self._sock = sock
        self._descriptor = sock.fileno()
        self._reader = FrameReader()
        self._reading = False
        self._writing = False
        self._out: memoryview | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._discarded_bytes = 0
        self._body_bytes = 0
        self._more_comes = False
        self.half_closed = False
        self.phase = Phase.NEW

    @property
    def held_bytes(self) -> int:
        """What this connection keeps in memory: an unfinished request, one that waits for its turn, or an unsent reply."""
        return self._reader.held_bytes + self._body_bytes + (len(self._out) if self._out is not None else 0)

    def start(self) -> None:
        """Most requests are here already when their connection is accepted: those are answered without a round of the loop."""
        self._on_readable()
        if self.phase is Phase.NEW:
            self._enter(Phase.RECEIVING)
            self._read(True)

    def expire(self) -> None:
        """The time of its phase is over."""
        if self.phase is Phase.RECEIVING:
            self._more_comes = True
            self._reply(failed("timeout", "the request was not complete in time"))
        else:
            self.close()

    def refuse(self, code: str, sentence: str) -> None:
        """Say why, as far as the kernel takes it at once, and end."""
        try:
            self._sock.send(frame(failed(code, sentence)))
        except OSError as error:
            log.debug("rpc: a refusal was not taken: %s", error)
        self.close()

    def turn_away(self, code: str, sentence: str) -> None:
        """Say why, so that the client gets to read it, whatever it sends; instead of `start`."""
        self._more_comes = True
        self._reply(failed(code, sentence))

    def read_away(self) -> None:
        """Say nothing more, and let the client read what was said before; instead of `start`."""
        self._more_comes = True
        self._linger()

    def close(self) -> None:
        """End it in any phase."""
        if self.phase is Phase.CLOSED:
            return
        self.phase = Phase.CLOSED
        self._read(False)
        self._write(False)
        self._table.forget(self)
        self._out = None
        if self._task is not None:
            self._task.cancel()
        self._sock.close()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What makes its answer, while something does."""
        return self._task

    def origin(self) -> Origin:
        """Where it comes from. Raises OSError when it is already gone."""
        return origin_of(self._sock, self._certificate)

    # --- receiving -----------------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        match self.phase:
            case Phase.NEW | Phase.RECEIVING:
                self._on_data(data)
            case _:
                self._on_extra(data)

    def _on_data(self, data: bytes) -> None:
        if not data:
            self.close()
            return
        try:
            body = self._reader.feed(data)
        except FrameRefused as error:
            self._table.refused_frames += 1
            self._more_comes = True
            self._reply(failed("bad_frame", str(error)))
            return
        if body is not None:
            self._answer(body)
        elif self.phase is Phase.RECEIVING:
            self._table.grew(self)

    def _on_extra(self, data: bytes) -> None:
        self._discarded_bytes += len(data)
        if not data:
            self.half_closed = True
        if self.phase is Phase.LINGERING:
            if not data or self._discarded_bytes > MAX_DISCARDED_BYTES:
                self.close()
        elif not data or self._discarded_bytes > RECEIVE_BYTES:
            # Half-closed, or chattering: it gets its reply, but is not listened to any more.
            self._read(False)

    # --- answering -----------------------------------------------------------------------------------------------------

    def _answer(self, body: bytes) -> None:
        self._table.requests += 1
        answer = self._table.methods.answer(body, self.origin)
        if isinstance(answer, bytes):
            self._reply(answer)
            return
        self._enter(Phase.WORKING)
        if self.phase is Phase.WORKING:
            self._read(True)
            self._task = self._table.loop.create_task(self._work(answer))
            # Cancelled before its first step, it would leave a coroutine that was never awaited.
            self._task.add_done_callback(lambda _: answer.close())
            self._body_bytes = len(body)
            self._table.grew(self)
        else:
            answer.close()  # the table had no room

    async def _work(self, coming: Awaitable[Answer]) -> None:
        try:
            answer = await coming
            self._body_bytes = 0
            if isinstance(answer, Fetch):
                await self._stream(answer)
                self._task = None
                self._linger()
            else:
                self._task = None
                self._reply(answer)
        except OSError as error:
            log.debug("rpc: a client went away: %s", error)
            self._task = None
            self.close()
        except Exception:
            # The boundary of a connection; methods answer for their own errors, so this is a fault of ours.
            self._table.methods.internal_errors += 1
            log.exception("rpc: a reply could not be sent")
            self._task = None
            self.close()

    async def _stream(self, fetch: Fetch) -> None:
        # Of its own: a trainer's disk may hang for ever, and neither tokens nor other traces shall wait behind it.
        threads = FileThreads(self._table.loop, limit=1, name="rpc-fetch")
        try:
            if self._table.fetches >= self._table.MAX_FETCHES:
                await self.send(frame(failed("busy", "the daemon sends as many traces as it can: try again")))
                return
            self._table.fetches += 1
            try:
                await send_trace(fetch, self.send, threads)
            finally:
                self._table.fetches -= 1
        finally:
            threads.close(fetch.end)

    def _reply(self, body: bytes) -> None:
        if self.phase is Phase.CLOSED:
            return
        data = frame(body)
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.close()
            return
        if sent == len(data):
            self._linger()
            return
        self._out = memoryview(data)[sent:]
        self._enter(Phase.SENDING)
        self._write(True)
        self._table.grew(self)

    def _on_writable(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._write(False)
            self._writable.set_result(None)
            return
        if self._out is None:
            self._write(False)
            return
        try:
            self._out = self._out[self._sock.send(self._out) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if not self._out:
            self._out = None
            self._write(False)
            self._linger()

    async def send(self, data: bytes) -> None:
        """Send all of it, as fast as the client takes it; one that takes nothing for long is closed. Raises OSError when it is gone."""
        rest = memoryview(data)
        self._table.sending.add(self)
        try:
            while rest:
                try:
                    rest = rest[self._sock.send(rest) :]
                except (BlockingIOError, InterruptedError):
                    self._writable = self._table.loop.create_future()
                    self._write(True)
                    await self._writable
        finally:
            self._writable = None
            self._table.sending.discard(self)

    # --- ending --------------------------------------------------------------------------------------------------------

    def _linger(self) -> None:
        """End at once when nothing unread is there, else after the client has seen the end of the reply."""
        if not (self._more_comes or self._reader.extra_bytes) and self.phase is not Phase.CLOSED:
            try:
                unread = self._sock.recv(RECEIVE_BYTES)
            except (BlockingIOError, InterruptedError):
                unread = b""
            except OSError:
                self.close()
                return
            if not unread:
                self.close()
                return
        if self.phase is Phase.CLOSED:
            return
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._enter(Phase.LINGERING)
        self._read(True)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._table.moved(self)

    def _read(self, on: bool) -> None:
        self._reading = self._watch(
            on, self._reading, self._table.loop.add_reader, self._table.loop.remove_reader, self._on_readable
        )

    def _write(self, on: bool) -> None:
        self._writing = self._watch(
            on, self._writing, self._table.loop.add_writer, self._table.loop.remove_writer, self._on_writable
        )

    def _watch(
        self,
        on: bool,
        was_on: bool,
        add: Callable[[int, Callable[[], None]], None],
        remove: Callable[[int], bool],
        react: Callable[[], None],
    ) -> bool:
        if on and not was_on and self.phase is not Phase.CLOSED:
            add(self._descriptor, react)
            return True
        if not on and was_on:
            remove(self._descriptor)
        return on and was_on
