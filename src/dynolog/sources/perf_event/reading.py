"""What a group of counters reads, and what two readings mean."""

import struct

import msgspec

_HEADER = struct.Struct("=QQQ")
_WORD_BYTES = 8


class Reading(msgspec.Struct, frozen=True):
    """One read of a group: ns since it was enabled, ns of that in which it really counted, raw counts in the order of its events."""

    enabled_ns: int
    running_ns: int
    counts: tuple[int, ...]


class Counted(msgspec.Struct, frozen=True):
    """The growth between two readings: the share of time counted (0 to 1), and counts scaled up to the whole time.

    `counts` is None where nothing was counted: that is not 0.
    """

    running_ratio: float
    counts: tuple[float, ...] | None


def read_bytes(events: int) -> int:
    """The size of a group's read."""
    return _HEADER.size + 2 * _WORD_BYTES * events


def parse_reading(data: bytes, ids: tuple[int, ...]) -> Reading | None:
    """A group's read (number of events, times, then value and id each); None when it is empty, cut, or lacks one of `ids`.

    A read of a pinned group that got no counter is empty, one of an event in error too (perf_event_open(2)).
    """
    if len(data) < _HEADER.size:
        return None
    number, enabled_ns, running_ns = _HEADER.unpack_from(data)
    if number != len(ids) or len(data) < read_bytes(number):
        return None
    words = struct.unpack_from(f"={2 * number}Q", data, _HEADER.size)
    if words[1::2] == ids:
        return Reading(enabled_ns, running_ns, words[::2])
    by_id = dict(zip(words[1::2], words[::2], strict=True))
    if not all(event_id in by_id for event_id in ids):
        return None
    return Reading(enabled_ns, running_ns, tuple(by_id[event_id] for event_id in ids))


def between(before: Reading, after: Reading) -> Counted | None:
    """What was counted from `before` to `after`, by the group's own times; None when no time passed or a counter went back."""
    enabled_ns = after.enabled_ns - before.enabled_ns
    running_ns = after.running_ns - before.running_ns
    if enabled_ns <= 0 or running_ns < 0 or len(before.counts) != len(after.counts):
        return None
    grown = [new - old for old, new in zip(before.counts, after.counts, strict=True)]
    if min(grown, default=0) < 0:
        return None
    if running_ns == 0:
        return Counted(0.0, None)
    if running_ns >= enabled_ns:
        return Counted(1.0, tuple(grown))
    factor = enabled_ns / running_ns
    return Counted(running_ns / enabled_ns, tuple(count * factor for count in grown))
