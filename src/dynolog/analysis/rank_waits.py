"""Who waits for whom: how long ranks stood in collectives before the last one came, and which one that was."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.collective_matching import Matched
from dynolog.analysis.columns import Integers
from dynolog.analysis.intervals import Intervals, union

_NOTHING = np.zeros(0, np.int64)


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """`waited_ns`: time in collectives that not all had joined yet. `kept_waiting_ns`: time in which all others of a group waited
    for this rank alone, which is what the job wins when only this rank becomes as fast as the next. `last` of `collectives`: how
    often it came last."""

    rank: int
    host: str
    waited_ns: int
    kept_waiting_ns: int
    last: int
    collectives: int


class CollectiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of collective over the whole job. `spread` is from the first arrival to the last, `transfer` from the last to the end."""

    name: str
    kind: str
    ranks: list[int]
    count: int
    mean_us: float
    spread_mean_us: float
    spread_max_us: float
    transfer_mean_us: float
    often_last_rank: int
    often_last_share: float


class WaitSpans(msgspec.Struct, frozen=True):
    """For each unit (a rank or a host): when it waited, when it alone was waited for; how often it was last, and of how many."""

    waited: list[Intervals]
    kept_waiting: list[Intervals]
    last: list[int]
    collectives: list[int]


def wait_spans(matched: Sequence[Matched], unit_of: Sequence[int]) -> WaitSpans:
    """`unit_of` gives the unit of each result. A unit arrives when its last rank does; collectives within one unit do not count.

    Collectives may overlap in time, so times are unions and nothing counts twice.
    """
    units = max(unit_of, default=-1) + 1
    waited: list[list[tuple[Integers, Integers]]] = [[] for _ in range(units)]
    kept: list[list[tuple[Integers, Integers]]] = [[] for _ in range(units)]
    last, count = [0] * units, [0] * units
    for one in matched:
        present = sorted({unit_of[place] for place in one.ranks})
        if len(present) < 2:
            continue
        columns = [[i for i, place in enumerate(one.ranks) if unit_of[place] == unit] for unit in present]
        arrival = np.stack([one.begin_ns[:, mine].max(axis=1) for mine in columns], axis=1)
        end = np.stack([one.end_ns[:, mine].max(axis=1) for mine in columns], axis=1)
        ordered = np.sort(arrival, axis=1)
        latest = np.argmax(arrival, axis=1)
        for i, unit in enumerate(present):
            waited[unit].append((arrival[:, i], np.minimum(ordered[:, -1], end[:, i])))
            mine_last = latest == i
            kept[unit].append((ordered[mine_last, -2], ordered[mine_last, -1]))
            last[unit] += int(np.count_nonzero(mine_last))
            count[unit] += len(arrival)
    return WaitSpans([_union(spans) for spans in waited], [_union(spans) for spans in kept], last, count)


def _union(spans: list[tuple[Integers, Integers]]) -> Intervals:
    if not spans:
        return Intervals()
    return union(np.concatenate([begin for begin, _ in spans]), np.concatenate([end for _, end in spans]))


def collective_rows(matched: Sequence[Matched], ranks: Sequence[int]) -> list[CollectiveRow]:
    """The table of collectives, those with the longest waiting first."""
    rows = []
    for one in matched:
        spread = (one.last_arrival_ns - one.begin_ns.min(axis=1)) / 1000
        lasts = np.bincount(np.argmax(one.begin_ns, axis=1), minlength=len(one.ranks))
        rows.append(
            CollectiveRow(
                name=one.key.rstrip("|").replace("|", " group "),
                kind=one.kind,
                ranks=[ranks[place] for place in one.ranks],
                count=len(spread),
                mean_us=_mean((one.end_ns - one.begin_ns) / 1000),
                spread_mean_us=_mean(spread),
                spread_max_us=float(spread.max()),
                transfer_mean_us=_mean((one.end_ns.max(axis=1) - one.last_arrival_ns) / 1000),
                often_last_rank=ranks[one.ranks[int(np.argmax(lasts))]],
                often_last_share=float(lasts.max() / lasts.sum()),
            )
        )
    return sorted(rows, key=lambda row: -row.spread_mean_us * row.count)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else 0.0
