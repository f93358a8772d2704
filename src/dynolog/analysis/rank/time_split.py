"""Where the time of one device went: computing, communicating, copying, idle. The parts add up to the whole."""

import msgspec
import numpy as np

from dynolog.analysis.rank.gpu_work import GpuWork
from dynolog.analysis.rank.idle_causes import IdleSplit
from dynolog.analysis.reading.intervals import Intervals, difference


class TimeSplit(msgspec.Struct, frozen=True, kw_only=True):
    """From the first begin to the last end of work on a device, in ns.

    `compute_ns` + `exposed_communication_ns` + `exposed_memory_ns` + `idle.total_ns` = `span_ns`. Communication and copies are exposed
    where nothing computes (for copies: nor communicates). `clipped` events outlast the next of their stream: `raw_sum_ns` is the
    sum of all durations as the file has them, `sum_ns` with these cut.
    """

    device: int | None
    begin_ns: int
    span_ns: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memory_ns: int
    exposed_memory_ns: int
    idle: IdleSplit
    clipped: int
    raw_sum_ns: int
    sum_ns: int

    @property
    def overlapped_communication_ns(self) -> int:
        """Communication while something computes."""
        return self.communication_ns - self.exposed_communication_ns


class Occupation(msgspec.Struct, frozen=True):
    """When a device did what; the parts are disjoint."""

    compute: Intervals
    communication: Intervals
    exposed_communication: Intervals
    memory: Intervals
    exposed_memory: Intervals


def occupation(work: GpuWork) -> Occupation:
    """What one device did when."""
    compute, communication = work.covered(work.compute), work.covered(work.communication)
    memory = work.covered(work.memory)
    return Occupation(
        compute=compute,
        communication=communication,
        exposed_communication=difference(communication, compute),
        memory=memory,
        exposed_memory=difference(memory, work.covered(~work.memory)),
    )


def time_split(work: GpuWork, parts: Occupation, idle: IdleSplit) -> TimeSplit:
    """The sums of one device."""
    begin_ns, end_ns = device_span(work)
    return TimeSplit(
        device=work.device,
        begin_ns=begin_ns,
        span_ns=end_ns - begin_ns,
        busy_ns=work.busy.total_ns,
        compute_ns=parts.compute.total_ns,
        communication_ns=parts.communication.total_ns,
        exposed_communication_ns=parts.exposed_communication.total_ns,
        memory_ns=parts.memory.total_ns,
        exposed_memory_ns=parts.exposed_memory.total_ns,
        idle=idle,
        clipped=work.clipped,
        raw_sum_ns=int((work.raw_end_ns - work.begin_ns).sum()),
        sum_ns=int((work.end_ns - work.begin_ns).sum()),
    )


def device_span(work: GpuWork) -> tuple[int, int]:
    """From the first begin to the last end."""
    return int(work.begin_ns[0]), int(np.max(work.end_ns))
