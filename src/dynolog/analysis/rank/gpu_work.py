"""What occupies one device: kernels, copies and sets, with durations in which no event outlasts the next of its stream."""

import re

import msgspec
import numpy as np

from dynolog.analysis.reading.categories import GPU_WORK, Category
from dynolog.analysis.reading.columns import NONE, Integers, Mask, TraceColumns
from dynolog.analysis.reading.intervals import Intervals, union

# Kernels that move data between ranks: those of NCCL, RCCL and oneCCL, and the one-kernel collectives of serving stacks.
_COMMUNICATION = re.compile(
    r"nccl|rccl|oneccl|ccl_kernel|nvshmem|multimem_|(one|two)_shot_all_?reduce|cross_device_reduce|allreduce_fusion",
    re.IGNORECASE,
)


class GpuWork(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one device by begin; `end_ns` is where an event ends at the latest for its stream's next to begin.

    `raw_end_ns` is what the file says. `communication` and `memory` are masks over `rows`; the others compute.
    """

    device: int | None
    rows: Integers
    begin_ns: Integers
    end_ns: Integers
    raw_end_ns: Integers
    communication: Mask
    memory: Mask

    @property
    def compute(self) -> Mask:
        """Kernels that are no communication."""
        return ~(self.communication | self.memory)

    @property
    def busy(self) -> Intervals:
        """When any stream of the device was occupied."""
        return union(self.begin_ns, self.end_ns)

    def covered(self, mask: Mask) -> Intervals:
        """When at least one event of some was running."""
        return union(self.begin_ns[mask], self.end_ns[mask])

    @property
    def clipped(self) -> int:
        """How many events outlast the next of their stream."""
        return int(np.count_nonzero(self.end_ns != self.raw_end_ns))


def is_communication(name: str) -> bool:
    """Whether a kernel of this name moves data between ranks."""
    return _COMMUNICATION.search(name) is not None


def communication_names(trace: TraceColumns) -> Mask:
    """Which numbers of names are kernels of collectives or of sends and receives."""
    return np.fromiter(map(is_communication, trace.names), np.bool_, len(trace.names))


def gpu_work(trace: TraceColumns) -> list[GpuWork]:
    """The work of each device of a trace, by device; none for traces of the CPU alone."""
    rows = trace.rows_of(*GPU_WORK)
    if not len(rows):
        return []
    device = trace.device[rows]
    communication = communication_names(trace)
    return [_of_device(trace, rows[device == number], int(number), communication) for number in np.unique(device)]


def _of_device(trace: TraceColumns, rows: Integers, device: int, communication: Mask) -> GpuWork:
    rows = rows[np.argsort(trace.begin_ns[rows], kind="stable")]
    kind = trace.category[rows]
    is_kernel = kind == Category.KERNEL
    raw_end_ns = trace.end_ns[rows]
    return GpuWork(
        device=None if device == NONE else device,
        rows=rows,
        begin_ns=trace.begin_ns[rows],
        end_ns=clipped_ends(trace.begin_ns[rows], raw_end_ns, _stream(trace, rows)),
        raw_end_ns=raw_end_ns,
        communication=communication[trace.name[rows]] & is_kernel,
        memory=~is_kernel,
    )


def _stream(trace: TraceColumns, rows: Integers) -> Integers:
    """The stream of each row; writers that leave it out have a track (thread) for each."""
    stream = trace.stream[rows]
    return np.where(stream == NONE, trace.thread[rows].astype(np.int64) - (1 << 40), stream)


def clipped_ends(begin_ns: Integers, end_ns: Integers, stream: Integers) -> Integers:
    """Ends that are no later than the begin of the next on the same stream: a stream does one thing after the other, so what
    lasts longer was measured wrong, or ends in the shadow of what was begun early on purpose. Events that begin at once keep their ends.
    """
    order = np.lexsort((begin_ns, stream))
    begins, streams = begin_ns[order], stream[order]
    # The next event that begins later: of several at one time, what follows them all.
    later = np.searchsorted(_keys(streams, begins), _keys(streams, begins), side="right")
    following = np.minimum(later, len(order) - 1)
    has_next = (later < len(order)) & (streams[following] == streams)
    clipped = np.where(has_next, np.minimum(end_ns[order], begins[following]), end_ns[order])
    result = np.empty_like(end_ns)
    result[order] = np.maximum(clipped, begins)
    return result


def _keys(streams: Integers, begins: Integers) -> Integers:
    """Rising numbers for pairs in order, equal for equal pairs."""
    new = np.ones(len(streams), np.bool_)
    new[1:] = (streams[1:] != streams[:-1]) | (begins[1:] != begins[:-1])
    keys: Integers = np.cumsum(new)
    return keys
