"""Records to exporters: each behind its own bounded queue, on its own thread."""

import logging
import threading
from collections import deque
from collections.abc import Iterable

from dynolog.model.clock import Clock
from dynolog.model.record import Record
from dynolog.model.status import ExporterStatus
from dynolog.pipeline.delivery import Exporter

_log = logging.getLogger(__name__)
# A record of 300 values takes about 25 kB, so a dead exporter holds some 6 MB at most.
QUEUE_RECORDS = 256
_BATCH_RECORDS = 64
# An export that takes this long is worth a word in the status.
_SLOW_NS = 10_000_000_000


class _Lane:
    """One exporter's queue, counters and thread; the thread starts with the first record."""

    def __init__(self, name: str, exporter: Exporter, clock: Clock, queue_records: int) -> None:
        self.name = name
        self.exporter = exporter
        self._clock = clock
        self._limit = queue_records
        self._queue: deque[Record] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._abandoned = False
        self._exporting_since_ns: int | None = None
        self._in_flight = 0
        self._sent = 0
        self._dropped = 0
        self._last_success_wall_ns = 0
        self._error = ""
        self.thread: threading.Thread | None = None

    def put(self, record: Record) -> None:
        with self._changed:
            if self._closing:
                self._dropped += 1
                return
            self._queue.append(record)
            if len(self._queue) > self._limit:
                self._queue.popleft()
                self._dropped += 1
            self._changed.notify()
            if self.thread is None:
                self._start()

    def begin_close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
            if self.thread is None:
                self._start()

    def abandon(self) -> None:
        """Count what could not be delivered in time; the thread, if it ever returns, finds an empty queue."""
        with self._changed:
            self._abandoned = True
            self._dropped += len(self._queue) + self._in_flight
            self._queue.clear()
            self._in_flight = 0

    def status(self) -> ExporterStatus:
        with self._changed:
            error = self._error
            since = self._exporting_since_ns
            if since is not None and (blocked_ns := self._clock.monotonic_ns() - since) > _SLOW_NS:
                error = f"has been blocked for {blocked_ns / 1e9:.0f} s"
            return ExporterStatus(
                name=self.name,
                destination=self.exporter.destination,
                sent=self._sent,
                dropped=self._dropped,
                queued=len(self._queue) + self._in_flight,
                last_success_wall_ns=self._last_success_wall_ns,
                error=error,
            )

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"export-{self.name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # No thread to be had: the records wait in the queue, and the next one tries again.
            self._error = str(error)
        else:
            self.thread = thread

    def _run(self) -> None:
        while batch := self._next_batch():
            self._finished(batch, self._export(batch))
        try:
            self.exporter.close()
        except Exception as error:  # noqa: BLE001 - the boundary of this thread
            _log.warning("exporter %s could not be closed: %s", self.name, error)

    def _next_batch(self) -> list[Record]:
        """Records to send; none at the end."""
        with self._changed:
            while not self._queue:
                if self._closing:
                    return []
                self._changed.wait()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_RECORDS))]
            self._in_flight = len(batch)
            self._exporting_since_ns = self._clock.monotonic_ns()
            return batch

    def _export(self, batch: list[Record]) -> str:
        """Why the batch could not be delivered, or ""."""
        try:
            self.exporter.export(batch)
        except Exception as error:  # noqa: BLE001 - the boundary of this thread: counted, reported, and the next batch is tried
            return str(error) or type(error).__name__
        return ""

    def _finished(self, batch: list[Record], error: str) -> None:
        with self._changed:
            news = error if error != self._error else ""
            self._error = error
            self._in_flight = 0
            self._exporting_since_ns = None
            if self._abandoned:
                return
            if error:
                self._dropped += len(batch)
            else:
                self._sent += len(batch)
                self._last_success_wall_ns = self._clock.wall_ns()
        if news:
            _log.warning("exporter %s (%s): %s", self.name, self.exporter.destination, news)


class Fanout:
    """Hands each record to every exporter. A full queue loses its oldest record, counted; a blocked exporter delays nobody."""

    def __init__(
        self, exporters: Iterable[tuple[str, Exporter]], clock: Clock, queue_records: int = QUEUE_RECORDS
    ) -> None:
        self._lanes = tuple(_Lane(name, exporter, clock, queue_records) for name, exporter in exporters)
        self._clock = clock

    def put(self, record: Record) -> None:
        """Queue a record for every exporter. Never blocks."""
        for lane in self._lanes:
            lane.put(record)

    def statuses(self) -> tuple[ExporterStatus, ...]:
        """Destination, counters, last success and error of each exporter."""
        return tuple(lane.status() for lane in self._lanes)

    def close(self, timeout_s: float) -> bool:
        """Deliver what is queued and close the exporters, within `timeout_s` for all of them together.

        False when some could not finish; what they held is then counted as dropped.
        """
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        for lane in self._lanes:
            lane.begin_close()
        finished = True
        for lane in self._lanes:
            if lane.thread is not None:
                lane.thread.join(max((deadline_ns - self._clock.monotonic_ns()) / 1e9, 0.0))
            if lane.thread is None or lane.thread.is_alive():
                lane.abandon()
                finished = False
        return finished
