"""The HTTP side of Prometheus: GET /metrics and nothing else, on one thread, with bounds on what clients may take."""

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs

from dynolog.model.errors import AddressInUse, DynologError, FlagError

_log = logging.getLogger(__name__)
# Accept, Accept-Encoding and the parts of `name[]` to headers and body.
Answer = Callable[[str, str, Sequence[str]], tuple[list[tuple[str, str]], bytes]]
_HEAD_LIMIT_BYTES = 16_384
_CHUNK_BYTES = 65_536
_BACKLOG = 64
_PLAIN = ("Content-Type", "text/plain; charset=utf-8")
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class CannotServe(DynologError):  # noqa: N818 - it is a sentence, said once
    """The address that Prometheus should scrape cannot be listened on."""


def listen(address: str, port: int) -> socket.socket:
    """A listening socket on an IPv4 or IPv6 address; `*` is every address of both, `localhost` is 127.0.0.1.

    Raises AddressInUse, FlagError for what is no address of this machine, and CannotServe. No name server is asked.
    """
    wanted = _wanted(address)
    try:
        return _bind(wanted, port)
    except OSError as error:
        if wanted == "::" and error.errno in _NO_IPV6:
            return listen("0.0.0.0", port)  # noqa: S104 - every address was asked for, and IPv6 is off
        raise _error_of(error, wanted, port) from error


def check_address(address: str) -> None:
    """Raise FlagError for what is no address at all."""
    wanted = _wanted(address)
    try:
        socket.inet_pton(_family(wanted), wanted.partition("%")[0])
    except OSError as error:
        raise _error_of(error, wanted, 0) from error


def _wanted(address: str) -> str:
    return {"*": "::", "": "::", "localhost": "127.0.0.1"}.get(address, address.strip("[]"))


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _bind(address: str, port: int) -> socket.socket:
    family = _family(address)
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        # A restart must not wait for the connections of the daemon before (TIME_WAIT).
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
        host, _, zone = address.partition("%")
        socket.inet_pton(family, host)  # bind(2) by name would ask a name server
        where = (host, port, 0, socket.if_nametoindex(zone) if zone else 0) if ":" in address else (host, port)
        listener.bind(where)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _error_of(error: OSError, address: str, port: int) -> DynologError:
    match error.errno:
        case errno.EADDRINUSE:
            return AddressInUse(
                f"port {port} on {address}, where Prometheus should scrape, is taken: "
                "stop what holds it, or choose another with --prometheus_port"
            )
        case errno.EACCES | errno.EPERM:
            return CannotServe(
                f"no permission to listen on {address} port {port}: choose a --prometheus_port above 1023"
            )
        case errno.EADDRNOTAVAIL | errno.ENXIO | errno.ENODEV:
            return FlagError(
                f"--prometheus_address={address} is not an address of this machine: name one, or * for all"
            )
        case None:
            return FlagError(
                f"--prometheus_address={address} is not an IP address of this machine: type 127.0.0.1, ::1, or * for all"
            )
    return CannotServe(f"cannot listen on {address} port {port} for Prometheus: {error.strerror or error}")


class ScrapeServer:
    """Serves until it is closed. A client has `deadline_s` for all it does; the oldest of more than `most_clients` is cut off.

    Takes `listener` over. Raises RuntimeError when there is no thread to be had.
    """

    def __init__(
        self, listener: socket.socket, answer: Answer, *, deadline_s: float = 10.0, most_clients: int = 32
    ) -> None:
        self._listener = listener
        self._answer = answer
        self._deadline_s = deadline_s
        self._most_clients = most_clients
        self._clients: dict[asyncio.StreamWriter, None] = {}
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._trouble)
        self._said: set[str] = set()
        self._stop = asyncio.Event()
        self._failed = ""
        self._thread = threading.Thread(target=self._run, name="prometheus", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._loop.close()
            listener.close()
            raise

    @property
    def error(self) -> str:
        """Why it does not serve any more, or ""."""
        return self._failed or ("" if self._thread.is_alive() else "the thread that serves Prometheus has ended")

    @property
    def clients(self) -> int:
        """Connections that are open."""
        return len(self._clients)

    def close(self) -> None:
        """Stop serving; connections that are open are cut off."""
        try:
            self._loop.call_soon_threadsafe(self._stop.set)
        except RuntimeError:
            return  # its loop has ended by itself
        self._thread.join(1)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # noqa: BLE001 - the boundary of this thread: shown by `dyno status --verbose`
            self._failed = f"serving Prometheus failed: {error}"
            _log.exception("serving Prometheus failed")
        finally:
            self._listener.close()
            self._loop.close()

    def _trouble(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What asyncio would log with a traceback each second: with no descriptor left, no client can be accepted."""
        error = context.get("exception")
        if not isinstance(error, OSError):
            _log.error("serving Prometheus: %s", context.get("message"), exc_info=error)
            return
        sentence = error.strerror or str(error)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            sentence += ": raise LimitNOFILE (ulimit -n)"
        # Again for the status (daemon.recent_troubles), not for the log.
        is_repeat = sentence in self._said
        self._said.add(sentence)
        _log.warning("a scrape could not be accepted: %s", sentence, extra={"is_repeat": is_repeat})

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._client, sock=self._listener, limit=_HEAD_LIMIT_BYTES)
        await self._stop.wait()
        server.close()
        for writer in list(self._clients):
            writer.transport.abort()
        mine = asyncio.current_task()
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not mine), return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients[writer] = None
        if len(self._clients) > self._most_clients:
            # Whoever is new has something to ask; whoever has been here longest had the time to.
            oldest = next(iter(self._clients))
            del self._clients[oldest]
            oldest.transport.abort()
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._one_request(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has gone or is too slow: its own affair
        except Exception:  # noqa: BLE001 - the boundary of this task
            _log.exception("a scrape failed")
        finally:
            self._clients.pop(writer, None)
            writer.transport.abort()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            status, headers, body = 431, [_PLAIN], b"the request is too long\n"
        else:
            status, headers, body = self._respond(head)
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", "Connection: close", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        # In pieces, so that a client that does not read holds one of them and not a copy of the page.
        for start in range(0, len(body), _CHUNK_BYTES):
            writer.write(body[start : start + _CHUNK_BYTES])
            await writer.drain()

    def _respond(self, head: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return 400, [_PLAIN], b"this is not HTTP/1.1\n"
        method, target, _ = words
        if method != "GET":
            return 405, [_PLAIN, ("Allow", "GET")], b"only GET\n"
        path, _, query = target.partition("?")
        if path == "/":
            return 200, [_PLAIN], b"dynolog: metrics for Prometheus are at /metrics\n"
        if path != "/metrics":
            return 404, [_PLAIN], b"only /metrics is here\n"
        headers = _headers(lines[1:])
        try:
            names = parse_qs(query).get("name[]", [])
            answered, body = self._answer(headers.get("accept", ""), headers.get("accept-encoding", ""), names)
        except Exception:  # noqa: BLE001 - the boundary of a scrape: the next one is tried anew
            _log.exception("a scrape failed")
            return 500, [_PLAIN], b"the metrics could not be put together; the log of dynolog says why\n"
        return 200, answered, body


def _headers(lines: Sequence[str]) -> dict[str, str]:
    """Values by lower-case name; what is given twice is one list (RFC 9110, 5.3)."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
