"""Who waits for whom: how long ranks stood in collectives before the last one came, and which one that was."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.job.collective_matching import Matched
from dynolog.analysis.reading.columns import Integers
from dynolog.analysis.reading.intervals import Intervals, intersection, union

_OTHERS = 16


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """`waited_ns`: time in collectives that not all had joined yet, with nothing to compute meanwhile. `kept_waiting_ns`: how long, on
    average, each other rank waited so for this rank alone: what the job wins when only this rank becomes as fast as the next. `last`
    of `collectives`: how often it came last."""

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
    """For each unit (a rank or a host): when it alone was waited for, by each of some others; how often it was last, and of how many.
    For each rank: when it waited. Only waiting with nothing to compute meanwhile."""

    waited: list[Intervals]
    kept_waiting: list[list[Intervals]]
    last: list[int]
    collectives: list[int]


def wait_spans(matched: Sequence[Matched], unit_of: Sequence[int], exposed: Sequence[Intervals | None]) -> WaitSpans:
    """`unit_of` gives the unit of each result. A unit arrives when its last rank does; collectives within one unit do not count.

    With its last rank earlier by some time, a collective would end earlier by that: so a wait is laid at the end of the collective,
    and counts as far as the rank that waited computed nothing then. `exposed` is when a rank communicated and computed nothing, in
    the job's clock; None for collectives of the host, which are all taken as exposed. Times are unions: nothing counts twice.
    """
    units = max(unit_of, default=-1) + 1
    waited: list[list[tuple[Integers, Integers]]] = [[] for _ in unit_of]
    kept: list[list[tuple[Integers, Integers]]] = [[] for _ in range(units)]
    last, count = [0] * units, [0] * units
    for one in matched:
        present = sorted({unit_of[place] for place in one.ranks})
        if len(present) < 2:
            continue
        columns = [[i for i, place in enumerate(one.ranks) if unit_of[place] == unit] for unit in present]
        arrival = np.stack([one.begin_ns[:, mine].max(axis=1) for mine in columns], axis=1)
        ordered = np.sort(arrival, axis=1)
        latest = np.argmax(arrival, axis=1)
        for i, place in enumerate(one.ranks):
            late = np.minimum(ordered[:, -1], one.end_ns[:, i]) - one.begin_ns[:, i]
            waited[place].append((one.end_ns[:, i] - late, one.end_ns[:, i]))
        for i, unit in enumerate(present):
            mine_last = latest == i
            end = one.end_ns[mine_last].max(axis=1)
            kept[unit].append((end - (ordered[mine_last, -1] - ordered[mine_last, -2]), end))
            last[unit] += int(np.count_nonzero(mine_last))
            count[unit] += len(arrival)
    return WaitSpans(
        [_idle_in(_union(spans), exposed[place]) for place, spans in enumerate(waited)],
        [
            [_idle_in(spans, exposed[place]) for place in _some_others(unit, unit_of, matched)]
            for unit, spans in enumerate(map(_union, kept))
        ],
        last,
        count,
    )


def _idle_in(spans: Intervals, exposed: Intervals | None) -> Intervals:
    return spans if exposed is None else intersection(spans, exposed)


def _some_others(unit: int, unit_of: Sequence[int], matched: Sequence[Matched]) -> list[int]:
    """Results of other units that share collectives with this one; so many that a mean over them is enough."""
    sharing = {
        place
        for one in matched
        if any(unit_of[place] == unit for place in one.ranks)
        for place in one.ranks
        if unit_of[place] != unit
    }
    others = sorted(sharing)
    return others[:: max(len(others) // _OTHERS, 1)]


def mean_ns(spans: Sequence[Intervals]) -> int:
    """How long they are on average."""
    return sum(one.total_ns for one in spans) // len(spans) if spans else 0


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
