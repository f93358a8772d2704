"""How long to leave a destination alone after a failed attempt."""

import random
from collections.abc import Callable

# A destination that asks to be left alone for longer is asked again after this: it may have mistaken a unit or a date.
_LONGEST_ASKED_S = 900.0


class Backoff:
    """Doubling delays up to a longest, each between a half and the whole, so that a fleet does not return as one."""

    def __init__(
        self, first_s: float = 0.5, longest_s: float = 30.0, draw: Callable[[], float] = random.random
    ) -> None:
        """`draw` gives numbers in [0, 1)."""
        self._first_s = first_s
        self._longest_s = longest_s
        self._draw = draw
        self._failures = 0

    def delay_s(self, asked_s: float | None = None) -> float:
        """The delay after one more failure; `asked_s` is what the destination asked for, and goes before."""
        base_s = min(self._first_s * 2.0 ** min(self._failures, 16), self._longest_s)
        self._failures += 1
        if asked_s is None:
            return base_s * (0.5 + self._draw() / 2)
        # Never before the time it named, and not all at it.
        return min(max(asked_s, self._first_s), _LONGEST_ASKED_S) * (1 + self._draw() / 10)

    def reset(self) -> None:
        """The destination answers again."""
        self._failures = 0
