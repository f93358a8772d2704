"""A Prometheus page over HTTP, within limits of time and size. The libraries are imported at the first use."""

import time
from typing import TYPE_CHECKING

from dynolog.model.errors import FlagError, SourceUnavailable

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse
    from urllib3.connection import HTTPConnection

_MOST_BYTES = 8 << 20
_READ_BYTES = 65536
_OK = 200
_REDIRECTS = range(300, 400)
# Prometheus pages are text/plain or this; a plugin that says nothing is believed.
_TYPES = ("text/plain", "application/openmetrics-text")


class MetricsPage:
    """Fetches the page again and again, each time over a new connection: a server that was restarted is another one."""

    def __init__(self, url: str, said_by: str, timeout_s: float = 2.0) -> None:
        """Raises FlagError for a URL (of the flag `said_by`) that cannot be used, and when a library is missing."""
        _need_libraries(said_by)
        self._scheme, self._host, self._port, self._path = _split(url, said_by)
        self._said_by = said_by
        self._timeout_s = timeout_s
        # Without user, password and query: they may be secrets.
        self.shown = f"{self._scheme}://{self._host}:{self._port}{self._path.partition('?')[0]}"

    def read(self) -> str:
        """The page. Raises SourceUnavailable when no page of that kind comes whole in time."""
        import http.client  # noqa: PLC0415 - what urllib3 is made of
        import threading  # noqa: PLC0415 - it is loaded already

        import urllib3  # noqa: PLC0415 - 6 MB that a daemon without this source does without

        connection = self._connection()
        deadline_s = time.monotonic() + self._timeout_s
        # The socket's own timeout is between two bytes; a server that sends one a second would keep us for ever.
        cutter = threading.Timer(self._timeout_s, _cut, (connection,))
        cutter.daemon = True
        try:
            connection.connect()
            cutter.start()
            connection.request("GET", self._path, headers={"Accept": "text/plain"}, preload_content=False)
            body = self._body(connection.getresponse())
        except (http.client.HTTPException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise self._unavailable(self._reason(error, deadline_s)) from error
        finally:
            cutter.cancel()
            connection.close()
        if time.monotonic() >= deadline_s:
            # Cut off: what came may look like a whole page and is not.
            raise self._unavailable(self._late())
        return body.decode("utf-8", "replace")

    def _connection(self) -> "HTTPConnection":
        from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - see read

        if self._scheme == "http":
            return HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        import ssl  # noqa: PLC0415 - 4 MB that only https needs

        return HTTPSConnection(
            self._host, self._port, timeout=self._timeout_s, ssl_context=ssl.create_default_context()
        )

    def _body(self, response: "BaseHTTPResponse") -> bytes:
        if response.status in _REDIRECTS:
            raise ValueError(f"HTTP {response.status}: redirects are not followed")
        if response.status != _OK:
            raise ValueError(f"HTTP {response.status}")
        kind = response.headers.get("Content-Type", _TYPES[0])
        if not kind.lower().startswith(_TYPES) or response.headers.get("Content-Encoding", "identity") != "identity":
            raise ValueError("the answer is no Prometheus page")
        parts: list[bytes] = []
        size = 0
        while part := response.read(_READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > _MOST_BYTES:
                raise ValueError(f"the page is longer than {_MOST_BYTES >> 20} MB")
        return b"".join(parts)

    def _reason(self, error: Exception, deadline_s: float) -> str:
        if time.monotonic() >= deadline_s or isinstance(error, TimeoutError):
            return self._late()
        # What urllib3 says holds the address of an object; what is below it is a plain sentence.
        cause = error.__cause__ or error.__context__
        system = next((link for link in (error, cause) if isinstance(link, OSError) and link.strerror), None)
        if system is not None:
            return str(system.strerror)
        return str(error) if isinstance(error, ValueError) else "the answer breaks off, or is no HTTP"

    def _late(self) -> str:
        return f"no whole answer within {self._timeout_s:g} s"

    def _unavailable(self, reason: str) -> SourceUnavailable:
        return SourceUnavailable(self.shown, reason, f"see whether it runs, and whether {self._said_by} is right")


def _cut(connection: "HTTPConnection") -> None:
    import socket  # noqa: PLC0415 - it is loaded already

    sock = connection.sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it was closed already


def _need_libraries(said_by: str) -> None:
    import importlib.util  # noqa: PLC0415 - once

    for module in ("urllib3", "prometheus_client"):
        if importlib.util.find_spec(module) is None:
            raise FlagError(f"{said_by} needs {module}: pip install 'dynolog[tpu]'")


def _split(url: str, said_by: str) -> tuple[str, str, int, str]:
    import urllib.parse  # noqa: PLC0415 - once

    # The URL is not repeated: a password may stand in it.
    bad = FlagError(f"{said_by} is not a URL that can be used: type one like http://localhost:2112/metrics")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise bad from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username
        or not url.isprintable()
        or " " in url
    ):
        raise bad
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), path
