"""The seam between the pipeline and the destinations of records."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dynolog.model.record import Record
from dynolog.model.status import ExporterState


class Exporter(Protocol):
    """Delivers records somewhere. Runs on its own thread, behind its own bounded queue, so it may block.

    `destination` says where, for people. `export` raises OSError or DynologError when the records could not be delivered; they are
    then counted as dropped. `close` flushes and releases what it holds.
    """

    destination: str

    def export(self, records: Sequence[Record]) -> None:
        """Deliver the records, in order."""
        ...

    def close(self) -> None:
        """Flush and release."""
        ...


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What an exporter with a queue of its own has done since its start, in records; see ExporterStatus for the words."""

    sent: int
    dropped_by: dict[str, int]
    queued: int
    queued_bytes: int
    last_success_wall_ns: int
    state: ExporterState
    error: str = ""
    spool: str = ""
    spool_bytes: int = 0
    retries: int = 0
    next_try_s: float = 0.0


class SummingExporter(Exporter, Protocol):
    """An exporter that gives running totals."""

    def take_over(self, before: Exporter) -> None:
        """Go on with the totals of the one that this one replaces, which has closed; called before the first records."""
        ...


class QueueingExporter(Exporter, Protocol):
    """An exporter whose `export` only takes the records over, into a queue of its own, and delivers them later.

    The fan-out then takes its counters from `progress`, and tells it when it must have ended before `close` is called.
    """

    def progress(self) -> Progress:
        """The counters now; from any thread, never blocks for longer than a moment."""
        ...

    def end_by(self, monotonic_ns: int) -> None:
        """Deliver what is queued without waiting longer than needed; `close` must return by then. From any thread."""
        ...
