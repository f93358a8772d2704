"""One collector as the pipeline runs it: its object, its base line, its state and its counters."""

import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from dynolog.collectors.spec import Collector, CollectorSpec, Context, DeviceReport, Notices, Values
from dynolog.model.clock import Clock
from dynolog.model.errors import SourceUnavailable
from dynolog.model.status import CollectorState, CollectorStatus
from dynolog.pipeline.device_records import DeviceBoard, DeviceRecord
from dynolog.pipeline.notice_board import NoticeBoard
from dynolog.pipeline.schedule import next_due_ns, next_multiple_ns, retry_delay_ns

_log = logging.getLogger(__name__)
_MOST_TEXTS = 32
# Weight of the newest round in the average cost.
_COST_WEIGHT = 0.2
# Asking for a thread's CPU time is a system call; a round shorter than this does not wait, so it costs what it takes.
_SHORT_ROUND_NS = 500_000


class Baseline(msgspec.Struct, frozen=True):
    """A snapshot and when its reading began."""

    snapshot: Any
    monotonic_ns: int


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of a collector gave. `interval_ns` is measured; `error` is what was raised, if anything. `devices` have records of
    their own.
    """

    took_ns: int
    cpu_ns: int
    baseline: Baseline | None = None
    values: Values = {}
    interval_ns: int = 0
    devices: tuple[DeviceRecord, ...] = ()
    error: Exception | None = None


class CollectorRun:
    """All fields belong to the pipeline's lock, except during `attempt` and `say_unsaid`, which one thread runs without it."""

    def __init__(
        self,
        spec: CollectorSpec,
        context_of: Callable[[CollectorSpec, Notices], Context],
        clock: Clock,
        board: DeviceBoard | None = None,
    ) -> None:
        self.spec = spec
        self._board = board or DeviceBoard()
        self.name = spec.name
        self.notices = NoticeBoard(spec.name)
        self.enabled = False
        self.configured_interval_ns = 1
        self.phase_ns = 0
        self.stretch = 1
        # When the read that is under way began; None between rounds.
        self.reading_since_ns: int | None = None
        self.is_stalled = False
        self.cost_ns = 0.0
        self._context_of = context_of
        self._clock = clock
        self._collector: Collector[Any] | None = None
        self._baseline: Baseline | None = None
        self._last_ns: int | None = None
        self._not_before_ns = 0
        self._state = CollectorState.STARTING
        self._error = ""
        self._remedy = ""
        self._said: set[str] = set()
        self._unsaid: list[tuple[str, Exception]] = []
        self._failures_in_row = 0
        self._last_took_ns = 0
        self._max_took_ns = 0
        self._rounds = 0
        self._failures = 0
        self._stalls = 0

    @property
    def interval_ns(self) -> int:
        """The interval in force: the configured one, stretched when the daemon is over its CPU budget."""
        return self.configured_interval_ns * self.stretch

    @property
    def state(self) -> CollectorState:
        """How it fares."""
        return CollectorState.STALLED if self.is_stalled else self._state

    @property
    def missing(self) -> str:
        """What keeps it from working, and what would give it; "" when nothing does, or nothing would."""
        if self.state is not CollectorState.UNAVAILABLE or not self._remedy:
            return ""
        return f"{self.name}: {self._error}"

    @property
    def cost_pct(self) -> float:
        """Percent of one core that it uses at its present interval."""
        return 100 * self.cost_ns / self.interval_ns

    def due_ns(self, now_ns: int, offset_ns: int, idle_since_ns: int) -> int | None:
        """When it is to be read next (monotonic); None while it is off or under way. The first reading is due at once.

        A multiple that passed while a round was under way, until `idle_since_ns`, is left out: nothing is caught up on.
        """
        if not self.enabled or self.reading_since_ns is not None:
            return None
        if self._last_ns is None:
            return now_ns
        offset_ns -= self.phase_ns
        due = next_due_ns(self._last_ns, self.interval_ns, offset_ns)
        earliest_ns = max(self._not_before_ns, idle_since_ns)
        return due if due >= earliest_ns else next_multiple_ns(earliest_ns, self.interval_ns, offset_ns)

    def begin(self, now_ns: int) -> None:
        """A read begins."""
        self.reading_since_ns = now_ns
        self._last_ns = now_ns

    def attempt(self) -> Attempt:
        """Make the collector if need be, read, compute. Never raises; may take for ever."""
        # A collector that was short is likely to be so again; when it is not, this round's cost is an upper bound.
        is_long = self._rounds == 0 or self._last_took_ns > _SHORT_ROUND_NS
        cpu_started_ns = time.thread_time_ns() if is_long else 0
        started_ns = self.reading_since_ns
        assert started_ns is not None
        baseline: Baseline | None = None
        values: Values = {}
        devices: tuple[DeviceRecord, ...] = ()
        elapsed_ns = 0
        error: Exception | None = None
        try:
            if self._collector is None:
                self._collector = self.spec.factory(self._context_of(self.spec, self.notices))
            baseline = Baseline(self._collector.read(), started_ns)
            if self._baseline is not None:
                elapsed_ns = started_ns - self._baseline.monotonic_ns
                values = self._collector.compute(self._baseline.snapshot, baseline.snapshot, elapsed_ns / 1e9)
                if isinstance(values, DeviceReport):
                    devices = self._board.records(self.name, self.spec.device_source, values, elapsed_ns)
        except Exception as caught:  # noqa: BLE001 - the boundary of a collector: counted and reported by `finish`
            error = caught
        took_ns = self._clock.monotonic_ns() - started_ns
        return Attempt(
            took_ns=took_ns,
            cpu_ns=time.thread_time_ns() - cpu_started_ns if is_long else took_ns,
            baseline=baseline,
            values=values,
            interval_ns=elapsed_ns,
            devices=devices,
            error=error,
        )

    def stall(self) -> None:
        """The read has not returned by the deadline."""
        self.is_stalled = True
        self._stalls += 1
        self._say(f"{self.name} has not returned from its read and is stalled; it is picked up again when it returns")

    def finish(self, attempt: Attempt) -> bool:
        """The read came back; whether its values are good. After a stall or a failed read the next round sets a new base line."""
        assert self.reading_since_ns is not None
        # One that took longer than its interval waits for a multiple like all others.
        self._not_before_ns = self.reading_since_ns + attempt.took_ns
        self.reading_since_ns = None
        was_stalled, self.is_stalled = self.is_stalled, False
        self._count(attempt)
        if not self.enabled:
            self._forget()
            return False
        had_baseline = self._baseline is not None
        self._baseline = attempt.baseline
        if attempt.error is not None:
            self._failed(attempt.error)
            return False
        if was_stalled:
            self._baseline = None
            self._say(f"{self.name} has returned from its read and runs again", level=logging.INFO)
        self._error = ""
        if was_stalled or not had_baseline:
            self._state = CollectorState.STARTING
            return False
        self._state = CollectorState.OK
        if self._failures_in_row:
            self._say(f"{self.name} works again", level=logging.INFO)
            self._failures_in_row = 0
        return bool(attempt.values or attempt.devices)

    def switch(self, enabled: bool) -> None:
        """On or off. Off lets go of the collector, as soon as no thread is in it."""
        self.enabled = enabled
        if not enabled and self.reading_since_ns is None:
            self._forget()

    def change_stretch(self, stretch: int, usage_pct: float, budget_pct: float) -> None:
        """Read less often, or more often again, for the sake of the CPU budget; and say so."""
        longer = stretch > self.stretch
        self.stretch = stretch
        interval_s = self.interval_ns / 1e9
        if longer:
            _log.warning(
                "the daemon used %.2f %% of a core over a minute, more than --cpu_budget_pct=%g: %s is now read every %g s",
                *(usage_pct, budget_pct, self.name, interval_s),
            )
        else:
            _log.info("%s is read every %g s again: the daemon is within its CPU budget", self.name, interval_s)

    def status(self) -> CollectorStatus:
        """State and counters for people."""
        return CollectorStatus(
            name=self.name,
            state=self.state,
            interval_s=self.interval_ns / 1e9,
            configured_interval_s=self.configured_interval_ns / 1e9,
            last_ms=self._last_took_ns / 1e6,
            max_ms=self._max_took_ns / 1e6,
            rounds=self._rounds,
            failures=self._failures,
            stalls=self._stalls,
            error=self._error,
            notices=self.notices.sentences,
        )

    def _count(self, attempt: Attempt) -> None:
        self._rounds += 1
        self._last_took_ns = attempt.took_ns
        self._max_took_ns = max(self._max_took_ns, attempt.took_ns)
        self.cost_ns += (attempt.cpu_ns - self.cost_ns) * (_COST_WEIGHT if self.cost_ns else 1.0)

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._failures_in_row += 1
        failures = 1 if self.spec.retries_itself else self._failures_in_row
        delay_ns = retry_delay_ns(failures, self.interval_ns)
        self._not_before_ns += delay_ns - self.interval_ns // 2
        if isinstance(error, SourceUnavailable):
            self._state = CollectorState.UNAVAILABLE
            self._error = str(error)
            self._remedy = error.remedy
            # Without a remedy the hardware is just not there, which is no reason to worry anybody.
            level = logging.WARNING if error.remedy else logging.INFO
            self._say(f"{self.name} is not available: {error}", level=level)
        else:
            self._state = CollectorState.FAILING
            self._error = f"{type(error).__name__}: {error}"
            self._say(f"{self.name} failed: {self._error}", error)

    def close(self) -> None:
        """Let go of the collector's source; for one that has something to let go of. Does not wait."""
        if (close := getattr(self._collector, "close", None)) is not None:
            close()

    def _forget(self) -> None:
        self.close()
        self._board.forget(self.name)
        self._collector = None
        self._baseline = None
        self._last_ns = None
        self._not_before_ns = 0
        self._failures_in_row = 0
        self._state = CollectorState.STARTING
        self._error = ""

    def _say(self, text: str, error: Exception | None = None, level: int = logging.WARNING) -> None:
        """Once for each distinct text; how often it was is kept for the status only (daemon.recent_troubles). A traceback reads source
        files, so it waits for `say_unsaid`.
        """
        if text in self._said:
            if level >= logging.WARNING and self._failures_in_row <= 1:
                _log.log(level, text, extra={"is_repeat": True})
            return
        if len(self._said) >= _MOST_TEXTS:
            self._said.clear()
        self._said.add(text)
        if error is None:
            _log.log(level, text)
        else:
            self._unsaid.append((text, error))

    def say_unsaid(self) -> None:
        """Log what has a traceback; called by the worker without the pipeline's lock, because it may read from disk."""
        while self._unsaid:
            text, error = self._unsaid.pop()
            _log.warning(text, exc_info=error)
