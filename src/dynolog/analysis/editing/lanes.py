"""Lanes for events that overlap on a track: viewers show a track as a stack, and drop what is neither beside nor inside another."""

from collections.abc import Iterator

import msgspec
import numpy as np

from dynolog.analysis.reading.columns import Ids, Integers, Mask, TraceColumns

# Rounding makes an operator end after the one that called it: by up to this where times are whole µs, and where they are ns.
_ROUNDING_OF_US_NS = 1_000
_ROUNDING_OF_NS_NS = 10
# What does not fit into so many stays in the last one.
_MAX_LANES = 256
_CHUNK_ROWS = 1 << 16


class Lanes(msgspec.Struct, frozen=True):
    """For each row its lane (0: where it is) and its duration, shortened where it outlasts what it lies in by no more than rounding."""

    lane: Ids
    duration_ns: Integers
    changed: Mask

    @property
    def moved(self) -> int:
        """Events that need another lane."""
        return int(np.count_nonzero(self.lane))


def assign_lanes(begin_ns: Integers, duration_ns: Integers, track: Integers) -> Lanes:
    """The first lane of its track in which each event lies beside or wholly inside the others; earlier and longer ones first."""
    whole_us = not (begin_ns % 1000).any() and not (duration_ns % 1000).any()
    rounding_ns = _ROUNDING_OF_US_NS if whole_us else _ROUNDING_OF_NS_NS
    lane = np.zeros(len(begin_ns), np.int32)
    trimmed = duration_ns.copy()
    stacks: list[list[int]] = []
    last_track = -1
    for row, its_track, begins, lasts in _in_order(
        np.lexsort((-duration_ns, begin_ns, track)), track, begin_ns, duration_ns
    ):
        if its_track != last_track:
            last_track, stacks = its_track, [[]]
        number = 0
        for stack in stacks:
            while stack and stack[-1] <= begins:
                stack.pop()
            overrun = begins + max(lasts, 0) - stack[-1] if stack else 0
            if overrun <= rounding_ns and max(lasts, 0) >= overrun:
                break
            number += 1
        else:
            stack, overrun = [], 0
            if number < _MAX_LANES:
                stacks.append(stack)
        if overrun > 0:
            trimmed[row] = lasts - overrun
        stack.append(begins + int(max(trimmed[row], 0)))
        lane[row] = number
    return Lanes(lane, trimmed, (lane != 0) | (trimmed != duration_ns))


def _in_order(order: Integers, *columns: Integers) -> Iterator[tuple[int, ...]]:
    """Rows and their values as Python numbers, which take four times the memory of arrays: some at a time."""
    for place in range(0, len(order), _CHUNK_ROWS):
        rows = order[place : place + _CHUNK_ROWS]
        yield from zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True)


def lanes_of(columns: TraceColumns) -> Lanes:
    """Of all events of a trace, in the order of its rows."""
    track = columns.process.astype(np.int64) * (len(columns.threads) + 1) + columns.thread
    return assign_lanes(columns.begin_ns, columns.duration_ns, track)
