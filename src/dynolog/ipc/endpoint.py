"""One bound datagram socket on the event loop: receives polls, answers each exactly once or not at all."""

import asyncio
import contextlib
import errno
import os
import socket
import struct

from dynolog.collectors.spec import Notices
from dynolog.ipc.address import display
from dynolog.ipc.counters import IpcCounters
from dynolog.ipc.handler import RequestHandler, Sender
from dynolog.ipc.wire import (
    MAX_DATAGRAM_BYTES,
    NO_CONFIG,
    ConfigRequest,
    ContextMessage,
    parse,
    reply_config,
    reply_context,
)
from dynolog.model.errors import WireError
from dynolog.model.trainer import Peer

# Datagrams that are answered before the loop serves others: about a millisecond of work.
BATCH = 64
# Unread answers of all trainers together count against the send buffer of the one socket that answers them, some 768 bytes
# each: enough for a stale answer in the queue of each of 10,000 trainers.
SEND_BUFFER_BYTES = 8 << 20
_SO_SNDBUFFORCE = 32  # socket(7); not in the socket module. Needs CAP_NET_ADMIN.

_CREDENTIALS = struct.Struct("=iII")
# Room for the credentials and for nothing else: descriptors that a sender passes along find none, so the kernel drops them.
_ANCILLARY_BYTES = socket.CMSG_SPACE(_CREDENTIALS.size)


def bound_socket(address: bytes) -> socket.socket:
    """A non-blocking socket bound to `address` whose every datagram comes with its sender's credentials. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        # Before bind, so that no datagram can come without.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # up to net.core.wmem_max
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


class Endpoint:
    """Serves one socket until `close`, whatever is sent to it.

    Lives on the thread of its loop. A trainer is answered only when it will accept the answer: libkineto ends its process when
    one comes from the other kind of address, or from another directory than its own (it compares the text of the path).
    """

    def __init__(
        self,
        sock: socket.socket,
        handler: RequestHandler,
        loop: asyncio.AbstractEventLoop,
        *,
        counters: IpcCounters,
        notices: Notices,
        net_namespace: int = 0,
    ) -> None:
        name = sock.getsockname()
        self.address: bytes = name if isinstance(name, bytes) else os.fsencode(name)
        self.net_namespace = net_namespace
        self._directory = b"" if self.address.startswith(b"\0") else self.address.rpartition(b"/")[0]
        self._socket = sock
        self._handler = handler
        self._loop = loop
        self._counters = counters
        self._notices = notices
        self._buffer = bytearray(MAX_DATAGRAM_BYTES + 1)  # what is cut off to this length is still seen to be too long
        self._view = memoryview(self._buffer)
        self._said: set[str] = set()

    def start(self) -> None:
        """Begin to serve."""
        self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def close(self) -> None:
        """Stop serving and close the socket; what was not read is lost, and the trainers come back at their next poll."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _on_readable(self) -> None:
        for _ in range(BATCH):
            try:
                # The flags need no look: MSG_TRUNC comes with a length that is refused, and MSG_CTRUNC says that descriptors
                # were passed along, and dropped.
                length, ancillary, _flags, source = self._socket.recvmsg_into([self._buffer], _ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._receive_failed(error)
                return
            try:
                self._serve(length, ancillary, source)
            except WireError as error:
                self._counters.malformed += 1
                self._say_once("malformed", f"was dropped: {error}", ancillary)
            except Exception as error:  # noqa: BLE001 - the boundary: no datagram may end the loop
                self._handler_failed("a message", error)
            if self._socket.fileno() < 0:  # a handler closed us
                return

    def _serve(self, length: int, ancillary: list[tuple[int, int, bytes]], source: object) -> None:
        peer = _credentials(ancillary)
        message = parse(self._view[:length])
        address = self._answerable(source, ancillary)
        if address is None:
            self._counters.unanswerable += 1
            return
        self._counters.requests += 1
        sender = Sender(address, self.net_namespace)
        if isinstance(message, ConfigRequest):
            self._answer_request(peer, sender, message)
        else:
            self._answer_context(peer, sender, message)

    def _answerable(self, source: object, ancillary: list[tuple[int, int, bytes]]) -> bytes | None:
        if isinstance(source, bytes) and source:  # an abstract address
            if not self._directory:
                return source
            self._say_once("kind", "has an abstract address and reached the socket file: it is not answered", ancillary)
        elif isinstance(source, str) and source:
            path = os.fsencode(source)
            if self._directory and self._accepts_us(path.rpartition(b"/")[0]):
                return path
            self._say_once(
                "directory",
                f"has its socket at {source} and reached {display(self.address)}: it cannot be answered unless its "
                "KINETO_IPC_SOCKET_DIR is, letter by letter, the directory of --ipc_socket_dir",
                ancillary,
            )
        return None

    def _accepts_us(self, directory: bytes) -> bool:
        """Whether a trainer whose socket is in `directory` takes our path for one in it; the same directory, and so spelled."""
        same = directory.rstrip(b"/") == self._directory.rstrip(b"/")
        return same and self.address.startswith(directory + b"/")

    def _answer_request(self, peer: Peer, sender: Sender, request: ConfigRequest) -> None:
        text: str | None = ""
        try:
            text = self._handler.on_request(peer, sender, request)
            reply = NO_CONFIG if not text else reply_config(text)
        except Exception as error:  # noqa: BLE001 - the boundary: the trainer still waits for its answer
            self._handler_failed(f"a request of pid {peer.pid}", error)
            if text:
                self._reply_failed(peer, sender, text)
            reply = NO_CONFIG
        if text is not None and not self._send(sender.address, reply) and reply is not NO_CONFIG:
            self._reply_failed(peer, sender, text)

    def _answer_context(self, peer: Peer, sender: Sender, message: ContextMessage) -> None:
        try:
            reply = reply_context(self._handler.on_context(peer, sender, message))
        except Exception as error:  # noqa: BLE001 - the boundary: the process still waits for its answer
            self._handler_failed(f"a registration of pid {peer.pid}", error)
            reply = reply_context(-1)
        self._send(sender.address, reply)

    def _reply_failed(self, peer: Peer, sender: Sender, text: str) -> None:
        try:
            self._handler.on_reply_failed(peer, sender, text)
        except Exception as error:  # noqa: BLE001 - the boundary: no datagram may end the loop
            self._handler_failed(f"an answer that pid {peer.pid} did not get", error)

    def _send(self, address: bytes, reply: bytes) -> bool:
        try:
            self._socket.sendto(reply, address)
        except OSError:
            # Gone (ECONNREFUSED, ENOENT), its queue full (EAGAIN), not ours to write (EACCES, EPERM)...: a late answer would be
            # taken for the next poll's, so this one is never sent.
            self._counters.dropped_replies += 1
            return False
        self._counters.replies += 1
        return True

    def _receive_failed(self, error: OSError) -> None:
        if error.errno in (errno.ENOMEM, errno.ENOBUFS):
            return  # the machine is in trouble, not the socket: the loop comes back
        self._say_once("receive", f"stopped the IPC at {display(self.address)}: {error.strerror or error}", None)
        with contextlib.suppress(ValueError):  # closed elsewhere: there is no reader left to remove
            self._loop.remove_reader(self._socket.fileno())

    def _handler_failed(self, what: str, error: Exception) -> None:
        self._counters.handler_failures += 1
        key = f"ipc_failure_{type(error).__name__}"
        if key not in self._said:
            self._said.add(key)
            self._notices.say(key, f"{what} failed inside the daemon: {type(error).__name__}: {error}")

    def _say_once(self, key: str, what: str, ancillary: list[tuple[int, int, bytes]] | None) -> None:
        """Only the first of a kind is said: whoever sends rubbish sends more of it. The counters tell how much."""
        if key in self._said:
            return
        self._said.add(key)
        subject = "a failed read" if ancillary is None else f"a datagram from {_who(ancillary)}"
        self._notices.say(f"ipc_{key}", f"{subject} {what}")


def _who(ancillary: list[tuple[int, int, bytes]]) -> str:
    try:
        return f"pid {_credentials(ancillary).pid}"
    except WireError:
        return "an unknown process"


def _credentials(ancillary: list[tuple[int, int, bytes]]) -> Peer:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) == _CREDENTIALS.size:
            return Peer(*_CREDENTIALS.unpack(data))
    raise WireError("it came without credentials")
