"""One backend among those that may be used: how it failed, and when it may be tried again. Pure."""

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.gpu_registry import Entry

SECOND_NS = 1_000_000_000
# Open for so long, a backend has shown that it works here.
LASTING_NS = 60 * SECOND_NS
_SHORTEST_DELAY_S = 5.0
_LONGEST_DELAY_NS = 600 * SECOND_NS
# With another backend at work: one that lasted is tried again this often, and any other.
_RETURN_NS = 600 * SECOND_NS
_PROBE_NS = 3600 * SECOND_NS


class Candidate:
    """Times are monotonic; `error` is why it was not opened, or is open no more. `lasted`: it had worked for a minute when it failed."""

    def __init__(self, entry: Entry, interval_s: float) -> None:
        self.entry = entry
        self.name = entry.name
        self.lasted = False
        self.not_before_ns = 0
        self.opened_ns = 0
        self.error: SourceUnavailable | None = None
        self._shortest_delay_ns = int(min(interval_s, _SHORTEST_DELAY_S) * SECOND_NS)
        self._failures = 0

    def failed(self, now_ns: int, error: SourceUnavailable) -> int:
        """The delay until the next attempt: doubled with each failure, up to 10 min."""
        delay_ns = min(self._shortest_delay_ns << min(self._failures, 16), _LONGEST_DELAY_NS)
        if self.opened_ns and now_ns - self.opened_ns > delay_ns:
            # It had worked for longer than it was left alone.
            self._failures, delay_ns = 0, self._shortest_delay_ns
        self._failures += 1
        self.opened_ns = 0
        self.not_before_ns = now_ns + delay_ns
        self.error = error
        return delay_ns

    def leave_alone(self, now_ns: int) -> None:
        """Another backend is at work."""
        self.not_before_ns = now_ns + (_RETURN_NS if self.lasted else _PROBE_NS)
