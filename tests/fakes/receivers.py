"""Real sockets that take what exporters send: streams (TCP, unix) and datagrams (UDP, unix)."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_PATIENCE_S = 10.0


class _Receiver:
    """Keeps what comes, and lets a test wait for it."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._changed = threading.Condition()
        self.received: list[bytes] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def stop(self) -> None:
        """Stop listening; what is connected is dropped."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        raise NotImplementedError

    def _take(self, data: bytes) -> None:
        with self._changed:
            self.received.append(data)
            self._changed.notify_all()

    def wait_until(self, enough: Callable[[], bool]) -> None:
        """Until this is so, looked at whenever something has come."""
        with self._changed:
            assert self._changed.wait_for(enough, _PATIENCE_S), self.received[-3:]


class StreamReceiver(_Receiver):
    """Each connection's bytes become one entry of `received`, growing as they come.

    While `gate` is closed it accepts and reads nothing.
    """

    def __init__(self, listening: socket.socket) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self._connection: socket.socket | None = None
        super().__init__(listening)

    @classmethod
    def tcp(cls, port: int = 0) -> "StreamReceiver":
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        return cls(listening)

    @classmethod
    def unix(cls, path: Path) -> "StreamReceiver":
        listening = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        listening.listen()
        return cls(listening)

    def _run(self) -> None:
        while True:
            assert self.gate.wait(_PATIENCE_S)
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connection = connection
            self._take(b"")
            self._read(connection)
            connection.close()

    def _read(self, connection: socket.socket) -> None:
        while True:
            assert self.gate.wait(_PATIENCE_S)
            try:
                data = connection.recv(65536)
            except OSError:
                return
            if not data:
                return
            with self._changed:
                self.received[-1] += data
                self._changed.notify_all()

    @property
    def text(self) -> bytes:
        """Everything, of all connections."""
        return b"".join(self.received)

    def wait_for(self, text: bytes) -> None:
        """Until this has come."""
        self.wait_until(lambda: text in self.text)

    def hang_up(self) -> None:
        """Close the connection there is, and take the next one."""
        assert self._connection is not None
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """End the connection with a reset."""
        assert self._connection is not None
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.hang_up()

    def stop(self) -> None:
        if self._connection is not None:
            self.hang_up()
        super().stop()


class DatagramReceiver(_Receiver):
    """Each datagram is one entry of `received`."""

    @classmethod
    def udp(cls, family: socket.AddressFamily = socket.AF_INET, port: int = 0) -> "DatagramReceiver":
        receiving = socket.socket(family, socket.SOCK_DGRAM)
        receiving.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
        return cls(receiving)

    @classmethod
    def unix(cls, path: Path) -> "DatagramReceiver":
        receiving = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path.unlink(missing_ok=True)
        receiving.bind(str(path))
        return cls(receiving)

    def _run(self) -> None:
        while True:
            try:
                data = self._listening.recv(65536)
            except OSError:
                return
            if not data:
                return  # shut down
            self._take(data)

    @property
    def lines(self) -> list[str]:
        """The lines of all datagrams."""
        return [line for data in list(self.received) for line in data.decode().split("\n")]

    def wait_for(self, line: str) -> None:
        """Until this line has come."""
        self.wait_until(lambda: line in self.lines)


def unused_port() -> int:
    """A TCP port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
