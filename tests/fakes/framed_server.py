"""A small threaded server that speaks the RPC framing: it imitates daemons that are not ours, old or misbehaving."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

# The bytes to send after the request, or None to close without a word. Receives the decoded request.
Handler = Callable[[dict[str, Any]], bytes | None]


def frame(message: object) -> bytes:
    """A message, or raw bytes, as a frame."""
    body = message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()
    return struct.pack("=i", len(body)) + body


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise ConnectionError("the client closed early")
        data += piece
    return data


class FramedServer:
    """Answers one request a connection by a handler; `requests` are those that came."""

    def __init__(self, handler: Handler) -> None:
        self.requests: list[dict[str, Any]] = []
        self._handler = handler
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="framed-server", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                (length,) = struct.unpack("=i", _receive_exactly(connection, 4))
                request = json.loads(_receive_exactly(connection, length))
                self.requests.append(request)
                answer = self._handler(request)
                if answer is not None:
                    connection.sendall(answer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@contextlib.contextmanager
def framed_server(handler: Handler) -> Iterator[FramedServer]:
    server = FramedServer(handler)
    try:
        yield server
    finally:
        server.close()


def original_daemon(matched: list[int]) -> Handler:
    """The original C++ daemon: five keys and no more in the answer to a trace request, silence for what it does not know."""

    def handle(request: dict[str, Any]) -> bytes | None:
        match request["fn"]:
            case "getStatus":
                return frame({"status": 1})
            case "getVersion":
                return frame({"version": "0.6.0"})
            case "setKinetOnDemandRequest":
                return frame(
                    {
                        "activityProfilersBusy": 0,
                        "activityProfilersTriggered": matched,
                        "eventProfilersBusy": 0,
                        "eventProfilersTriggered": [],
                        "processesMatched": matched,
                    }
                )
            case _:
                return None

    return handle
