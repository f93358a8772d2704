"""Payloads as HTTP requests, with urllib3 (extra `http`), which is imported at the first request."""

from collections.abc import Callable, Mapping

import msgspec

from dynolog.exporters.payload import Delivered, Payload, Verdict


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files for https: whom to trust ("": the system's authorities), and who we are ("": nobody)."""

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""


class HttpAnswer(msgspec.Struct, frozen=True):
    """A response of status 2xx; `body` is at most 64 kB of it, decompressed."""

    status: int
    content_type: str
    body: bytes


def _taken(_answer: HttpAnswer) -> Verdict:
    return Delivered()


class HttpTransport:
    """POSTs each payload to `url` (to `url` + `payload.kind` when that starts with a slash).

    `headers` go with every request; their values are never shown, nor are `secrets`. `on_success` reads the answer to a
    request that was taken (partial success).
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
    ) -> None:
        """Raises FlagError for a URL that is not http(s), SourceUnavailable when urllib3 is not installed."""

    def send(self, payload: Payload) -> Verdict:
        """One request. 429, 502, 503, 504 are RetryLater (with Retry-After), other statuses but 2xx are Refused."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError
