"""What the host did while a device had nothing to do: by operator or call, and how long it was in none."""

import msgspec
import numpy as np

from dynolog.analysis.rank.call_tree import CallTree
from dynolog.analysis.reading.columns import TraceColumns
from dynolog.analysis.reading.intervals import Intervals, intersection, union

_MOST_ROWS = 10


class GapCall(msgspec.Struct, frozen=True, kw_only=True):
    """An operator or a call of the runtime: its time within the gaps without what it called, and how many reach into them."""

    name: str
    count: int
    total_us: float


class GapWork(msgspec.Struct, frozen=True, kw_only=True):
    """`calls` with the longest first. `outside_ns`: in no operator and no call, on any thread: Python itself, or nothing."""

    gaps_ns: int
    outside_ns: int
    calls: list[GapCall]


def gap_work(trace: TraceColumns, tree: CallTree, gaps: Intervals) -> GapWork:
    """Of all threads together, so that the times of calls may add up to more than the gaps."""
    begins, ends = trace.begin_ns[tree.rows], trace.end_ns[tree.rows]
    inside = gaps.within(begins, ends)
    called = tree.parent >= 0
    children = np.bincount(tree.parent[called], weights=inside[called], minlength=len(inside))
    own = np.maximum(inside - children.astype(np.int64), 0)
    names = trace.name[tree.rows]
    totals = np.bincount(names, weights=own, minlength=len(trace.names))
    counts = np.bincount(names[own > 0], minlength=len(trace.names))
    longest = [number for number in np.argsort(-totals, kind="stable")[:_MOST_ROWS].tolist() if totals[number] > 0]
    return GapWork(
        gaps_ns=gaps.total_ns,
        outside_ns=gaps.total_ns - intersection(gaps, union(begins, ends)).total_ns,
        calls=[
            GapCall(name=trace.names[number], count=int(counts[number]), total_us=float(totals[number]) / 1000)
            for number in longest
        ],
    )
