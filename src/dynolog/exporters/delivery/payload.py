"""What a network exporter is made of: an encoder, which turns records into payloads, and a transport, which carries them."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dynolog.model.record import Record


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """One request's body, as it is queued, kept on disk and sent: every attempt sends the same bytes.

    `records` counts the records in it. `kind` tells a transport with several addresses where it goes (a path, a method).
    `gzipped` says that `body` is a gzip stream of what the encoder made.
    """

    body: bytes
    records: int
    content_type: str = ""
    kind: str = ""
    gzipped: bool = False


class Delivered(msgspec.Struct, frozen=True):
    """The destination took the payload, all but `rejected` records of it; `message` is its remark. Never sent again."""

    rejected: int = 0
    message: str = ""


class RetryLater(msgspec.Struct, frozen=True):
    """The destination could not take it now. `after_s` is how long it asks to be left alone; None: it did not say."""

    reason: str
    after_s: float | None = None


class Refused(msgspec.Struct, frozen=True):
    """The destination will never take this payload; it is dropped and counted."""

    reason: str


Verdict = Delivered | RetryLater | Refused


class Encoder(Protocol):
    """Turns records into payloads. Used by one thread at a time."""

    def encode(self, records: Sequence[Record]) -> Sequence[Payload]:
        """Payloads in the order in which they are to be sent; none when the records have nothing for this destination."""
        ...


class SummingEncoder(Encoder, Protocol):
    """An encoder that gives running totals."""

    def take_over(self, before: Encoder) -> None:
        """Go on with the totals of the one that this one replaces; called before the first records."""
        ...


class Transport(Protocol):
    """Carries payloads to one destination. Used by one thread at a time; `close` may come from another while it sends."""

    def send(self, payload: Payload) -> Verdict:
        """One attempt, within the transport's own timeout. An OSError is taken for RetryLater; its text must hold no secret."""
        ...

    def close(self) -> None:
        """Drop the connection."""
        ...
