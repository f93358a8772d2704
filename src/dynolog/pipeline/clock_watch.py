"""Says why there is a gap or a jump in the records: the daemon did not run for a while, or the wall clock was stepped."""

import logging

_log = logging.getLogger(__name__)
# A machine that is merely busy wakes a thread within this.
_LATE_NS = 3_000_000_000
# Slewing moves the wall clock by at most 0.05 %; more, and at once, is a step.
_STEP_NS = 2_000_000_000
_SLEW_SHARE = 0.001


class ClockWatch:
    """Looks at each awakening of the threads that keep the time: one may be caught at work, the other sleeps then."""

    def __init__(self, monotonic_ns: int, wall_ns: int) -> None:
        self._seen_ns = monotonic_ns
        self._offset_ns = wall_ns - monotonic_ns
        self._said_until_ns = 0

    def woke(self, due_ns: int, monotonic_ns: int, wall_ns: int) -> None:
        """A thread that meant to sleep until `due_ns` (of the monotonic clock) runs again. What one of them has said the other does not."""
        late_ns = monotonic_ns - max(due_ns, self._said_until_ns)
        if late_ns > _LATE_NS:
            _log.warning(
                "the daemon did not run for %.0f s, so there are no records of that time: it was stopped or frozen, or the machine "
                "had no CPU for it",
                late_ns / 1e9,
            )
            self._said_until_ns = monotonic_ns
        offset_ns = wall_ns - monotonic_ns
        step_ns = offset_ns - self._offset_ns
        if abs(step_ns) > _STEP_NS + (monotonic_ns - self._seen_ns) * _SLEW_SHARE:
            _log.warning(
                "the wall clock went %s by %.0f s: it was set%s; intervals are measured without it",
                "forward" if step_ns > 0 else "back",
                abs(step_ns) / 1e9,
                ", or the machine was suspended" if step_ns > 0 else "",
            )
        self._seen_ns, self._offset_ns = monotonic_ns, offset_ns
