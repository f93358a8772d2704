"""How fast counters grow, for sources that must turn a counter of the hardware into a rate themselves."""


class Growth:
    """Remembers the last reading of each counter of one device."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}

    def per_second(self, name: str, count: float, now_ns: int) -> float | None:
        """Growth a second since the last reading of `name`; None without one, after a reset, and when no time has passed."""
        before = self._last.get(name)
        self._last[name] = (count, now_ns)
        if before is None or count < before[0] or now_ns <= before[1]:
            return None
        return (count - before[0]) * 1e9 / (now_ns - before[1])

    def forget(self) -> None:
        """Start anew: after a gap nobody knows when the growth was."""
        self._last.clear()
