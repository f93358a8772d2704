"""The same collective on several ranks: found by its sequence number, else by its end, which is the same moment for all."""

from collections.abc import Sequence

import msgspec
import numpy as np

from dynolog.analysis.job.job_clock import RankOffset
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.analysis.reading.columns import NONE, Integers

# How far apart the ends of one collective may be, once clocks agree: on devices; and on hosts, whose threads wait for a CPU, up to
# half of the usual time from one to the next.
_APART_ON_DEVICE_NS = 200_000
_APART_ON_HOST_NS = 10_000_000
_RESIDUALS = 4


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """Collectives of one kernel and group on the ranks that take part: arrays of shape (collectives, ranks) in the job's clock.

    Only those that all these ranks recorded. `ranks` are places in the list of results.
    """

    key: str
    kind: str
    ranks: list[int]
    begin_ns: Integers
    end_ns: Integers
    size_bytes: Integers
    group_size: int | None

    @property
    def last_arrival_ns(self) -> Integers:
        """When the last rank joined each."""
        last: Integers = self.begin_ns.max(axis=1)
        return last


def match(results: Sequence[RankResult], offsets: Sequence[RankOffset]) -> list[Matched]:
    """All kinds of collectives that at least two ranks have."""
    takers: dict[str, list[int]] = {}
    for place, (result, offset) in enumerate(zip(results, offsets, strict=True)):
        if offset.source:
            for key in result.collectives.keys:
                takers.setdefault(key, []).append(place)
    found = []
    for key, places in takers.items():
        if len(places) > 1 and (matched := _match(key, places, results, offsets)) is not None:
            found.append(matched)
    return found


def _match(key: str, places: list[int], results: Sequence[RankResult], offsets: Sequence[RankOffset]) -> Matched | None:
    chosen = [_of_key(results[place], key) for place in places]
    shifts = [offsets[place].offset_ns for place in places]
    calls = [results[place].collectives for place in places]
    ends = [one.end_ns[rows] - shift for one, rows, shift in zip(calls, chosen, shifts, strict=True)]
    begins = [one.begin_ns[rows] - shift for one, rows, shift in zip(calls, chosen, shifts, strict=True)]
    sequences = [one.sequence[rows] for one, rows in zip(calls, chosen, strict=True)]
    if all(len(np.unique(one)) == len(one) and NONE not in one for one in sequences):
        columns = [_equal(sequences[0], one) for one in sequences]
    else:
        residual = max(offsets[place].residual_ns or 0 for place in places)
        apart = max(_apart_ns(ends[0], on_device=calls[0].on_device), _RESIDUALS * residual)
        columns = [_nearest(ends[0], one, apart) for one in ends]
    taking = _taking_part(columns)
    if len(taking) < 2:
        return None
    partners = np.stack([columns[i] for i in taking], axis=1)
    partners = partners[(partners >= 0).all(axis=1)]
    rows = chosen[0][partners[:, 0]]
    sizes = calls[0].group_size[rows]
    return Matched(
        key=key,
        kind=calls[0].kinds[int(calls[0].kind[rows[0]])],
        ranks=[places[i] for i in taking],
        begin_ns=np.stack([begins[i][partners[:, column]] for column, i in enumerate(taking)], axis=1),
        end_ns=np.stack([ends[i][partners[:, column]] for column, i in enumerate(taking)], axis=1),
        size_bytes=calls[0].size_bytes[rows],
        group_size=int(sizes[0]) if sizes[0] != NONE else None,
    )


def _taking_part(columns: list[Integers]) -> list[int]:
    """The ranks that have at least half of what the best of the others has: one may have recorded other iterations."""
    counts = [int(np.count_nonzero(column >= 0)) for column in columns]
    most = max(counts[1:], default=0)
    taking = [i for i, count in enumerate(counts) if count and count * 2 >= most]
    while len(taking) > 1 and not np.logical_and.reduce([columns[i] >= 0 for i in taking]).any():
        taking.remove(min(taking[1:], key=lambda i: counts[i]))
    return taking


def _apart_ns(ends_ns: Integers, *, on_device: bool) -> int:
    if on_device or len(ends_ns) < 2:
        return _APART_ON_DEVICE_NS
    return min(_APART_ON_HOST_NS, int(np.median(np.diff(ends_ns)) / 2))


def _of_key(result: RankResult, key: str) -> Integers:
    """The rows of a key by their ends."""
    calls = result.collectives
    rows = np.flatnonzero(calls.key == calls.keys.index(key))
    return rows[np.argsort(calls.end_ns[rows], kind="stable")]


def _equal(ours: Integers, theirs: Integers) -> Integers:
    """For each of ours the place of the equal one of theirs, -1 for none."""
    order = np.argsort(theirs)
    place = np.minimum(np.searchsorted(theirs[order], ours), len(theirs) - 1)
    return np.where(theirs[order][place] == ours, order[place], -1)


def _nearest(ours: Integers, theirs: Integers, apart_ns: int) -> Integers:
    """For each of ours the nearest of theirs, when ours is also the nearest to that; -1 for none. Both rise."""
    forth, back = _closest(ours, theirs), _closest(theirs, ours)
    mutual = back[forth] == np.arange(len(ours))
    return np.where(mutual & (np.abs(theirs[forth] - ours) <= apart_ns), forth, -1)


def _closest(ours: Integers, theirs: Integers) -> Integers:
    right = np.clip(np.searchsorted(theirs, ours), 0, len(theirs) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(theirs[left] - ours) <= np.abs(theirs[right] - ours), left, right)
