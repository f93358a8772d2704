"""The GPUs of this machine as the daemon asks for them: samples for the collector, pausing for people, and what to say about both.

One thread talks to the child process, because a driver answers when it likes: whoever reads waits for it as long as he can afford, and
takes what came late the next time.
"""

import logging
import threading
from collections.abc import Callable

from msgspec import structs

from dynolog.model.clock import Clock
from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuSample, ProfilingState
from dynolog.model.gpu_view import GpuStatus
from dynolog.sources.gpu_access import Child, GpuAccess
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_child import GpuChild
from dynolog.sources.gpu_wire import Sampled

_log = logging.getLogger(__name__)
# What is older than so many intervals is dropped.
_FRESH_INTERVALS = 2
# Of what a reading took, before one that no collector asked for: 2 % of a core at most, were all of it work.
_REST = 49
Answer = Callable[[bool], None]


class _Wish:
    """A person's wish to pause for so many seconds (0: to resume), and who waits for the answer."""

    def __init__(self, duration_s: float, answer: Answer) -> None:
        self.duration_s = duration_s
        self.answer = answer


class GpuSource:
    """Made once; its thread and its child begin with the first `read`, and end with `close`. All methods are for any thread.

    `on_sample` gets every sample as it comes, as old as it is by then, on the source's thread, and None when it is closed.
    """

    def __init__(
        self,
        options: GpuOptions,
        deadline_s: float,
        clock: Clock,
        make_child: Callable[[str], Child] = GpuChild,
        wait_s: float = 0.25,
    ) -> None:
        self.options = options
        self.on_sample: Callable[[GpuSample | None], None] = lambda _: None
        self._wait_s = wait_s
        self._deadline_s = deadline_s
        self.clock = clock
        self._make_child = make_child
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._access: GpuAccess | None = None
        self._ending: tuple[threading.Thread, GpuAccess] | None = None
        self._is_asked = False
        self._asked_ns = 0
        self._rested_ns = 0  # from then on a sample beside those of the collector is cheap enough
        self._latest: Sampled | None = None
        self._given: Sampled | None = None
        self._error: SourceUnavailable | None = None
        self._wishes: list[_Wish] = []
        self._paused_until_ns = 0

    def read(self) -> Sampled | None:
        """Ask for a sample and wait `wait_s` for it; what came late since the last time does as well. None: nothing new yet.

        Raises SourceUnavailable while no backend works, and when nothing has come for more than two intervals.
        """
        with self._changed:
            self._start()
            if not self._is_asked:
                self._is_asked, self._asked_ns = True, self.clock.monotonic_ns()
                self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_asked, self._wait_s)
            latest = self._latest
            if latest is not None and latest is not self._given and self._age_s(latest) <= self._longest_s:
                self._given = latest
                return latest
            if self._error is not None:
                raise self._error
            if latest is not None and self._age_s(latest) > self._longest_s:
                raise _late()
            return None

    def freshen(self) -> None:
        """Have a sample made now for whoever gets them by `on_sample`; nothing waits for it.

        Not while nobody reads, one is being made, or the driver fails, nor so soon after one that readings took more than 2 % of a core.
        """
        with self._changed:
            now_ns = self.clock.monotonic_ns()
            works = self._thread is not None and self._latest is not None and self._error is None
            if works and not self._is_asked and now_ns >= self._rested_ns:
                self._is_asked, self._asked_ns = True, now_ns
                self._changed.notify_all()

    def pause(self, duration_s: float, answer: Answer) -> None:
        """Let go of the profiling hardware for so long; a second time replaces the first. `answer` is called by the source's thread."""
        self._wish(_Wish(duration_s, answer))

    def resume(self, answer: Answer) -> None:
        """Take the profiling hardware again now."""
        self._wish(_Wish(0, answer))

    def status(self) -> GpuStatus:
        """What there is to say."""
        with self._changed:
            access, latest, error, until_ns = self._access, self._latest, self._error, self._paused_until_ns
            is_late = self._is_asked and self._waited_s > max(self._longest_s, self._wait_s)
            if error is None and latest is not None and is_late:
                error = _late()
        sample = latest.sample if latest is not None else None
        left_ns = until_ns - self.clock.monotonic_ns() if until_ns else 0
        return GpuStatus(
            enabled=True,
            backend=access.backend if access is not None else "",
            why=str(error) if error is not None else "",
            driver_version=sample.driver_version if sample else "",
            library_version=sample.library_version if sample else "",
            expected=sample.expected if sample else 0,
            seen=sample.seen if sample and error is None else 0,
            profiling=ProfilingState.PAUSED if until_ns else sample.profiling if sample else ProfilingState.OFF,
            profiling_why=sample.profiling_why if sample else "",
            paused_until_wall_ns=self.clock.wall_ns() + left_ns if until_ns else 0,
            notes=access.notes if access is not None else (),
        )

    def close(self, timeout_s: float = 0.0) -> None:
        """End thread and child; waits so long for them, also when they were closed before."""
        with self._changed:
            if self._thread is not None and self._access is not None:
                self._ending = self._thread, self._access
            self._thread = self._access = None
            self._is_asked, self._latest, self._error, self._paused_until_ns = False, None, None, 0
            wishes, self._wishes = self._wishes, []
            self._changed.notify_all()
        self.on_sample(None)
        for wish in wishes:
            wish.answer(False)
        if self._ending is not None and timeout_s:
            thread, access = self._ending
            thread.join(timeout_s)
            if thread.is_alive():
                access.kill()

    @property
    def _longest_s(self) -> float:
        return _FRESH_INTERVALS * self.options.interval_s

    @property
    def _waited_s(self) -> float:
        return (self.clock.monotonic_ns() - self._asked_ns) / 1e9

    def _age_s(self, sampled: Sampled) -> float:
        return (self.clock.monotonic_ns() - sampled.taken_ns) / 1e9 + sampled.sample.age_s

    def _wish(self, wish: _Wish) -> None:
        with self._changed:
            self._start()
            self._wishes.append(wish)
            self._changed.notify_all()

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None:
            self._access = GpuAccess(self.options, self._deadline_s, self.clock, self._make_child)
            self._thread = threading.Thread(target=self._run, args=(self._access,), name="gpu", daemon=True)
            self._thread.start()

    def _run(self, access: GpuAccess) -> None:
        try:
            while (work := self._next(access)) is not None:
                work()
        finally:
            access.close()

    def _next(self, access: GpuAccess) -> Callable[[], None] | None:
        """Sleep until there is something to do, and say what; None when it is over."""
        with self._changed:
            while access is self._access:
                if self._wishes:
                    wish = self._wishes.pop(0)
                    return lambda: self._fulfil(access, wish)
                left_s = self._pause_left_s()
                if left_s is not None and left_s <= 0:
                    self._paused_until_ns = 0
                    return lambda: self._end_pause(access)
                if self._is_asked:
                    return lambda: self._sample(access)
                self._changed.wait(left_s)
            return None

    def _pause_left_s(self) -> float | None:
        if not self._paused_until_ns:
            return None
        return (self._paused_until_ns - self.clock.monotonic_ns()) / 1e9

    def _sample(self, access: GpuAccess) -> None:
        sampled: Sampled | None = None
        error: SourceUnavailable | None = None
        began_ns = self.clock.monotonic_ns()
        try:
            sampled = access.sample()
        except SourceUnavailable as caught:
            error = caught
        except Exception as caught:  # noqa: BLE001 - the boundary of this thread: the collector counts and reports it
            _log.exception("reading the GPUs failed")
            error = SourceUnavailable("gpu", f"{type(caught).__name__}: {caught}")
        ended_ns = self.clock.monotonic_ns()
        with self._changed:
            if access is self._access:
                self._is_asked = False
                self._rested_ns = ended_ns + (ended_ns - began_ns) * _REST
                self._error = error
                if sampled is not None:
                    self._latest = sampled
                    age_s = sampled.sample.age_s + (ended_ns - sampled.taken_ns) / 1e9
                    self.on_sample(structs.replace(sampled.sample, age_s=age_s))
                self._changed.notify_all()

    def _fulfil(self, access: GpuAccess, wish: _Wish) -> None:
        is_pause = wish.duration_s > 0
        done = self._set_paused(access, is_pause)
        with self._changed:
            if not is_pause:
                self._paused_until_ns = 0
            elif done:
                self._paused_until_ns = self.clock.monotonic_ns() + int(wish.duration_s * 1e9)
        if done:
            _log.info(
                "GPU profiling is paused for %g s" if is_pause else "GPU profiling goes on",
                *([wish.duration_s] * is_pause),
            )
        wish.answer(done)

    def _end_pause(self, access: GpuAccess) -> None:
        if self._set_paused(access, False):
            _log.info("GPU profiling goes on: the time for which it was paused is over")

    @staticmethod
    def _set_paused(access: GpuAccess, paused: bool) -> bool:
        try:
            return access.set_paused(paused)
        except SourceUnavailable:
            # It was logged where it happened. A new child begins as it is wanted now.
            return False


def _late() -> SourceUnavailable:
    return SourceUnavailable("gpu", "no answer for more than two intervals", "the log tells when it is given up")
