"""The offset of one rank's clock from another's, from the collectives that both took part in: none ends before the last has begun,
so all ranks see it end at the same moment, up to what the network takes."""

import re
from collections.abc import Callable

import msgspec
import numpy as np

from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import Integers, Mask, TraceColumns

_DEVICE_COLLECTIVE = re.compile(r"nccl\w*Kernel|rccl\w*Kernel|oneccl|ccl_kernel", re.IGNORECASE)
# Only these annotations last until the collective is done; those of other backends end when it was handed to a stream.
_HOST_COLLECTIVE = ("gloo:", "mpi:")
_FEWEST = 3
# Two recordings may begin some collectives apart.
_MOST_SHIFT = 16
# A shift at which the ends agree so many times better is surely the better one; else the clocks decide.
_SURELY = 4
# Matched by order, ends that miss each other by more than this part of the time from one to the next are not of the same collectives.
_FITS = 4
# Clocks that nobody keeps are off by more; then order alone does not tell which collectives are the same.
_FARTHEST_NS = 1_000_000_000


class Agreement(msgspec.Struct, frozen=True):
    """`offset_ns` is to be subtracted from a rank's times. `residual_ns` is the median distance of a collective's end from
    the agreement, `matched` how many there were."""

    offset_ns: int
    residual_ns: int
    matched: int


class Ends(msgspec.Struct, frozen=True):
    """When collectives of one kind and group ended, in order of time; their sequence numbers, where all have one."""

    at_ns: Integers
    sequence: Integers | None


def collective_ends(columns: TraceColumns) -> dict[str, Ends]:
    """All collectives, by what can be told apart: those on devices when there are any, else those of the host."""
    kernels = columns.rows_of(Category.KERNEL, Category.COLLECTIVE)
    rows = kernels[_named(columns, lambda name: bool(_DEVICE_COLLECTIVE.search(name)))[columns.name[kernels]]]
    if not len(rows):
        annotations = columns.rows_of(Category.USER_ANNOTATION)
        rows = annotations[_named(columns, lambda name: name.startswith(_HOST_COLLECTIVE))[columns.name[annotations]]]
    ends = columns.begin_ns[rows] + columns.duration_ns[rows]
    order = np.argsort(ends, kind="stable")
    rows, ends = rows[order], ends[order]
    groups, grouped = columns.argument("group_name").at(rows)
    sequence, numbered = columns.argument("collective_sequence").at(rows)
    kinds: dict[tuple[int, int], list[int]] = {}
    for place, kind in enumerate(zip(columns.name[rows].tolist(), np.where(grouped, groups, -1).tolist(), strict=True)):
        kinds.setdefault(kind, []).append(place)
    labels = columns.argument("group_name").labels or []
    return {
        f"{columns.names[name]}|{labels[group] if group >= 0 else ''}": Ends(
            ends[places], sequence[places] if numbered[places].all() else None
        )
        for (name, group), places in kinds.items()
    }


def _named(columns: TraceColumns, judge: Callable[[str], bool]) -> Mask:
    return np.fromiter(map(judge, columns.names), np.bool_, len(columns.names))


def agree(ours: dict[str, Ends], theirs: dict[str, Ends], expected_ns: int = 0) -> Agreement | None:
    """How far `theirs` is ahead of `ours`; None when of no kind of collective three can be matched so that they fit.

    Of the kinds that occur often the one that agrees best decides. `expected_ns` is how far the clocks are apart for all that is known:
    0 when they are kept by NTP.
    """
    found = [
        agreement
        for name in sorted(ours.keys() & theirs.keys())
        if (agreement := _agree(ours[name], theirs[name], expected_ns))
    ]
    often = max((agreement.matched for agreement in found), default=0) / 2
    return min(
        (agreement for agreement in found if agreement.matched >= often),
        key=lambda agreement: agreement.residual_ns,
        default=None,
    )


def _agree(ours: Ends, theirs: Ends, expected_ns: int) -> Agreement | None:
    if ours.sequence is None or theirs.sequence is None:
        return _agree_by_order(ours.at_ns, theirs.at_ns, expected_ns)
    _, mine, other = np.intersect1d(ours.sequence, theirs.sequence, return_indices=True)
    return _agreement(theirs.at_ns[other] - ours.at_ns[mine])


def _agreement(differences: Integers) -> Agreement | None:
    if len(differences) < _FEWEST:
        return None
    offset = int(np.median(differences))
    return Agreement(offset, int(np.median(np.abs(differences - offset))), len(differences))


def _agree_by_order(ours: Integers, theirs: Integers, expected_ns: int) -> Agreement | None:
    """Both recordings may begin some collectives apart: of the shifts at which the ends agree about as well as they can, that which is
    nearest to what the clocks say. Where iterations last exactly alike, one shift agrees as well as another.

    None when even then the ends miss each other, or the recordings do not overlap by what the clocks say: these are other collectives.
    """
    shifts = (_agreement(_differences(ours, theirs, shift)) for shift in range(-_MOST_SHIFT, _MOST_SHIFT + 1))
    found = [agreement for agreement in shifts if agreement is not None]
    if not found:
        return None
    least_ns = min(agreement.residual_ns for agreement in found)
    likely = [agreement for agreement in found if agreement.residual_ns <= _SURELY * least_ns]
    best = min(likely, key=lambda agreement: abs(agreement.offset_ns - expected_ns))
    interval_ns = int(np.median(np.diff(ours)))
    overlap_ns = max(int(ours[-1] - ours[0]), int(theirs[-1] - theirs[0]), _FARTHEST_NS)
    fits = best.residual_ns * _FITS <= interval_ns and abs(best.offset_ns - expected_ns) <= overlap_ns
    return best if fits else None


def _differences(ours: Integers, theirs: Integers, shift: int) -> Integers:
    if shift >= 0:
        theirs = theirs[shift:]
    else:
        ours = ours[-shift:]
    count = min(len(ours), len(theirs))
    return theirs[:count] - ours[:count]
