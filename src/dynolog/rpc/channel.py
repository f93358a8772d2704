"""A blocking connection that sends and receives frames before a deadline."""

import socket
import time
from typing import Any, Self

from dynolog.rpc.client_tls import ClientTls
from dynolog.rpc.framing import LENGTH, frame

MAX_REPLY_BYTES = 64 << 20
_PIECE_BYTES = 1 << 18


class ClosedEarly(OSError):  # noqa: N818 - what happened to it is its name
    """The other side closed before the frame was complete. `received` is what came of it, its header included."""

    def __init__(self, received: bytes) -> None:
        super().__init__(f"{len(received)} bytes of it came")
        self.received = received


class BadLength(OSError):  # noqa: N818 - as above
    """A frame that says it is longer than any reply, or shorter than nothing: the other side speaks another protocol."""

    def __init__(self, header: bytes) -> None:
        super().__init__(f"its answer begins with {header!r}")
        self.header = header


class NoHandshake(OSError):  # noqa: N818 - as above
    """The other side took the connection, and did not answer in TLS."""


class Channel:
    """One connection. Everything on it must be done before the deadline, else TimeoutError; `extend` moves it."""

    def __init__(self, sock: socket.socket, deadline_s: float) -> None:
        self._sock = sock
        self._deadline_s = deadline_s

    @classmethod
    def to_unix(cls, path: str, timeout_s: float) -> Self:
        """Connect to a unix socket. Raises OSError."""
        deadline_s = time.monotonic() + timeout_s
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout_s)
            sock.connect(path)
        except BaseException:
            sock.close()
            raise
        return cls(sock, deadline_s)

    @classmethod
    def to_tcp(cls, hostname: str, port: int, timeout_s: float, tls: ClientTls | None = None) -> Self:
        """Connect to the first address of `hostname` that answers; each gets its share of the time. Raises OSError of the last.

        With `tls`, an error of the handshake is an ssl.SSLError or NoHandshake, and no other address is tried then.
        """
        context = tls.context() if tls is not None else None
        deadline_s = time.monotonic() + timeout_s
        failure = OSError(f"{hostname} has no address")
        addresses = _addresses(hostname, port)
        for index, (family, address) in enumerate(addresses):
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:  # IPv6 is off
                failure = error
                continue
            try:
                sock.settimeout(max((deadline_s - time.monotonic()) / (len(addresses) - index), 0.001))
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                failure = error
                sock.close()
                continue
            break
        else:
            raise failure
        if context is None or tls is None:
            return cls(sock, deadline_s)
        try:
            sock.settimeout(max(deadline_s - time.monotonic(), 0.001))
            return cls(context.wrap_socket(sock, server_hostname=tls.name_for(hostname)), deadline_s)
        except (TimeoutError, ConnectionError) as error:
            sock.close()
            raise NoHandshake from error
        except BaseException:
            sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def extend(self, timeout_s: float) -> None:
        """From now on, be done in `timeout_s`."""
        self._deadline_s = time.monotonic() + timeout_s

    def send_frame(self, body: bytes) -> None:
        """Send header and body together. A server that has already refused it may close: its answer is still there to be received."""
        self._limit()
        try:
            self._sock.sendall(frame(body))
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive_frame(self, limit_bytes: int = MAX_REPLY_BYTES) -> bytes:
        """The next frame, however many pieces it comes in. Raises ClosedEarly, BadLength, TimeoutError, OSError."""
        header = self._receive(LENGTH.size)
        (length,) = LENGTH.unpack(header)
        if not 0 <= length <= limit_bytes:
            raise BadLength(header)
        return self._receive(length, header)

    def _receive(self, size: int, header: bytes = b"") -> bytes:
        received = bytearray()
        while len(received) < size:
            self._limit()
            piece = self._sock.recv(min(size - len(received), _PIECE_BYTES))
            if not piece:
                raise ClosedEarly(header + received)
            received += piece
        return bytes(received)

    def _limit(self) -> None:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._sock.settimeout(left_s)


def _addresses(hostname: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    if hostname == "localhost":
        # Both, without asking a resolver: /etc/hosts often knows one of them only.
        return [(socket.AF_INET6, ("::1", port)), (socket.AF_INET, ("127.0.0.1", port))]
    host = hostname.strip("[]")
    try:
        # As bytes where that says the same: for a str the codec of international names is loaded, which takes 10 ms.
        name = host.encode("ascii") if host.isascii() else host
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except ValueError as error:  # a name that none can be
        raise OSError(f"{hostname!r} is not a host name") from error
    return [(int(family), address) for family, _, _, _, address in found]
