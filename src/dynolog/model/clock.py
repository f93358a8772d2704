"""Time as the product uses it; tests replace it."""

import time
from typing import Protocol


class Clock(Protocol):
    """The two clocks, kept apart: the wall clock stamps, the monotonic clock measures."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_MONOTONIC: intervals, deadlines."""
        ...

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch, UTC: stamps only, it may step."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch, UTC."""
        return time.time_ns()
