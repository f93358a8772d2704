"""Samples of the host many times a second, for as long as somebody records something, and kept for whoever comes for them.

One thread for all who want samples, at the shortest interval that any of them wants. It sleeps without waking while nobody does, and is
gone when nothing is expected any more. What it costs is bounded: a share of one core, a number of values, and a time for each wish.
"""

import logging
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dynolog.model.clock import Clock
from dynolog.model.host_samples import SamplePage
from dynolog.pipeline.sample_pages import Row, page

_log = logging.getLogger(__name__)

SHORTEST_INTERVAL_NS = 20_000_000
LONGEST_INTERVAL_NS = 10_000_000_000
LONGEST_WISH_NS = 600 * 10**9
MOST_WISHES = 4096
# 8 bytes each and about 200 for a row: 4 MB at most, and nothing while no trace asks for samples.
MOST_VALUES = 300_000
MOST_ROWS = 6_000
# An interval is stretched where readings are dear (hundreds of CPUs): never more than this share of one core.
MOST_CPU_RATIO = 0.02


class HostSource(Protocol):
    """What is read (collectors.host_counters). Made by the thread that uses it."""

    def read(self) -> Any:
        """One reading, with `wall_ns` and `monotonic_ns` of its begin."""
        ...

    def compute(self, before: Any, after: Any) -> Mapping[str, float]:
        """The values of the time between two readings."""
        ...

    @property
    def missing(self) -> Mapping[str, str]:
        """What cannot be read, and why."""
        ...


class Sample(msgspec.Struct, frozen=True):
    """Values from a moment on, by both clocks: for `elapsed_ns`, or with 0 until the next (what others measure at their own interval)."""

    wall_ns: int
    monotonic_ns: int
    elapsed_ns: int
    values: Mapping[str, float]


class _Wish:
    """Somebody who wants samples. Both ends are on CLOCK_MONOTONIC; None: not known yet."""

    __slots__ = ("begin_ns", "end_ns", "interval_ns")

    def __init__(self, interval_ns: int) -> None:
        self.interval_ns = interval_ns
        self.begin_ns: int | None = None
        self.end_ns: int | None = None


class HostBurst:
    """All methods are for any thread, and none waits for a reading. `held` are asked at each sample for what is new there."""

    def __init__(
        self, make_source: Callable[[], HostSource], clock: Clock, held: Sequence[Callable[[], Sample | None]] = ()
    ) -> None:
        self._make_source = make_source
        self._clock = clock
        self._held = held
        self._changed = threading.Condition()
        self._wishes: dict[str, _Wish] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._rows: deque[Row] = deque()
        self._values = 0
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}

    # --- who wants samples ---------------------------------------------------------------------------------------------

    def arm(self, key: str, interval_ns: int) -> None:
        """Somebody will want samples at this interval (20 ms to 10 s); from when on, `window` tells."""
        with self._changed:
            if self._closed or len(self._wishes) >= MOST_WISHES:
                return
            self._wishes[key] = _Wish(min(max(interval_ns, SHORTEST_INTERVAL_NS), LONGEST_INTERVAL_NS))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="host burst", daemon=True)
                self._thread.start()

    def window(self, key: str, begin_in_ns: int, end_in_ns: int) -> None:
        """From when to when, counted from now; at most 10 minutes. An unknown key is ignored."""
        with self._changed:
            if (wish := self._wishes.get(key)) is not None:
                now_ns = self._clock.monotonic_ns()
                wish.begin_ns = now_ns + max(begin_in_ns, 0)
                wish.end_ns = min(now_ns + end_in_ns, wish.begin_ns + LONGEST_WISH_NS)
                self._changed.notify_all()

    def done(self, key: str) -> None:
        """Nobody wants samples for that any more; what there is stays. An unknown key is ignored."""
        with self._changed:
            if self._wishes.pop(key, None) is not None:
                self._changed.notify_all()

    def close(self) -> None:
        """End the thread, when it next wakes; returns at once."""
        with self._changed:
            self._closed = True
            self._wishes.clear()
            self._changed.notify_all()

    def page(self, begin_wall_ns: int, end_wall_ns: int) -> SamplePage:
        """The samples that reach into that time, oldest first, as many as one answer should have."""
        with self._changed:
            rows = list(self._rows)
        return page(rows, begin_wall_ns, end_wall_ns)

    # --- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        # A wish that comes just as the thread ends finds it there still: then it goes on.
        while self._sleep_until_due():
            try:
                self._burst()
            except Exception:  # noqa: BLE001 - the boundary of this thread: nothing else of the daemon may suffer
                _log.exception("sampling the host beside a trace failed: that trace has no host counters")
                with self._changed:
                    self._wishes.clear()

    def _sleep_until_due(self) -> bool:
        """Until somebody's time begins; False when nobody is left."""
        with self._changed:
            while True:
                now_ns = self._clock.monotonic_ns()
                self._drop_over(now_ns)
                if not self._wishes:
                    self._thread = None
                    return False
                begins = [wish.begin_ns for wish in self._wishes.values() if wish.begin_ns is not None]
                if begins and min(begins) <= now_ns:
                    return True
                self._changed.wait((min(begins) - now_ns) / 1e9 if begins else None)

    def _drop_over(self, now_ns: int) -> None:
        for key in [key for key, wish in self._wishes.items() if wish.end_ns is not None and wish.end_ns <= now_ns]:
            del self._wishes[key]

    def _burst(self) -> None:
        """From the first sample to the last that anybody wants now."""
        cpu_began_ns, began_ns = time.thread_time_ns(), self._clock.monotonic_ns()
        sampling = _Sampling(self._make_source(), self._held)
        # At once, not at a multiple of the interval: what begins to be recorded now would be without values up to there.
        self._put(sampling.take())
        rest_ns = SHORTEST_INTERVAL_NS
        while self._sleep_an_interval(sampling.cost_ns, rest_ns):
            rest_ns = 0
            self._put(sampling.take())
        # Where the interval is long, the end of what was recorded lies in a part of one.
        self._put(sampling.take())
        took_ns = max(self._clock.monotonic_ns() - began_ns, 1)
        _log.info(
            "sampled the host beside traces: %d samples in %.1f s, %.2f %% of a core%s",
            sampling.taken,
            took_ns / 1e9,
            100 * (time.thread_time_ns() - cpu_began_ns) / took_ns,
            "".join(f"; without {name} ({why})" for name, why in sampling.missing.items()),
        )

    def _sleep_an_interval(self, cost_ns: int, least_ns: int) -> bool:
        """To the next multiple of the interval on the wall clock, so that hosts can be compared, or a later one where readings are dear.

        At least `least_ns`. False when nobody wants samples now.
        """
        with self._changed:
            while True:
                now_ns = self._clock.monotonic_ns()
                self._drop_over(now_ns)
                wanted = [
                    wish.interval_ns
                    for wish in self._wishes.values()
                    if wish.begin_ns is not None and wish.begin_ns <= now_ns
                ]
                if not wanted:
                    return False
                interval_ns = min(wanted)
                rest_ns = max(int(cost_ns / MOST_CPU_RATIO) - interval_ns, least_ns)
                due_ns = now_ns + rest_ns + interval_ns - (self._clock.wall_ns() + rest_ns) % interval_ns
                if self._wait_until(due_ns):
                    return True

    def _wait_until(self, due_ns: int) -> bool:
        """False when a wish came or went meanwhile, so that the interval may be another."""
        while (left_ns := due_ns - self._clock.monotonic_ns()) > 0:
            if self._changed.wait(left_ns / 1e9):
                return False
        return True

    def _put(self, samples: Sequence[Sample]) -> None:
        for one in samples:
            keys = tuple(one.values)
            names = self._names.setdefault(keys, keys)
            values = array("d", map(float, one.values.values()))
            with self._changed:
                self._rows.append(Row(one.wall_ns, one.monotonic_ns, one.elapsed_ns, names, values))
                self._values += len(names)
                while len(self._rows) > MOST_ROWS or self._values > MOST_VALUES:
                    self._values -= len(self._rows.popleft().values)
        if len(self._names) > MOST_ROWS:
            self._names.clear()  # devices come and go: rows keep the names that they have


class _Sampling:
    """One burst: makes samples of readings, and knows what a reading costs (`cost_ns` of CPU, a running mean)."""

    def __init__(self, source: HostSource, held: Sequence[Callable[[], Sample | None]]) -> None:
        self._source = source
        self._held = held
        self._seen: list[Sample | None] = [None] * len(held)
        self._before: Any = None
        self.taken = 0
        self.cost_ns = 0

    @property
    def missing(self) -> Mapping[str, str]:
        """What of the source cannot be read."""
        return self._source.missing

    def take(self) -> list[Sample]:
        """Read; what the time since the last reading gave, and what is new of what others measure."""
        began_ns = time.thread_time_ns()
        after, before = self._source.read(), self._before
        self._before = after
        found: list[Sample] = []
        if before is not None and (values := self._source.compute(before, after)):
            elapsed_ns = after.monotonic_ns - before.monotonic_ns
            found.append(Sample(before.wall_ns, before.monotonic_ns, elapsed_ns, values))
        for number, ask in enumerate(self._held):
            now = ask()
            if now is not None and now.values and now is not self._seen[number]:
                self._seen[number] = now
                found.append(now)
        self.taken += before is not None
        cost_ns = time.thread_time_ns() - began_ns
        self.cost_ns = (3 * self.cost_ns + cost_ns) // 4 if self.cost_ns else cost_ns
        return found
