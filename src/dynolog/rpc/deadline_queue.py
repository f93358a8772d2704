"""Things that must be over after the same time, in order, with one timer for all of them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class DeadlineQueue(Generic[T]):
    """Calls `expire` for each member that is still in it `timeout_s` after it was added. No timer runs while it is empty."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float, expire: Callable[[T], None]) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._expire = expire
        # Insertion order is the order of deadlines, because all have the same time.
        self._deadlines: dict[T, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    def __iter__(self) -> Iterator[T]:
        return iter(self._deadlines)

    def add(self, member: T) -> None:
        """Start the member's time, or start it anew."""
        self._deadlines.pop(member, None)
        self._deadlines[member] = self._loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._on_time)

    def discard(self, member: T) -> None:
        """Forget the member. The timer goes on and finds nothing: cancelling it each time would cost more."""
        self._deadlines.pop(member, None)

    def oldest(self) -> T | None:
        """The member whose deadline is next."""
        return next(iter(self._deadlines), None)

    def stop(self) -> None:
        """Forget everybody."""
        self._deadlines.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        now = self._loop.time()
        for member in [member for member, deadline in self._deadlines.items() if deadline <= now]:
            # An earlier one's end may have ended this one too.
            if member in self._deadlines:
                del self._deadlines[member]
                self._expire(member)
        first = self.oldest()
        if first is not None and self._timer is None:
            self._timer = self._loop.call_at(self._deadlines[first], self._on_time)
