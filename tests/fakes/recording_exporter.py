"""An exporter that keeps what it is given, and fails or blocks when a test says so."""

import threading
from collections.abc import Sequence

from dynolog.model.record import Record


class RecordingExporter:
    """Keeps records; `arrived` counts them as they come. `gate` closed blocks each export; `error` is raised by each."""

    def __init__(self) -> None:
        self.destination = "memory"
        self.records: list[Record] = []
        self.closed = threading.Event()
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self._changed = threading.Condition()

    def export(self, records: Sequence[Record]) -> None:
        self.entered.set()
        assert self.gate.wait(30)
        with self._changed:
            self.records.extend(records)
            self._changed.notify_all()
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed.set()

    def wait_for(self, count: int) -> None:
        """Until this many records have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.records) >= count, 10)
