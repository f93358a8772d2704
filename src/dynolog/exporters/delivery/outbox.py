"""The queue of one network exporter: payloads in order, in memory or on disk, bounded, the oldest dropped first.

With a spool every payload is written there before it is sent. While the disk takes none (it is full) they wait in memory, behind those on
disk, and move there when it has room again.
"""

import logging
import threading
from collections import deque

import msgspec

from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool import Spool, SpoolEntry
from dynolog.model.clock import Clock
from dynolog.model.status import QUEUE_FULL, SHUTDOWN, SPOOL_DAMAGED, SPOOL_FULL
from dynolog.pipeline.losses import Losses

_log = logging.getLogger(__name__)
_SYNC_EVERY_NS = 1_000_000_000
# How long a disk that failed is left alone.
_SPOOL_RETRY_NS = 10_000_000_000


class Levels(msgspec.Struct, frozen=True):
    """How full an outbox is. Replaced as a whole, so that it can be read without waiting for a disk."""

    records: int = 0
    size_bytes: int = 0
    spool: str = ""
    spool_bytes: int = 0


class Outbox:
    """Used by two threads: one puts, one takes. Both may wait for the disk; `levels` never does."""

    def __init__(
        self, name: str, clock: Clock, losses: Losses, *, max_records: int, max_bytes: int, spool: Spool | None = None
    ) -> None:
        self._name = name
        self._clock = clock
        self._losses = losses
        self._max_records = max_records
        self._max_bytes = max_bytes
        # An empty spool is false.
        self._most_bytes = max_bytes if spool is None else min(max_bytes, spool.max_bytes // 4)
        self._spool = spool
        self._spool_error = ""
        self._spool_off_until_ns = 0
        self._synced_ns = clock.monotonic_ns()
        self._lock = threading.Lock()
        self._memory: deque[Payload] = deque()
        self._records = 0
        self._size_bytes = 0
        # What is being sent; `_flying_entry` when it is on disk.
        self._flying: Payload | None = None
        self._flying_entry: SpoolEntry | None = None
        self._flying_dropped = False
        self._flying_since_ns = 0
        self._is_behind = False
        self._spool_dropped = 0
        self._spool_damaged = 0
        self.levels = Levels(spool="" if spool is None else "on", spool_bytes=0 if spool is None else spool.size_bytes)

    def put(self, payload: Payload) -> None:
        """Queue a payload."""
        with self._lock:
            if len(payload.body) > self._most_bytes:
                self._losses.count(QUEUE_FULL, payload.records, f"one request has {len(payload.body):,} bytes")
                return
            self._memory.append(payload)
            self._records += payload.records
            self._size_bytes += len(payload.body)
            self._move_to_spool()
            while self._memory and (self._records > self._max_records or self._size_bytes > self._max_bytes):
                self._losses.count(QUEUE_FULL, self._pop().records)
            if self._is_behind or (self._flying and self._now_ns - self._flying_since_ns > _SYNC_EVERY_NS):
                self._sync_if_due()
            self._publish()

    def take(self) -> Payload | None:
        """The oldest payload, to be sent; the same again until it is `finish`ed."""
        with self._lock:
            if self._flying is None:
                entry = self._spool.first() if self._spool else None
                if entry is not None:
                    self._flying, self._flying_entry = entry.payload, entry
                elif self._memory:
                    self._flying = self._pop()
                else:
                    self._is_behind = False
                self._flying_since_ns = self._now_ns
                self._publish()
            return self._flying

    def finish(self) -> None:
        """What was taken is done with."""
        with self._lock:
            entry = self._flying_entry
            self._land()
            if entry is not None and self._spool is not None:
                try:
                    self._spool.sent(entry)
                except OSError as error:
                    self._turn_off(error)
            self._publish()

    def give_back(self) -> None:
        """What was taken could not be sent now; it is the next to be taken, unless the spool had no room for it meanwhile."""
        with self._lock:
            self._is_behind = True
            if self._flying is not None and self._flying_dropped:
                self._losses.count(SPOOL_FULL, self._flying.records)
                self._land()
            self._publish()

    def sync(self) -> None:
        """To be called every second while payloads wait."""
        with self._lock:
            self._sync_if_due()

    @property
    def is_safe(self) -> bool:
        """Whether everything that waits is on disk."""
        with self._lock:
            return self._spool is not None and not self._memory and (self._flying is None or self._on_disk)

    def close(self) -> None:
        """Drop what is only in memory, counted; keep what is on disk for the next start."""
        with self._lock:
            self._spool_off_until_ns = 0
            self._move_to_spool()
            if self._flying is not None and not self._on_disk:
                self._losses.count(SHUTDOWN, self._flying.records)
            while self._memory:
                self._losses.count(SHUTDOWN, self._pop().records)
            self._losses.say()
            if self._spool is not None:
                try:
                    self._spool.close()
                except OSError as error:
                    _log.warning("exporter %s: the spool was not closed well: %s", self._name, error.strerror)
                self._spool = None
            self._publish()

    # --- all below: with the lock -------------------------------------------------------------------------------------------

    @property
    def _now_ns(self) -> int:
        return self._clock.monotonic_ns()

    @property
    def _on_disk(self) -> bool:
        return self._flying_entry is not None and not self._flying_dropped

    def _land(self) -> None:
        self._flying = self._flying_entry = None
        self._flying_dropped = False

    def _pop(self) -> Payload:
        payload = self._memory.popleft()
        self._records -= payload.records
        self._size_bytes -= len(payload.body)
        return payload

    def _move_to_spool(self) -> None:
        spool = self._spool
        if spool is None or (self._spool_error and self._now_ns < self._spool_off_until_ns):
            return
        try:
            if self._flying is not None and self._flying_entry is None:
                self._flying_entry = spool.append(self._flying)
            while self._memory:
                spool.append(self._memory[0])
                self._pop()
        except OSError as error:
            self._turn_off(error)
        else:
            if self._spool_error:
                self._spool_error = ""
                _log.info("exporter %s: spooling is on again", self._name)
        self._count_spool_losses(spool)

    def _count_spool_losses(self, spool: Spool) -> None:
        dropped = spool.dropped_records - self._spool_dropped
        self._spool_dropped = spool.dropped_records
        entry = self._flying_entry
        if entry is not None and not self._flying_dropped and not spool.holds(entry):
            # It may still arrive: it is counted when the attempt ends.
            self._flying_dropped = True
            dropped -= entry.place.records
        self._losses.count(SPOOL_FULL, dropped)
        self._losses.count(SPOOL_DAMAGED, spool.damaged_records - self._spool_damaged)
        self._spool_damaged = spool.damaged_records

    def _turn_off(self, error: OSError) -> None:
        said = error.strerror or str(error)
        if not self._spool_error:
            _log.warning(
                "exporter %s: spooling is off, records wait in memory only: %s: make room on the disk of --spool_dir",
                self._name,
                said,
            )
        self._spool_error = said
        self._spool_off_until_ns = self._now_ns + _SPOOL_RETRY_NS

    def _sync_if_due(self) -> None:
        now_ns = self._now_ns
        if self._spool is None or now_ns - self._synced_ns < _SYNC_EVERY_NS:
            return
        self._synced_ns = now_ns
        try:
            self._spool.sync()
        except OSError as error:
            self._turn_off(error)

    def _publish(self) -> None:
        if self._spool is not None:
            self._count_spool_losses(self._spool)
        flying = self._flying
        self.levels = Levels(
            records=self._records + (flying.records if flying else 0),
            size_bytes=self._size_bytes + (len(flying.body) if flying else 0),
            spool="" if self._spool is None else f"off: {self._spool_error}" if self._spool_error else "on",
            spool_bytes=self._spool.size_bytes if self._spool else 0,
        )
