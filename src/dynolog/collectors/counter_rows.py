"""Growth of the counters of one device, with resets told from growth."""

from operator import sub


class CounterRows:
    """Deltas of devices that have a row of counters each, all of one age.

    When a counter of a row goes down, the device was reset or replaced, so no counter of the row is known for that round,
    not even those that happen to be higher. A driver that answers 0 once and the old value after it is not growth either:
    a row that comes back above where it fell from is unknown for one more round. `own` are columns that may wrap
    by themselves: they come back negative and say nothing about the rest.
    """

    def __init__(self, own: frozenset[int] = frozenset()) -> None:
        self._own = own
        # Of each device that fell: the columns that did, and where from.
        self._fallen: dict[str, list[tuple[int, int]]] = {}

    def growth(self, device: str, before: tuple[int, ...], after: tuple[int, ...]) -> list[int] | None:
        """The growth of each column, or None when the row was reset; a negative entry (only of `own`) is unknown."""
        grown = list(map(sub, after, before))
        fell_from = self._fallen.pop(device, None) if self._fallen else None
        if min(grown, default=0) < 0:
            falls = [
                (column, before[column]) for column, delta in enumerate(grown) if delta < 0 and column not in self._own
            ]
            if falls:
                if len(self._fallen) > 1024:  # devices that never return must not fill memory
                    self._fallen.clear()
                self._fallen[device] = falls
                return None
        if fell_from is not None and any(column < len(after) and after[column] >= old for column, old in fell_from):
            return None
        return grown
