"""Why a device had nothing to do: each gap is taken apart by what the host did until it launched the work that ends the gap."""

import re

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.rank.gpu_work import GpuWork
from dynolog.analysis.reading.categories import LAUNCHES, Category
from dynolog.analysis.reading.columns import Integers, Mask, TraceColumns
from dynolog.analysis.reading.intervals import Intervals, gaps, union

# What a framework takes to issue one operator, with the profiler on: in longer gaps the host did something else.
LAUNCH_GAP_NS = 50_000
_DATA_LOADER = re.compile(r"enumerate\(DataLoader\)|DataLoader\w*\.__next__|_(Single|Multi)ProcessDataLoaderIter\b")
_HOST_COLLECTIVE = re.compile(r"(gloo|mpi):|c10d::(monitored_)?barrier")
_WAITS_FOR_DEVICE = re.compile(r"Synchronize\Z|\A(cuda|hip)Memcpy\Z")


class IdleSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The time in which no stream of a device had work, by cause (docs/analysis.md); the causes add up to the whole.

    `after_sync_ns` is the part of `cpu_ns` in gaps that began while the host waited for the device.
    """

    launch_ns: int = 0
    cpu_ns: int = 0
    data_loader_ns: int = 0
    other_ranks_ns: int = 0
    queued_ns: int = 0
    unknown_ns: int = 0
    after_sync_ns: int = 0
    gaps: int = 0
    longest_ns: int = 0

    @property
    def total_ns(self) -> int:
        """All causes."""
        causes = (self.launch_ns, self.cpu_ns, self.data_loader_ns, self.other_ranks_ns, self.queued_ns)
        return sum(causes) + self.unknown_ns


class IdleGaps(msgspec.Struct, frozen=True, kw_only=True):
    """The gaps of a device one by one; arrays of ns by cause add up to each gap."""

    gaps: Intervals
    by_cause: dict[str, Integers]
    after_sync: Mask

    def split(self) -> IdleSplit:
        """The sums."""
        lengths = self.gaps.end_ns - self.gaps.begin_ns
        return IdleSplit(
            **{f"{cause}_ns": int(amounts.sum()) for cause, amounts in self.by_cause.items()},
            after_sync_ns=int(self.by_cause["cpu"][self.after_sync].sum()),
            gaps=len(self.gaps),
            longest_ns=int(lengths.max()) if len(lengths) else 0,
        )

    def mainly(self, cause: str) -> Intervals:
        """The gaps of which one cause is at least half."""
        lengths = self.gaps.end_ns - self.gaps.begin_ns
        chosen = self.by_cause[cause] * 2 >= lengths
        return Intervals(self.gaps.begin_ns[chosen], self.gaps.end_ns[chosen])


def idle_gaps(trace: TraceColumns, work: GpuWork, launches: Integers, begin_ns: int, end_ns: int) -> IdleGaps:
    """The gaps of one device within a time; the launch that ends each tells its cause."""
    idle = gaps(work.busy, begin_ns, end_ns)
    ends_it = np.searchsorted(work.begin_ns, idle.end_ns)
    exists = ends_it < len(work.begin_ns)
    call = np.where(exists, launches[np.minimum(ends_it, len(launches) - 1)], -1)
    known = call >= 0
    lengths = idle.end_ns - idle.begin_ns
    called_ns = np.where(known, trace.begin_ns[call], idle.end_ns)
    ready_ns = np.clip(called_ns, idle.begin_ns, idle.end_ns)  # from here on the device could have begun

    queued = np.where(known, idle.end_ns - ready_ns, 0)
    waited = np.where(known, ready_ns - idle.begin_ns, 0)
    loader = _within(named_on_host(trace, _DATA_LOADER), idle.begin_ns, ready_ns, known)
    ranks = np.minimum(_within(named_on_host(trace, _HOST_COLLECTIVE), idle.begin_ns, ready_ns, known), waited - loader)
    rest = waited - loader - ranks
    after_sync = _waiting_at(trace, idle.begin_ns)
    # A host that has just waited for the device is not slow at launching, however short the gap; what it had handed over before is.
    short = (lengths <= LAUNCH_GAP_NS) & ~(after_sync & known & (called_ns >= idle.begin_ns))
    late = (called_ns < idle.begin_ns) & ~short & known  # handed over before the gap: the host is not what it waits for
    return IdleGaps(
        gaps=idle,
        by_cause={
            "launch": np.where(short, queued + rest, 0),
            "cpu": np.where(short | late, 0, queued + rest),
            "data_loader": loader,
            "other_ranks": ranks,
            "queued": np.where(late, queued, 0),
            "unknown": np.where(known, 0, lengths),
        },
        after_sync=after_sync,
    )


def _within(spans: Intervals, begin_ns: Integers, end_ns: Integers, known: NDArray[np.bool_]) -> Integers:
    return np.where(known, spans.within(begin_ns, end_ns), 0)


def named_on_host(trace: TraceColumns, pattern: re.Pattern[str]) -> Intervals:
    """When some thread of the host was in an operator or annotation of such a name."""
    rows = trace.rows_of(Category.CPU_OP, Category.USER_ANNOTATION)
    named = np.fromiter((bool(pattern.search(name)) for name in trace.names), np.bool_, len(trace.names))
    rows = rows[named[trace.name[rows]]]
    return union(trace.begin_ns[rows], trace.end_ns[rows])


def data_loader_spans(trace: TraceColumns) -> Intervals:
    """When the training loop waited for its next batch."""
    return named_on_host(trace, _DATA_LOADER)


def waiting_calls(trace: TraceColumns) -> Integers:
    """Calls in which the host waits for the device."""
    rows = trace.rows_of(*LAUNCHES)
    named = np.fromiter((bool(_WAITS_FOR_DEVICE.search(name)) for name in trace.names), np.bool_, len(trace.names))
    return rows[named[trace.name[rows]]]


def _waiting_at(trace: TraceColumns, at_ns: Integers) -> Mask:
    calls = waiting_calls(trace)
    spans = union(trace.begin_ns[calls], trace.end_ns[calls])
    return spans.within(at_ns, at_ns + 1) > 0
