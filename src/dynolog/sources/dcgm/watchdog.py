"""Profiling counters that went blank on a device that had them, while its other fields are fine.

After some errors (Xid 31) they stay blank for ever; a pause and resume of the profiling module brings them back. That is done once, then
seldom, because it interrupts the counters of every device.
"""

from collections.abc import Callable

ROUNDS = 3
# With short rounds: a load that ends or begins makes utilisation (of the last second) and counters disagree for so long.
_LEAST_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 600.0, 3600.0


class Watchdog:
    """Counts blank rounds of each GPU and says when to renew."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._had: set[int] = set()
        self._never_rounds: dict[int, int] = {}
        self._blank_rounds: dict[int, int] = {}
        self._blank_since: dict[int, float] = {}
        self._not_before = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._renewed: set[int] = set()

    def look(self, gpu: int, *, has_values: bool, is_fine_otherwise: bool, is_divided: bool = False) -> None:
        """What a GPU's profiling fields gave in this round; those of a divided one may be its instances' alone."""
        if has_values:
            self.answered(gpu)
            self._blank_rounds.pop(gpu, None)
            self._blank_since.pop(gpu, None)
            self._renewed.discard(gpu)
            if not self._renewed:
                self._pause_s = _FIRST_PAUSE_S
        elif gpu in self._had and is_fine_otherwise:
            self._blank_rounds[gpu] = self._blank_rounds.get(gpu, 0) + 1
            self._blank_since.setdefault(gpu, self._clock())
        elif is_fine_otherwise and not is_divided:
            self._never_rounds[gpu] = self._never_rounds.get(gpu, 0) + 1

    def answered(self, gpu: int) -> None:
        """Its fields gave something, if nothing to be believed: it has such counters."""
        self._had.add(gpu)
        self._never_rounds.pop(gpu, None)

    def never_answered(self) -> list[int]:
        """GPUs that should have such counters and have given none since the beginning, which lasts for a while now."""
        return sorted(gpu for gpu, rounds in self._never_rounds.items() if rounds >= 2 * ROUNDS)

    def due(self) -> list[int]:
        """The GPUs for which the profiling module should be renewed now; [] when none, or when that was tried not long ago."""
        if not self._blank_rounds:
            return []
        gpus = self._blank_for_long()
        return gpus if gpus and self._clock() >= self._not_before else []

    def renewed(self, gpus: list[int]) -> None:
        """It was: leave it alone for a while, longer each time that it did not help."""
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S) if self._renewed & set(gpus) else _FIRST_PAUSE_S
        self._not_before = self._clock() + self._pause_s
        self._renewed.update(gpus)
        self._blank_rounds.clear()
        self._blank_since.clear()

    def still_blank(self) -> list[int]:
        """GPUs for which renewing did not help."""
        return [gpu for gpu in self._blank_for_long() if gpu in self._renewed]

    def _blank_for_long(self) -> list[int]:
        since_s = self._clock() - _LEAST_S
        return sorted(
            gpu for gpu, rounds in self._blank_rounds.items() if rounds >= ROUNDS and self._blank_since[gpu] <= since_s
        )
