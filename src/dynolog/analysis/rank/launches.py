"""From the call that hands work to a device to its begin there: delays, and how much waits in between."""

import msgspec
import numpy as np

from dynolog.analysis.rank.gpu_work import GpuWork
from dynolog.analysis.reading.categories import GPU_WORK, LAUNCHES, Category
from dynolog.analysis.reading.columns import NONE, Integers, TraceColumns

_KERNEL_LAUNCH = ("LaunchKernel", "cuLaunch", "hipExtModule", "hipModuleLaunch")


class LaunchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`delay` is from the end of the call to the begin of the work (below 0 when it began before the call returned).

    A queue's length is how many were handed over and have not begun: `queue_mean` over the time from the first call on, `queue_max`.
    `calls` hand work over: to this device, or to another of the process. `matched` of them have work on this one, `without_work`
    have none in the trace: it was recorded in part.
    """

    calls: int
    matched: int
    without_work: int
    delay_p50_us: float
    delay_p99_us: float
    queue_mean: float
    queue_max: int


def launch_rows(trace: TraceColumns, work: GpuWork) -> Integers:
    """For each row of the work the call that launched it, by correlation; -1 where none did (a graph's later nodes, cut traces)."""
    calls = trace.rows_of(*LAUNCHES)
    calls = calls[trace.correlation[calls] != NONE]
    found = np.full(len(work.rows), -1, np.int64)
    wanted = trace.correlation[work.rows]
    if not len(calls) or not len(wanted):
        return found
    order = np.argsort(trace.correlation[calls], kind="stable")
    calls = calls[order]
    numbers = trace.correlation[calls]
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    matches = (numbers[place] == wanted) & (wanted != NONE) & (wanted != 0)
    found[matches] = calls[place[matches]]
    return found


def launch_facts(trace: TraceColumns, work: GpuWork, launches: Integers) -> LaunchFacts | None:
    """Delays and queue of one device; None where no work has its call."""
    matched = launches >= 0
    if not matched.any():
        return None
    call = launches[matched]
    delay_us = (work.begin_ns[matched] - trace.end_ns[call]) / 1000
    length, at_ns = queue_length(trace.begin_ns[call], work.begin_ns[matched])
    lasts = np.diff(at_ns)
    calls = np.union1d(launch_calls(trace), call)
    return LaunchFacts(
        calls=len(calls),
        matched=len(np.unique(call)),
        without_work=_without_work(trace, calls),
        delay_p50_us=float(np.percentile(delay_us, 50)),
        delay_p99_us=float(np.percentile(delay_us, 99)),
        queue_mean=float((length[:-1] * lasts).sum() / max(lasts.sum(), 1)),
        queue_max=int(length.max()),
    )


def queue_length(handed_over_ns: Integers, begun_ns: Integers) -> tuple[Integers, Integers]:
    """How many wait after each change, and when: one more at each call, one less at each begin."""
    at_ns = np.concatenate((handed_over_ns, begun_ns))
    change = np.repeat([1, -1], [len(handed_over_ns), len(begun_ns)])
    order = np.lexsort((-change, at_ns))
    return np.cumsum(change[order]), at_ns[order]


def launch_calls(trace: TraceColumns) -> Integers:
    """Calls that launch a kernel or copy, by name; one that launches a whole graph is among them."""
    calls = trace.rows_of(*LAUNCHES)
    named = np.fromiter((_launches(name) for name in trace.names), np.bool_, len(trace.names))
    return calls[named[trace.name[calls]]]


def _launches(name: str) -> bool:
    lowered = name.lower()
    return "launch" in lowered or "memcpyasync" in lowered or "memsetasync" in lowered or lowered.endswith("memcpy")


def _without_work(trace: TraceColumns, calls: Integers) -> int:
    done = np.unique(trace.correlation[trace.rows_of(*GPU_WORK)])
    return int(np.count_nonzero(~np.isin(trace.correlation[calls], done)))


def kernel_share(columns: TraceColumns) -> float | None:
    """The share of launches whose kernel is in the trace; None when nothing was launched."""
    launches = columns.rows_of(*LAUNCHES)
    named = np.fromiter(
        (any(word in name for word in _KERNEL_LAUNCH) for name in columns.names), np.bool_, len(columns.names)
    )
    launches = launches[named[columns.name[launches]] & (columns.correlation[launches] != NONE)]
    if not len(launches):
        return None
    work = columns.rows_of(*GPU_WORK, Category.COLLECTIVE)
    return float(np.isin(columns.correlation[launches], columns.correlation[work]).mean())
