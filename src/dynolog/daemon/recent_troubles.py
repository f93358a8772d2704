"""The warnings of the last hour, for `dyno status`: a fault that is over by the time somebody looks must still be found."""

import logging
from collections.abc import Iterable

import msgspec

from dynolog.model.clock import Clock, SystemClock
from dynolog.model.status import RecentTrouble

KEPT_NS = 3_600_000_000_000
_MOST_KEPT = 16
_MOST_CHARACTERS = 400
# What callers did wrong is for the log, which not everybody may read; and they must not be able to push faults out.
_OF_CALLERS = frozenset(f"dynolog.rpc.{module}" for module in ("refusal_log", "line_budget", "audit", "auth"))


class _Kept(msgspec.Struct):
    text: str
    last_ns: int
    times: int


class RecentTroubles(logging.Handler):
    """Keeps what is logged as a warning or worse, the newest of each kind with how often it came. From any thread.

    Two records are of one kind when they have the same format and the same first text in it: the name of an exporter, say.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(logging.WARNING)
        self._clock = clock or SystemClock()
        self._kept: dict[tuple[str, str], _Kept] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record; called with the handler's lock."""
        if record.name in _OF_CALLERS:
            return
        first = record.args[0] if isinstance(record.args, tuple) and record.args else ""
        kind = (str(record.msg), first if isinstance(first, str) else "")
        before = self._kept.pop(kind, None)
        if before is None and len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        text = record.getMessage()[:_MOST_CHARACTERS]
        self._kept[kind] = _Kept(text, self._clock.monotonic_ns(), before.times + 1 if before else 1)

    def since_an_hour(self, standing: Iterable[str] = ()) -> tuple[RecentTrouble, ...]:
        """Newest last, without what `standing` holds: that is said elsewhere as long as it lasts.

        The times are by the wall clock of now, whatever it was set to since.
        """
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        standing = tuple(filter(None, standing))
        self.acquire()
        try:
            for kind in [kind for kind, kept in self._kept.items() if now_ns - kept.last_ns > KEPT_NS]:
                del self._kept[kind]
            return tuple(
                RecentTrouble(wall_ns=wall_ns - (now_ns - kept.last_ns), text=kept.text, times=kept.times)
                for kept in self._kept.values()
                if not any(sentence in kept.text for sentence in standing)
            )
        finally:
            self.release()
