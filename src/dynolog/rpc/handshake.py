"""TLS handshakes: each of bounded time and memory, one step of one of them in a round of the loop.

A step costs up to two milliseconds (a signature, and the check of another); hundreds of clients at once must not keep a trainer waiting.
"""

import asyncio
import contextlib
import logging
import socket
import ssl

from dynolog.model.errors import RequestError
from dynolog.rpc.certificate import CertificateNames
from dynolog.rpc.connection import Connection
from dynolog.rpc.connection_table import ConnectionTable
from dynolog.rpc.deadline_queue import DeadlineQueue
from dynolog.rpc.origin import origin_of
from dynolog.rpc.refusal_log import RefusalLog
from dynolog.rpc.server_tls import ServerTls
from dynolog.rpc.tls_errors import why_handshake_failed
from dynolog.rpc.tls_socket import Step, TlsSocket
from dynolog.rpc.turns import Turns
from dynolog.sources.heap import give_memory_back

log = logging.getLogger(__name__)

_HANDSHAKE_RECORD = 0x16
_PLAIN = RequestError(
    "tls_required",
    "this port speaks TLS: give `dyno --tls-ca FILE` (and --tls-cert, --tls-key), or use the unix socket",
)


class Handshake:
    """One client until its handshake is done; then it becomes a Connection. Created for an accepted non-blocking socket."""

    __slots__ = ("_asked_s", "_loop", "_sock", "_table", "_task")

    def __init__(self, table: "Handshakes", sock: socket.socket) -> None:
        self._table = table
        self._loop = table.loop
        self._sock: socket.socket | None = sock
        self._asked_s = 0.0
        self._task = self._loop.create_task(self._run(sock))

    @property
    def task(self) -> asyncio.Task[None]:
        """What carries it on."""
        return self._task

    @property
    def waits_s(self) -> float:
        """For how long it has been the client's turn; 0 while it is ours."""
        return self._loop.time() - self._asked_s if self._asked_s else 0.0

    def expire(self) -> None:
        """Its time is over, unless it is us who keep it waiting."""
        if self._asked_s:
            self._table.expired += 1
            self.close()
        else:
            self._table.again(self)

    def close(self) -> None:
        """End it in any state."""
        self._table.forget(self)
        self._task.cancel()
        if self._sock is not None:
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()
            self._sock = None

    async def _run(self, sock: socket.socket) -> None:
        try:
            if not await self._speaks_tls(sock):
                return
            context = await self._table.tls.current()
            await self._table.turns.take()
            stream = TlsSocket(sock, context)
            while True:
                self._table.steps += 1
                step = stream.shake()
                if step is Step.DONE:
                    break
                await self._until(sock, step)
                await self._table.turns.take()
            self._hand_over(stream, stream.certificate)
        except ssl.SSLError as error:
            self._refuse(sock, RequestError("tls_failed", why_handshake_failed(error)))
        except OSError as error:
            log.debug("rpc: a client left during its handshake: %s", error)
            self.close()
        except Exception:
            # The boundary of a connection: what OpenSSL says is caught above, so this is a fault of ours.
            self._table.connections.methods.internal_errors += 1
            log.exception("rpc: a TLS handshake failed")
            self.close()

    async def _speaks_tls(self, sock: socket.socket) -> bool:
        """Look at its first bytes. A frame without TLS is answered without TLS: its client shall know what to do."""
        await self._until(sock, Step.READ)
        first = sock.recv(3, socket.MSG_PEEK)
        if not first:
            self.close()
            return False
        # A record of TLS: handshake, 3.1 to 3.4. A frame that begins so would be longer than any request.
        if (
            first[0] == _HANDSHAKE_RECORD
            and first[1:2] in (b"\x03", b"")
            and first[2:3] in (b"\1", b"\2", b"\3", b"\4", b"")
        ):
            return True
        self._table.plain += 1
        self._note(sock, "a request without TLS", _PLAIN)
        self._leave()
        Connection(self._table.connections, sock).turn_away(_PLAIN.code, _PLAIN.sentence)
        return False

    async def _until(self, sock: socket.socket, step: Step) -> None:
        wake = self._loop.create_future()
        self._asked_s = self._loop.time()
        add, remove = (
            (self._loop.add_reader, self._loop.remove_reader)
            if step is Step.READ
            else (self._loop.add_writer, self._loop.remove_writer)
        )
        add(sock, _settle, wake)
        try:
            await wake
        finally:
            self._asked_s = 0.0
            if self._sock is not None:  # else it is closed, and its number may be another's
                remove(sock)

    def _leave(self) -> None:
        """The socket goes to somebody else."""
        self._table.forget(self)
        self._sock = None

    def _hand_over(self, stream: TlsSocket, certificate: CertificateNames | None) -> None:
        self._table.done += 1
        self._leave()
        Connection(self._table.connections, stream, certificate).start()

    def _refuse(self, sock: socket.socket, error: RequestError) -> None:
        self._table.failed += 1
        self._note(sock, "a TLS handshake", error)
        self._leave()
        # A client of TLS 1.3 has sent its request already: unread, it would destroy the alert that tells the client why.
        Connection(self._table.connections, sock).read_away()

    def _note(self, sock: socket.socket, what: str, error: RequestError) -> None:
        with contextlib.suppress(OSError):  # it has left meanwhile
            self._table.refusals.add(origin_of(sock), what, error)


def _settle(wake: "asyncio.Future[None]") -> None:
    if not wake.done():
        wake.set_result(None)


class Handshakes:
    """All handshakes under way, and the limits on them."""

    MOST = 256
    # Of so many at once and more, the memory is worth giving back: 45 kB each, which the C library would keep.
    CROWD = 32
    CALM_S = 1.0
    # A client that has said nothing for so long may go for a new one.
    SLOW_S = 3.0

    def __init__(self, tls: ServerTls, connections: ConnectionTable, refusals: RefusalLog, timeout_s: float) -> None:
        self.loop = connections.loop
        self.tls = tls
        self.connections = connections
        self.refusals = refusals
        self.turns = Turns()
        self.steps = 0
        self.done = 0
        self.failed = 0
        self.plain = 0
        self.expired = 0
        self._calm: asyncio.TimerHandle | None = None
        self._giving_back: asyncio.Task[bool] | None = None
        self._all: DeadlineQueue[Handshake] = DeadlineQueue(self.loop, timeout_s, Handshake.expire)

    def __len__(self) -> int:
        return len(self._all)

    def start(self, sock: socket.socket) -> None:
        """Begin one."""
        self._all.add(Handshake(self, sock))
        if len(self._all) == self.CROWD and self._calm is None:
            self._calm = self.loop.call_later(self.CALM_S, self._when_calm)

    def _when_calm(self) -> None:
        """Give the memory of a crowd back once it has gone."""
        self._calm = self.loop.call_later(self.CALM_S, self._when_calm) if len(self._all) else None
        if self._calm is None:
            self._giving_back = self.loop.create_task(self.connections.threads.run(give_memory_back))

    def again(self, handshake: Handshake) -> None:
        """Its time begins anew."""
        self._all.add(handshake)

    def forget(self, handshake: Handshake) -> None:
        """One ended."""
        self._all.discard(handshake)

    def make_room(self, slow_s: float = 0.0) -> bool:
        """Close the oldest whose client has kept us waiting for so long. Whether there was one."""
        slow = next((one for one in self._all if one.waits_s >= slow_s), None)
        if slow is not None:
            slow.close()
        return slow is not None

    def has_room(self) -> bool:
        """Whether one more may begin: else clients wait in the kernel's queue for a moment."""
        return len(self._all) < self.MOST or self.make_room(self.SLOW_S)

    async def close(self) -> None:
        """End all of them."""
        tasks = [handshake.task for handshake in self._all]
        for handshake in list(self._all):
            handshake.close()
        self._all.stop()
        if self._calm is not None:
            self._calm.cancel()
        await self.tls.close()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
