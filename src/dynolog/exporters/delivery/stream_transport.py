"""Payloads over a connection on which nothing comes back: TCP to a relay, or a unix stream socket."""

import contextlib
import fcntl
import os
import socket
import termios
import time
from collections.abc import Callable

from dynolog.exporters.delivery.payload import Delivered, Payload, RetryLater, Verdict
from dynolog.model.errors import FlagError

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.0005, 0.05
_MOST_READS = 64
_LONGEST_UNIX_PATH = 107


class StreamTransport:
    """Keeps one connection, made at the first payload and again after each failure.

    `connect` makes it within the seconds that it is given. Nothing on such a wire says that a payload was taken, so for TCP one
    counts as delivered when the other side's kernel has acknowledged its last byte (SIOCOUTQ, tcp(7)): what a relay that dies has not
    acknowledged is sent again on the next connection. A unix socket takes a payload when its buffer has.
    """

    def __init__(self, connect: Callable[[float], socket.socket], timeout_s: float = 5.0) -> None:
        self._connect = connect
        self.timeout_s = timeout_s
        self._connection: socket.socket | None = None

    def send(self, payload: Payload) -> Verdict:
        """One attempt; a connection that the other side has closed meanwhile is replaced first."""
        connection = self._connection
        try:
            if connection is not None and _is_closed(connection):
                self.close()
                connection = None
            if connection is None:
                connection = self._connection = self._connect(self.timeout_s)
            connection.settimeout(self.timeout_s)
            connection.sendall(payload.body)
            if connection.family != socket.AF_UNIX:
                _wait_for_acknowledgement(connection, self.timeout_s)
        except OSError as error:
            self.close()
            return RetryLater(error.strerror or str(error))
        return Delivered()

    def close(self) -> None:
        """Drop the connection; a send in another thread fails."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):  # it may never have been up
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def tcp(address: str, port: int) -> Callable[[float], socket.socket]:
    """Connects to an address (IPv4, IPv6 or a name) and port."""

    def connect(timeout_s: float) -> socket.socket:
        return socket.create_connection((address, port), timeout_s)

    return connect


def unix_stream(path: str) -> Callable[[float], socket.socket]:
    """Connects to a socket file. Raises FlagError when its path is too long to be one."""
    return _unix(path, socket.SOCK_STREAM)


def unix_datagram(path: str) -> Callable[[float], socket.socket]:
    """Connects to a datagram socket file. Raises FlagError when its path is too long to be one."""
    return _unix(path, socket.SOCK_DGRAM)


def _unix(path: str, kind: socket.SocketKind) -> Callable[[float], socket.socket]:
    if len(os.fsencode(path)) > _LONGEST_UNIX_PATH:
        raise FlagError(f"a socket path has at most {_LONGEST_UNIX_PATH} bytes, and this one has more: {path}")

    def connect(timeout_s: float) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, kind)
        try:
            made.settimeout(timeout_s)
            made.connect(path)
        except OSError:
            made.close()
            raise
        return made

    return connect


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed. What it says is thrown away, a bounded part of it at a time."""
    connection.setblocking(False)
    for _ in range(_MOST_READS):
        try:
            if not connection.recv(4096):
                return True
        except BlockingIOError:
            return False
        except OSError:
            return True
    return False


def _wait_for_acknowledgement(connection: socket.socket, timeout_s: float) -> None:
    """Until the kernel holds nothing that was not acknowledged. Raises TimeoutError, or what broke the connection."""
    unacknowledged = bytearray(4)  # an int
    deadline = time.monotonic() + timeout_s
    look_s = _FIRST_LOOK_S
    while (descriptor := connection.fileno()) >= 0:
        # A connection that was reset has nothing left to acknowledge either; only its error tells.
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, unacknowledged)
        if number := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(number, os.strerror(number))
        if not any(unacknowledged):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not acknowledged within {timeout_s:g} s")
        time.sleep(look_s)
        look_s = min(look_s * 2, _LONGEST_LOOK_S)
    raise OSError("the connection was closed")
