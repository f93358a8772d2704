"""A clock that stands still until a test moves it, and the waiting of the pipeline's threads on it."""

import threading
import time
from collections.abc import Callable

WALL_START_NS = 1_700_000_000_250_000_000  # a quarter past a second
_PATIENCE_S = 10.0


class SteppedTime:
    """Clock and `wait` for a Pipeline. `run` moves time from one thing that is due to the next, and returns when every
    thread of the pipeline waits again (or hangs in a `Hang`).
    """

    def __init__(self) -> None:
        self._monotonic_ns = 5_000_000_000_000
        self._wall_ns = WALL_START_NS
        self._changed = threading.Condition()
        self._waiting: dict[int, tuple[threading.Condition, int | None]] = {}
        self._blocked: set[int] = set()
        self.wakeups = 0

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def wall_ns(self) -> int:
        return self._wall_ns

    def step_wall(self, seconds: float) -> None:
        """Someone sets the clock."""
        self._wall_ns += round(seconds * 1e9)

    def spend(self, seconds: float) -> None:
        """Called from within a read: it takes this long."""
        self._move(round(seconds * 1e9))

    def jump(self, seconds: float) -> None:
        """Time passes without anybody being woken in it (a suspended or stopped machine); those who are due then wake."""
        self._move(round(seconds * 1e9))
        self._wake_due()
        self.settle()

    def wait(self, condition: threading.Condition, timeout_s: float | None) -> None:
        """In place of Condition.wait: returns when a test has moved time far enough, or somebody notified."""
        until_ns = None if timeout_s is None else self._monotonic_ns + round(timeout_s * 1e9)
        ident = threading.get_ident()
        with self._changed:
            self._waiting[ident] = (condition, until_ns)
            self._changed.notify_all()
        condition.wait()
        with self._changed:
            self._waiting.pop(ident, None)

    def block(self) -> None:
        """This thread is about to hang."""
        with self._changed:
            self._blocked.add(threading.get_ident())
            self._changed.notify_all()

    def unblock(self) -> None:
        """This thread runs again."""
        with self._changed:
            self._blocked.discard(threading.get_ident())

    def settle(self) -> None:
        """Return when all threads of the pipeline wait or hang."""
        give_up = time.monotonic() + _PATIENCE_S
        with self._changed:
            while any(
                thread.ident not in self._waiting and thread.ident not in self._blocked
                for thread in threading.enumerate()
                if thread.name.startswith(("collect-", "watchdog"))
            ):
                assert time.monotonic() < give_up, "a thread of the pipeline neither waits nor hangs"
                # The end of a thread notifies nobody, so the list is looked at again after a moment.
                self._changed.wait(0.002)

    def run(self, seconds: float) -> None:
        """Let this much time pass."""
        self.settle()
        end_ns = self._monotonic_ns + round(seconds * 1e9)
        while True:
            with self._changed:
                due = [until_ns for _, until_ns in self._waiting.values() if until_ns is not None]
            next_ns = min(due, default=end_ns)
            if next_ns > end_ns:
                break
            self._move(max(next_ns - self._monotonic_ns, 0))
            if not self._wake_due():
                break
            self.settle()
        self._move(end_ns - self._monotonic_ns)

    def apart(self, action: Callable[[], object]) -> None:
        """Do something that wakes the pipeline's threads itself, and wait until they have dealt with it."""
        with self._changed:
            self._waiting.clear()
        action()
        self.settle()

    def _move(self, nanoseconds: int) -> None:
        self._monotonic_ns += nanoseconds
        self._wall_ns += nanoseconds

    def _wake_due(self) -> bool:
        """Wake whoever is due. Everybody on the same condition wakes with them, and looks again."""
        with self._changed:
            due = {
                id(condition): condition
                for condition, until_ns in self._waiting.values()
                if until_ns is not None and until_ns <= self._monotonic_ns
            }
            self.wakeups += sum(
                until_ns is not None and until_ns <= self._monotonic_ns for _, until_ns in self._waiting.values()
            )
            for ident in [ident for ident, (condition, _) in self._waiting.items() if id(condition) in due]:
                del self._waiting[ident]
        for condition in due.values():
            with condition:
                condition.notify_all()
        return bool(due)
