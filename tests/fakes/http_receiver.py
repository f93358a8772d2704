"""A real HTTP server for tests of exporters: it keeps the requests and answers what a test scripts."""

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> bytes:
        """Unpacked."""
        return gzip.decompress(self.raw) if self.headers.get("content-encoding") == "gzip" else self.raw


Answer = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    """An ordinary answer; underscores in header names stand for dashes."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return write


class HttpReceiver:
    """`answers` are given in turn, then `then` for ever."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.then: Answer = answer(200)
        self.requests: list[Request] = []
        self.connections = 0
        self.address = ("", 0)
        self.changed = threading.Condition()
        self.stopping = threading.Event()

    @property
    def port(self) -> int:
        return self.address[1]

    def wait_for(self, count: int) -> list[Request]:
        """Until this many requests have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, 20), len(self.requests)
            return list(self.requests)

    def take(self, request: Request) -> Answer:
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
            return self.answers.pop(0) if self.answers else self.then


@contextmanager
def http_receiver(
    tls: ssl.SSLContext | None = None, port: int = 0, make: Callable[[], HttpReceiver] = HttpReceiver
) -> Iterator[HttpReceiver]:
    """A receiver (of a kind of its own, with `make`) that listens on 127.0.0.1 while the block runs."""
    receiver = make()
    open_connections: set[socket.socket] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def setup(self) -> None:
            receiver.connections += 1
            if tls is not None:
                self.request = tls.wrap_socket(self.request, server_side=True)
            super().setup()
            open_connections.add(self.connection)

        def finish(self) -> None:
            open_connections.discard(self.connection)
            super().finish()
            self.connection.close()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.take(Request(self.path, headers, raw))(self)

        do_GET = do_POST  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_arguments: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_arguments: object) -> None: ...

    server = Server(("127.0.0.1", port), Handler)
    receiver.address = ("127.0.0.1", server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
        # A connection that is kept would outlive the server.
        for connection in list(open_connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
