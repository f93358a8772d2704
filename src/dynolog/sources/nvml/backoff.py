"""When something that failed may be tried again: each time after twice as long."""


class Backoff:
    """Seconds of a monotonic clock are given by the caller."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._wait_s = first_s
        self._next_s: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it failed since it last worked."""
        return self._next_s is not None

    def is_due(self, now_s: float) -> bool:
        """Whether enough time has passed since the last try."""
        return self._next_s is None or now_s >= self._next_s

    def tried(self, now_s: float) -> None:
        """One more try was made, and it may have been in vain."""
        self._next_s = now_s + self._wait_s
        self._wait_s = min(self._wait_s * 2, self._longest_s)

    def worked(self) -> None:
        """The next failure is the first again."""
        self._wait_s = self._first_s
        self._next_s = None
