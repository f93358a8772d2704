"""Payloads as HTTP requests, with urllib3 (extra `http`), which is imported at the first request."""

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dynolog import __version__
from dynolog.exporters.delivery.foreign_words import ForeignWords
from dynolog.exporters.delivery.http_errors import reason_of
from dynolog.exporters.delivery.payload import Delivered, Payload, Refused, RetryLater, Verdict
from dynolog.exporters.delivery.retry_after import retry_after_s
from dynolog.model.errors import FlagError

if TYPE_CHECKING:
    from ssl import SSLContext

    from urllib3 import BaseHTTPResponse, HTTPConnectionPool

_RETRIED = (429, 502, 503, 504)
_REDIRECTS = range(300, 400)
_TAKEN = range(200, 300)
_MOST_BODY_BYTES = 65536
_READ_BYTES = 8192
# How much of a status line is shown.
_MOST_OF_STATUS = 80
_HEADER_NAME = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
_BAD_IN_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files for https: whom to trust ("": the system's authorities), and who we are ("": nobody)."""

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""


class HttpAnswer(msgspec.Struct, frozen=True):
    """A response of status 2xx; `body` is at most 64 kB of it."""

    status: int
    content_type: str
    body: bytes


def _taken(_answer: HttpAnswer) -> Verdict:
    return Delivered()


class HttpTransport:
    """POSTs each payload to `url` (to `url` + `payload.kind` when that starts with a slash), over one connection that is kept.

    `headers` go with every request; their values are never shown, nor are `secrets`, nor the user and password of `url`, which become
    the Authorization header. `on_success` reads the answer to a request that was taken (partial success); `explain` finds the words in
    one to a request that was not, where they are no plain text. Redirects are not followed: the headers are meant for this destination.
    After a failure the connection is made anew, with the files of `tls` read again.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        timeout_s: float = 10.0,
        tls: TlsFiles | None = None,
        secrets: tuple[str, ...] = (),
        on_success: Callable[[HttpAnswer], Verdict] = _taken,
        explain: Callable[[HttpAnswer], str] | None = None,
        said_by: str = "this",
    ) -> None:
        """Raises FlagError for a URL (of the flag `said_by`), header or file that cannot be used, and when urllib3 is not installed."""
        _need_urllib3()
        self._base, self._path, user = _split(url, said_by)
        self.destination = self._base + self._path.partition("?")[0]
        self.timeout_s = timeout_s
        self._tls = tls or TlsFiles()
        _check_files(self._tls)
        given = dict(headers)
        if user:
            given.setdefault("Authorization", _basic(user))
        _check_headers(given)
        self._headers = {"User-Agent": f"dynolog/{__version__}", **given}
        self._words = ForeignWords(given, (*_passwords(user), *secrets))
        self._on_success = on_success
        self._explain = explain
        self._pool: HTTPConnectionPool | None = None
        # The one that was made last, to be cut from another thread: urllib3's, which holds a socket while it is open.
        self._connection: Any = None

    def send(self, payload: Payload) -> Verdict:
        """One request. 429, 502, 503, 504 are RetryLater (with Retry-After), other statuses but 2xx are Refused."""
        import urllib3  # noqa: PLC0415 - 6 MB that a daemon without network exporters does without

        deadline_s = time.monotonic() + self.timeout_s
        try:
            pool = self._open_pool()
            response = pool.urlopen(
                "POST",
                self._target(payload),
                body=payload.body,
                headers=self._headers_for(payload),
                redirect=False,
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self.close()
            return RetryLater(self._words.shown(reason_of(error, self.timeout_s)))
        return self._verdict(response, _read(response, deadline_s))

    def close(self) -> None:
        """Close the connection; a request that is going on ends with an error. The next request opens another."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        sock = getattr(self._connection, "sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it was closed already

    def _target(self, payload: Payload) -> str:
        if not payload.kind.startswith("/"):
            return self._path or "/"
        path, mark, query = self._path.partition("?")
        return path.rstrip("/") + payload.kind + mark + query

    def _headers_for(self, payload: Payload) -> dict[str, str]:
        headers = dict(self._headers)
        if payload.content_type:
            headers["Content-Type"] = payload.content_type
        if payload.gzipped:
            headers["Content-Encoding"] = "gzip"
        return headers

    def _verdict(self, response: "BaseHTTPResponse", body: bytes) -> Verdict:
        status = response.status
        content_type = response.headers.get("Content-Type", "")
        if status in _TAKEN:
            return self._words.verdict(self._on_success(HttpAnswer(status, content_type, body)))
        words = self._explain(HttpAnswer(status, content_type, body)) if self._explain is not None else ""
        shown = self._words.shown(words or _text(content_type, body))
        said = self._words.shown(f"HTTP {status} {response.reason or ''}", _MOST_OF_STATUS)
        said += f": {shown}" if shown else ""
        if status in _RETRIED:
            headers = response.headers
            after_s = retry_after_s(headers.get("Retry-After"), headers.get("Date"), time.time())
            return RetryLater(said, after_s)
        if status in _REDIRECTS:
            return Refused(f"{said}: redirects are not followed: name the address it leads to")
        return Refused(said)

    def _open_pool(self) -> "HTTPConnectionPool":
        if self._pool is None:
            import urllib3  # noqa: PLC0415 - see send

            tls: dict[str, Any] = {"ssl_context": self._ssl_context()} if self._base.startswith("https:") else {}
            pool = urllib3.connection_from_url(
                self._base, maxsize=1, timeout=urllib3.Timeout(total=self.timeout_s), retries=False, **tls
            )
            made = pool.ConnectionCls

            def remembered(*arguments: object, **options: object) -> object:
                self._connection = made(*arguments, **options)  # type: ignore[arg-type] # urllib3's own arguments
                return self._connection

            pool.ConnectionCls = remembered  # type: ignore[assignment] # it is only called
            self._pool = pool
        return self._pool

    def _ssl_context(self) -> "SSLContext":
        import ssl  # noqa: PLC0415 - 4 MB that a daemon without TLS does without

        tls = self._tls
        try:
            context = ssl.create_default_context(cafile=tls.ca_file or None)
        except OSError as error:
            raise OSError(error.errno, f"CA file {tls.ca_file}: {error.strerror or error}") from None
        if tls.certificate_file:
            try:
                # The password keeps OpenSSL from asking on a terminal for that of an encrypted key.
                context.load_cert_chain(tls.certificate_file, tls.key_file or None, password="")
            except OSError as error:
                files = " with ".join(filter(None, (tls.certificate_file, tls.key_file)))
                raise OSError(error.errno, f"client certificate {files}: {error.strerror or error}") from None
        return context


def _read(response: "BaseHTTPResponse", deadline_s: float) -> bytes:
    """The body, as far as it comes in time and within bounds. The status is known: a body that breaks off changes nothing."""
    import urllib3  # noqa: PLC0415 - see send

    parts: list[bytes] = []
    size = 0
    try:
        while size < _MOST_BODY_BYTES and time.monotonic() < deadline_s:
            part = response.read1(_READ_BYTES, decode_content=False)
            if not part:
                response.release_conn()
                break
            parts.append(part)
            size += len(part)
        else:
            response.close()
    except (urllib3.exceptions.HTTPError, OSError):
        response.close()
    # Nothing but identity was asked for.
    return b"" if response.headers.get("Content-Encoding") else b"".join(parts)[:_MOST_BODY_BYTES]


def _text(content_type: str, body: bytes) -> str:
    """The text of a refusal, when it is one."""
    return body.decode("utf-8", "replace") if content_type.startswith(("text/plain", "application/json")) else ""


def _need_urllib3() -> None:
    import importlib.util  # noqa: PLC0415 - once, at the start of a daemon that has such an exporter

    if importlib.util.find_spec("urllib3") is None:
        raise FlagError("exporters that speak HTTP need urllib3: pip install 'dynolog[http]'")


def _split(url: str, said_by: str) -> tuple[str, str, str]:
    """Scheme, host and port of a URL; its path and query; its user and password."""
    import urllib.parse  # noqa: PLC0415 - only for exporters that speak HTTP

    # The URL is not repeated, nor what is wrong with it: a password may stand where it is not looked for.
    bad = FlagError(f"{said_by} is not a URL that can be used: type one like https://host:4318/path")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise bad from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s\x00-\x1f]", url):
        raise bad
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
    user, at, _ = parts.netloc.rpartition("@")
    return base, parts.path + (f"?{parts.query}" if parts.query else ""), urllib.parse.unquote(user) if at else ""


def _basic(user: str) -> str:
    import base64  # noqa: PLC0415 - only for URLs with a user

    return "Basic " + base64.b64encode((user if ":" in user else f"{user}:").encode()).decode()


def _passwords(user: str) -> tuple[str, ...]:
    return (user, user.partition(":")[2]) if user else ()


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.match(name):
            raise FlagError(f"{name!r} cannot be the name of an HTTP header")
        if _BAD_IN_HEADER.search(value):
            raise FlagError(f"the value of the HTTP header {name} has a line break or another control character in it")
        if not value.isascii():
            raise FlagError(f"the value of the HTTP header {name} has letters beyond ASCII in it")


def _check_files(tls: TlsFiles) -> None:
    for path in (tls.ca_file, tls.certificate_file, tls.key_file):
        if path and not os.access(path, os.R_OK):
            raise FlagError(f"{path} cannot be read: it should be a PEM file")
    if tls.key_file and not tls.certificate_file:
        raise FlagError(f"the key {tls.key_file} has no certificate: name that too")
