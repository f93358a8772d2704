"""Records that an exporter lost: counted by reason, said at most once a minute."""

import logging
import threading

from dynolog.model.clock import Clock
from dynolog.model.status import LOSS_REASONS

_log = logging.getLogger(__name__)
_SAID_EVERY_NS = 60_000_000_000


class Losses:
    """The losses of one exporter; from any thread."""

    def __init__(self, exporter: str, clock: Clock) -> None:
        self._exporter = exporter
        self._clock = clock
        self._by_reason: dict[str, int] = {}
        self._unsaid: dict[str, int] = {}
        self._details: dict[str, str] = {}
        self._said_ns: int | None = None
        self._lock = threading.RLock()

    def count(self, reason: str, records: int, detail: str = "") -> None:
        """Count `records` as lost; `detail` is what the destination or the system said."""
        if records <= 0:
            return
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            self._by_reason[reason] = self._by_reason.get(reason, 0) + records
            self._unsaid[reason] = self._unsaid.get(reason, 0) + records
            self._details[reason] = detail
            if self._said_ns is None or now_ns - self._said_ns >= _SAID_EVERY_NS:
                self._said_ns = now_ns
                self.say()

    def say(self) -> None:
        """Log what was not said yet."""
        with self._lock:
            parts = [
                f"{records} because {LOSS_REASONS[reason]}"
                + (f": {detail}" if (detail := self._details[reason]) else "")
                for reason, records in self._unsaid.items()
            ]
            self._unsaid.clear()
        if parts:
            _log.warning("exporter %s lost records: %s", self._exporter, "; ".join(parts))

    @property
    def by_reason(self) -> dict[str, int]:
        """Records lost since the start."""
        with self._lock:
            return dict(self._by_reason)

    @property
    def total(self) -> int:
        """Records lost since the start, whatever the reason."""
        with self._lock:
            return sum(self._by_reason.values())
