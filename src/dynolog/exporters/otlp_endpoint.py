"""Where OTLP goes: the rules of the OTLP exporter specification for endpoints."""

from urllib.parse import urlsplit, urlunsplit

import msgspec

from dynolog.model.errors import FlagError


class Endpoint(msgspec.Struct, frozen=True):
    """An address to send to: a URL for HTTP, a gRPC target (`host:4317`, `unix:/path`) for gRPC. `secure`: over TLS."""

    address: str
    secure: bool


def http_endpoint(text: str, path: str, *, verbatim: bool, said_by: str) -> Endpoint:
    """The URL for a signal whose path is `path` (`/v1/metrics`).

    `verbatim`: the text is the signal's own URL and is used as it is; otherwise it is a base to which the path is added, unless it
    ends so already. Without a scheme it is http. Raises FlagError, which names `said_by`, for what is no http(s) URL.
    """
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port_is_bad = parts.port == 0
    except ValueError:
        port_is_bad = True
    if parts.scheme not in ("http", "https") or not parts.hostname or port_is_bad:
        raise FlagError(f"{said_by} is not a URL like http://collector:4318")
    if parts.username is not None or parts.password is not None:
        raise FlagError(
            f"{said_by} has a user or password in it: send them as a header (--otlp_headers=authorization=...)"
        )
    own_path = parts.path
    if verbatim:
        own_path = own_path or "/"
    elif not own_path.rstrip("/").endswith(path):
        own_path = own_path.rstrip("/") + path
    else:
        own_path = own_path.rstrip("/")
    return Endpoint(urlunsplit((parts.scheme, parts.netloc, own_path, parts.query, "")), parts.scheme == "https")


def grpc_endpoint(text: str, *, insecure: bool, said_by: str) -> Endpoint:
    """The gRPC target: of a http(s) URL the host and port, and its scheme decides on TLS; anything else is gRPC's own form."""
    scheme, separator, rest = text.partition("://")
    if separator and scheme in ("http", "https"):
        parts = urlsplit(text)
        try:
            port = parts.port or (443 if scheme == "https" else 80)
        except ValueError:
            port = 0
        if not parts.hostname or not port or parts.username is not None:
            raise FlagError(f"{said_by} is not a URL like http://collector:4317")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return Endpoint(f"{host}:{port}", scheme == "https")
    if not text.strip() or (separator and scheme not in ("dns", "unix", "ipv4", "ipv6") and not rest):
        raise FlagError(f"{said_by} is not a target like http://collector:4317 or unix:/run/collector.sock")
    return Endpoint(text, not insecure and not text.startswith(("unix:", "unix-abstract:")))
