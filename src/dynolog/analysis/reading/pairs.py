"""Begin and end events (`ph` B and E), which other writers of the format use, joined to complete ones."""

from collections.abc import Sequence

from dynolog.analysis.reading.columns import NONE
from dynolog.analysis.reading.event_fields import Event, Key
from dynolog.analysis.reading.exact_time import exact_ns


class Pairs:
    """Per thread a stack of what has begun. An end closes the begin before it, as the format says."""

    def __init__(self) -> None:
        self._open: dict[tuple[Key, Key], list[tuple[Event, int]]] = {}
        self._strays = 0

    @property
    def left(self) -> int:
        """Events that found no other."""
        return self._strays + sum(map(len, self._open.values()))

    def add(self, events: Sequence[Event]) -> list[Event]:
        """The complete events that end among these."""
        complete: list[Event] = []
        for event, at_ns in zip(events, exact_ns([event.ts for event in events]).tolist(), strict=True):
            stack = self._open.setdefault((event.pid, event.tid), [])
            if at_ns == NONE or (event.ph == "E" and not stack):
                self._strays += 1
            elif event.ph == "B":
                stack.append((event, at_ns))
            else:
                begun, begin_ns = stack.pop()
                begun.dur = (at_ns - begin_ns) / 1000
                complete.append(begun)
        return complete
