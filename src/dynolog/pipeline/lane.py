"""One exporter's way out: a bounded queue, counters, and a thread of its own.

An exporter with a queue of its own (delivery.QueueingExporter) takes records over at once, so that the queue here is only a step to
it; its counters are then those of its own queue and of this one together.
"""

import logging
import threading
from collections import deque

from dynolog.model.clock import Clock
from dynolog.model.record import Record
from dynolog.model.status import ERROR, QUEUE_FULL, SHUTDOWN, ExporterState, ExporterStatus
from dynolog.pipeline.delivery import Exporter, Progress, QueueingExporter
from dynolog.pipeline.losses import Losses

_log = logging.getLogger(__name__)
_RECORD_BYTES, _VALUE_BYTES = 1000, 85
_BATCH_RECORDS = 64
# A queueing exporter has to be back this long before its lane's time is over.
_MARGIN_NS = 50_000_000
# An export that takes this long is worth a word in the status.
_SLOW_NS = 10_000_000_000


class Lane:
    """One exporter's queue, counters and thread; the thread starts with the first record. Used from any thread."""

    def __init__(self, name: str, exporter: Exporter, clock: Clock, queue_records: int, queue_bytes: int) -> None:
        self.name = name
        self.exporter = exporter
        self._clock = clock
        self._most_records = queue_records
        self._most_bytes = queue_bytes
        self._size_bytes = 0
        self._losses = Losses(f"{name} ({exporter.destination})", clock)
        self._progress = getattr(exporter, "progress", None)
        self._queue: deque[Record] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._abandoned = False
        self._exporting_since_ns: int | None = None
        self._in_flight = 0
        self._sent = 0
        self._state = ExporterState.IDLE
        self._last_success_wall_ns = 0
        self._error = ""
        self.thread: threading.Thread | None = None

    @property
    def is_queueing(self) -> bool:
        """Whether the exporter has a queue of its own."""
        return self._progress is not None

    def put(self, record: Record) -> None:
        """Queue a record. Never blocks."""
        with self._changed:
            if self._closing:
                self._losses.count(SHUTDOWN, 1)
                return
            self._queue.append(record)
            self._size_bytes += _size(record)
            while len(self._queue) > self._most_records or (
                self._size_bytes > self._most_bytes and len(self._queue) > 1
            ):
                self._size_bytes -= _size(self._queue.popleft())
                self._losses.count(QUEUE_FULL, 1)
            self._changed.notify()
            if self.thread is None:
                self._start()

    def begin_close(self, deadline_ns: int) -> None:
        """Take no more records, deliver what is queued, and close, until a time by the monotonic clock."""
        if self._progress is not None:
            exporter: QueueingExporter = self.exporter  # type: ignore[assignment] # it has `progress`
            exporter.end_by(deadline_ns - _MARGIN_NS)
        with self._changed:
            self._closing = True
            self._changed.notify()
            if self.thread is None:
                self._start()

    def abandon(self) -> None:
        """Count what could not be delivered in time; the thread, if it ever returns, finds an empty queue."""
        with self._changed:
            self._abandoned = True
            self._losses.count(SHUTDOWN, len(self._queue) + self._in_flight)
            self._queue.clear()
            self._in_flight = self._size_bytes = 0
        self._losses.say()

    @property
    def lost_at_shutdown(self) -> bool:
        """Whether a queueing exporter had to leave records behind."""
        return self._progress is not None and SHUTDOWN in self._progress().dropped_by

    def status(self) -> ExporterStatus:
        """Its counters and state."""
        beyond: Progress | None = self._progress() if self._progress is not None else None
        with self._changed:
            error = self._error
            since = self._exporting_since_ns
            if since is not None and (blocked_ns := self._clock.monotonic_ns() - since) > _SLOW_NS:
                error = f"has been blocked for {blocked_ns / 1e9:.0f} s"
            status = ExporterStatus(
                name=self.name,
                destination=self.exporter.destination,
                sent=self._sent,
                dropped=self._losses.total,
                queued=len(self._queue) + self._in_flight,
                last_success_wall_ns=self._last_success_wall_ns,
                error=error,
                state=self._state,
                queued_bytes=self._size_bytes,
                dropped_by=self._losses.by_reason,
            )
        return status if beyond is None else _together(status, beyond)

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
            self._size_bytes = self._size_bytes - sum(map(_size, batch)) if self._queue else 0
            self._in_flight = len(batch)
            self._exporting_since_ns = self._clock.monotonic_ns()
            return batch

    def _export(self, batch: list[Record]) -> str:
        """Why the batch could not be delivered, or ""."""
        try:
            self.exporter.export(batch)
        except OSError as error:
            return error.strerror or str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001 - the boundary of this thread: counted, reported, and the next batch is tried
            return str(error) or type(error).__name__
        return ""

    def _finished(self, batch: list[Record], error: str) -> None:
        with self._changed:
            self._error = error
            self._in_flight = 0
            self._exporting_since_ns = None
            if self._abandoned:
                return
            if error:
                self._state = ExporterState.FAILING
                self._losses.count(ERROR, len(batch), error)
            else:
                self._state = ExporterState.OK
                self._sent += len(batch)
                self._last_success_wall_ns = self._clock.wall_ns()


def _size(record: Record) -> int:
    """About what a record takes in memory."""
    return _RECORD_BYTES + _VALUE_BYTES * len(record.values)


def _together(lane: ExporterStatus, beyond: Progress) -> ExporterStatus:
    """The status of a queueing exporter: what it did, and what was lost or still waits before it."""
    reasons = {*lane.dropped_by, *beyond.dropped_by}
    dropped_by = {reason: lane.dropped_by.get(reason, 0) + beyond.dropped_by.get(reason, 0) for reason in reasons}
    return ExporterStatus(
        name=lane.name,
        destination=lane.destination,
        sent=beyond.sent,
        dropped=sum(dropped_by.values()),
        queued=lane.queued + beyond.queued,
        last_success_wall_ns=beyond.last_success_wall_ns,
        error=lane.error or beyond.error,
        state=ExporterState.FAILING if lane.error else beyond.state,
        queued_bytes=lane.queued_bytes + beyond.queued_bytes,
        spool=beyond.spool,
        spool_bytes=beyond.spool_bytes,
        dropped_by=dropped_by,
        retries=beyond.retries,
        next_try_s=beyond.next_try_s,
    )
