"""When collectors are read: on multiples of their interval of the wall clock, waited for by the monotonic clock. Pure.

Every time here but the offset is in nanoseconds of the monotonic clock. `offset_ns` is wall clock minus monotonic clock now, so
a wall clock that is stepped moves the grid of multiples and nothing else.
"""

# A collector that takes longer than this share of the shortest interval no longer holds the others back. Less than half, so that
# those that were held back are still read at the next multiple.
_PATIENCE_SHARE = 0.4
# ...but a busy machine may keep a thread from running for some ms without anything being wrong.
_LEAST_PATIENCE_NS = 100_000_000


def interval_ns(seconds: float) -> int:
    """Seconds, fractions included, as whole nanoseconds (at least one)."""
    return max(round(seconds * 1e9), 1)


def next_multiple_ns(earliest_ns: int, interval: int, offset_ns: int) -> int:
    """The first moment at or after `earliest_ns` at which the wall clock shows a multiple of the interval."""
    return -(-(earliest_ns + offset_ns) // interval) * interval - offset_ns


def next_due_ns(last_ns: int, interval: int, offset_ns: int) -> int:
    """When to read again after a reading at `last_ns`: between a half and one and a half intervals later.

    The half makes up for everything that moves the grid or the reading: after a step of the wall clock, or after a thread
    that woke early or late, there is neither a burst of readings nor a gap.
    """
    return next_multiple_ns(last_ns + interval // 2, interval, offset_ns)


def effective_interval_ns(shared_s: float, own_s: float, shortest_s: float) -> int:
    """The interval of one collector: its own when set (`own_s` > 0), else the shared one, but never below `shortest_s`.

    One that is only slowed down stays on multiples of the shared interval, so that it joins records instead of making more.
    """
    if own_s > 0:
        return max(interval_ns(own_s), interval_ns(shortest_s))
    shared = interval_ns(shared_s)
    return shared * max(-(-interval_ns(shortest_s) // shared), 1)


def phase_ns(slot: int, shared_s: float, interval: int) -> int:
    """How far the multiples of a collector that is slower than the others are shifted: by whole shared intervals, one more for
    each such collector, so that they are not all read in the same round. The same on every host.
    """
    return slot * interval_ns(shared_s) % interval


def patience_ns(deadline_ns: int, shortest_interval_ns: int) -> int:
    """How long a round waits for one collector before it goes on without it; never longer than the deadline."""
    return min(deadline_ns, max(int(shortest_interval_ns * _PATIENCE_SHARE), _LEAST_PATIENCE_NS))


def retry_delay_ns(failures: int, interval: int) -> int:
    """How long to leave a source alone after so many failures in a row: doubling, up to a minute, never below the interval."""
    longest = max(60_000_000_000, interval)
    return min(interval << min(failures - 1, 32), longest)
