"""Where OTLP goes: the rules of the OTLP exporter specification for endpoints."""

from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from dynolog.model.errors import FlagError

_SOCKETS = ("unix:", "unix-abstract:")
_PORTS = {"http": 80, "https": 443}


class Endpoint(msgspec.Struct, frozen=True):
    """An address to send to: a URL for HTTP, a gRPC target (`host:4317`, `unix:/path`) for gRPC. `secure`: over TLS."""

    address: str
    secure: bool


def http_endpoint(text: str, path: str, *, verbatim: bool, said_by: str) -> Endpoint:
    """The URL for a signal whose path is `path` (`/v1/metrics`).

    `verbatim`: the text is the signal's own URL and is used as it is; otherwise it is a base to which the path is added, unless it
    ends so already. Without a scheme it is http. Raises FlagError, which names `said_by`, for what is no http(s) URL.
    """
    parts = _split(text if "://" in text else f"http://{text}", said_by, "http://collector:4318")
    own_path = parts.path
    if verbatim:
        own_path = own_path or "/"
    else:
        own_path = own_path.rstrip("/")
        own_path += "" if own_path.endswith(path) else path
    return Endpoint(urlunsplit((parts.scheme, parts.netloc, own_path, parts.query, "")), parts.scheme == "https")


def grpc_endpoint(text: str, *, insecure: bool, said_by: str) -> Endpoint:
    """The gRPC target: of a http(s) URL the host and port, and its scheme decides on TLS; anything else is gRPC's own form."""
    if "@" in text and not text.startswith(_SOCKETS):
        raise FlagError(f"{said_by} has a user in it, which gRPC does not send: use a header (authorization=...)")
    if text.lower().startswith(("http://", "https://")):
        parts = _split(text, said_by, "http://collector:4317")
        assert parts.hostname is not None
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return Endpoint(f"{host}:{parts.port or _PORTS[parts.scheme]}", parts.scheme == "https")
    if not text.strip():
        raise FlagError(f"{said_by} is not a target like http://collector:4317 or unix:/run/collector.sock")
    return Endpoint(text, not insecure and not text.startswith(_SOCKETS))


def _split(url: str, said_by: str, example: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is no number
        is_usable = False
    if not is_usable:
        raise FlagError(f"{said_by} is not a URL like {example}")
    return parts
