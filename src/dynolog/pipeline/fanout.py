"""Records to exporters: each behind its own lane. Exporters may come and go while records flow."""

import threading
from collections import deque
from collections.abc import Iterable

import msgspec

from dynolog.model.clock import Clock
from dynolog.model.record import Record
from dynolog.model.status import ExporterStatus
from dynolog.pipeline.delivery import Exporter, SummingExporter
from dynolog.pipeline.lane import Lane

# A record of 300 values takes about 25 kB, so a dead exporter holds some 6 MB at most.
QUEUE_RECORDS = 256
# With thousands of values a record (CPUs, process groups) fewer wait.
QUEUE_BYTES = 16_000_000


class Fanout:
    """Hands each record to every exporter. A full queue loses its oldest record, counted; a blocked exporter delays nobody."""

    def __init__(
        self,
        exporters: Iterable[tuple[str, Exporter]],
        clock: Clock,
        queue_records: int = QUEUE_RECORDS,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._clock = clock
        self._queue_records = queue_records
        self._queue_bytes = queue_bytes
        self._lock = threading.Lock()
        self._lanes = tuple(self._lane(name, exporter) for name, exporter in exporters)
        # Records for an exporter that is being replaced, and what its predecessor had counted.
        self._held: dict[str, deque[Record]] = {}
        self._before: dict[str, ExporterStatus] = {}
        self._closed: dict[str, Exporter] = {}

    def put(self, record: Record) -> None:
        """Queue a record for every exporter. Never blocks."""
        with self._lock:
            for lane in self._lanes:
                lane.put(record)
            for held in self._held.values():
                held.append(record)

    def statuses(self) -> tuple[ExporterStatus, ...]:
        """Destination, counters since the start of the daemon, last success and error of each exporter."""
        return tuple(self._status(lane) for lane in self._lanes)

    def take_out(self, name: str, timeout_s: float, queueing_timeout_s: float) -> bool:
        """Deliver what an exporter holds and close it, as `close` does; blocks meanwhile. False when it could not deliver all.

        Until `put_in` or `forget` its records are held, so that a successor misses none.
        """
        with self._lock:
            leaving = tuple(lane for lane in self._lanes if lane.name == name)
            self._lanes = tuple(lane for lane in self._lanes if lane.name != name)
            self._held[name] = deque(maxlen=self._queue_records)
        finished = self._end(leaving, timeout_s, queueing_timeout_s)
        for lane in leaving:
            if lane.thread is not None and not lane.thread.is_alive():
                self._closed[name] = lane.exporter
            self._before[name] = msgspec.structs.replace(self._status(lane), queued=0, queued_bytes=0)
        return finished

    def put_in(self, name: str, exporter: Exporter) -> None:
        """Give records to an exporter from now on, those first that were held for it. It goes on with the totals of its predecessor."""
        before = self._closed.pop(name, None)
        if before is not None and hasattr(exporter, "take_over"):
            summing: SummingExporter = exporter  # type: ignore[assignment] # it has `take_over`
            summing.take_over(before)
        with self._lock:
            lane = self._lane(name, exporter)
            for record in self._held.pop(name, ()):
                lane.put(record)
            self._lanes = (*self._lanes, lane)

    def forget(self, name: str) -> None:
        """An exporter that was taken out has no successor."""
        with self._lock:
            self._held.pop(name, None)
        self._closed.pop(name, None)

    def close(self, timeout_s: float, queueing_timeout_s: float | None = None) -> bool:
        """Deliver what is queued and close the exporters, within `timeout_s` for all of them together; those with a queue of
        their own may take `queueing_timeout_s`.

        False when some could not deliver all; what they held is then counted as dropped.
        """
        return self._end(self._lanes, timeout_s, timeout_s if queueing_timeout_s is None else queueing_timeout_s)

    def _lane(self, name: str, exporter: Exporter) -> Lane:
        return Lane(name, exporter, self._clock, self._queue_records, self._queue_bytes)

    def _end(self, lanes: tuple[Lane, ...], timeout_s: float, queueing_timeout_s: float) -> bool:
        now_ns = self._clock.monotonic_ns()
        deadline_ns = now_ns + int(timeout_s * 1e9)
        queueing_ns = now_ns + int(queueing_timeout_s * 1e9)
        for lane in lanes:
            lane.begin_close(queueing_ns if lane.is_queueing else deadline_ns)
        finished = True
        for lane in sorted(lanes, key=lambda lane: lane.is_queueing):
            until_ns = queueing_ns if lane.is_queueing else deadline_ns
            if lane.thread is not None:
                lane.thread.join(max((until_ns - self._clock.monotonic_ns()) / 1e9, 0.0))
            if lane.thread is None or lane.thread.is_alive():
                lane.abandon()
                finished = False
            elif lane.lost_at_shutdown:
                finished = False
        return finished

    def _status(self, lane: Lane) -> ExporterStatus:
        status = lane.status()
        before = self._before.get(lane.name)
        if before is None:
            return status
        reasons = {*before.dropped_by, *status.dropped_by}
        return msgspec.structs.replace(
            status,
            sent=before.sent + status.sent,
            dropped=before.dropped + status.dropped,
            dropped_by={
                reason: before.dropped_by.get(reason, 0) + status.dropped_by.get(reason, 0) for reason in reasons
            },
            retries=before.retries + status.retries,
            last_success_wall_ns=status.last_success_wall_ns or before.last_success_wall_ns,
        )
