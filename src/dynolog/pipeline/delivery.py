"""The seam between the pipeline and the destinations of records."""

from collections.abc import Sequence
from typing import Protocol

from dynolog.model.record import Record


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
