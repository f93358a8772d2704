"""Who called whom on the host: the nesting of operators, frames and calls of the runtime on each thread."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import Integers, TraceColumns


class CallTree(msgspec.Struct, frozen=True):
    """`rows` by thread and begin, so that callers stand before what they call; `parent` is a place in `rows`, -1 for none."""

    rows: Integers
    parent: Integers
    duration_ns: Integers

    def self_ns(self) -> Integers:
        """The time of each without what it called."""
        called = self.parent >= 0
        children = np.bincount(self.parent[called], weights=self.duration_ns[called], minlength=len(self.rows))
        return self.duration_ns - children.astype(np.int64)

    def with_callees(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each its own value and those of all that it called, directly or not."""
        sums = own.tolist()
        parents = self.parent.tolist()
        for place in range(len(parents) - 1, -1, -1):
            if parents[place] >= 0:
                sums[parents[place]] += sums[place]
        return np.array(sums, np.float64)

    def inherited(self, own: Integers) -> Integers:
        """For each its own value, else that of the nearest caller that has one; -1 where none has."""
        values = own.tolist()
        parents = self.parent.tolist()
        for place, value in enumerate(values):
            if value < 0 and parents[place] >= 0:
                values[place] = values[parents[place]]
        return np.array(values, np.int64)

    def outermost(self, countable: NDArray[np.bool_]) -> Integers:
        """For each the place of the farthest caller (or itself) that is countable; -1 where none is."""
        found = np.full(len(self.rows), -1, np.int64).tolist()
        parents, is_countable = self.parent.tolist(), countable.tolist()
        for place in range(len(found)):
            parent = parents[place]
            if parent >= 0 and found[parent] >= 0:
                found[place] = found[parent]
            elif is_countable[place]:
                found[place] = place
        return np.array(found, np.int64)


def call_tree(trace: TraceColumns, rows: Integers) -> CallTree:
    """The tree of some rows of the host. What only overlaps its predecessor, by rounding, counts as called by it."""
    track = trace.process[rows].astype(np.int64) * (len(trace.threads) + 1) + trace.thread[rows]
    order = np.lexsort((-trace.duration_ns[rows], trace.begin_ns[rows], track))
    rows, track = rows[order], track[order]
    begins, ends, tracks = trace.begin_ns[rows].tolist(), trace.end_ns[rows].tolist(), track.tolist()
    parents = [-1] * len(begins)
    stack: list[int] = []
    current = None
    for place, begin in enumerate(begins):
        if tracks[place] != current:
            current, stack = tracks[place], []
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        if stack:
            parents[place] = stack[-1]
        stack.append(place)
    return CallTree(rows, np.array(parents, np.int64), trace.duration_ns[rows])
