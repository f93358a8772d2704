"""Everything that answers need of one trace, in little memory, so that it can be made where the file is."""

import msgspec
import numpy as np

from dynolog.analysis.rank.call_tree import CallTree
from dynolog.analysis.rank.collective_calls import CollectiveCalls, collective_calls
from dynolog.analysis.rank.collective_clock import Ends, collective_ends
from dynolog.analysis.rank.duration_table import DurationRow, Samples, duration_table, samples
from dynolog.analysis.rank.gap_work import GapWork, gap_work
from dynolog.analysis.rank.gpu_work import GpuWork, gpu_work
from dynolog.analysis.rank.host_counters import ClockDrop, Held, clock_drop, gpu_of, host_counters, means
from dynolog.analysis.rank.idle_causes import IdleGaps, data_loader_spans, idle_gaps, waiting_calls
from dynolog.analysis.rank.launches import LaunchFacts, kernel_share, launch_facts, launch_rows
from dynolog.analysis.rank.memory_traffic import CopyRow, memory_traffic
from dynolog.analysis.rank.operators import (
    ModuleRow,
    OperatorRow,
    device_ns,
    host_tree,
    module_table,
    operator_table,
)
from dynolog.analysis.rank.step_times import StepFacts, step_facts
from dynolog.analysis.rank.time_split import Occupation, TimeSplit, device_span, occupation, time_split
from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import Ids, Integers, TraceColumns
from dynolog.analysis.reading.intervals import Intervals
from dynolog.analysis.reading.load import LoadOptions, Progress, load
from dynolog.analysis.reading.trace_folder import TraceFileHead
from dynolog.analysis.wording import ms

# Fewer kernels than launches by more than this: the device's records are incomplete (sampled, lost, or cut).
_FEW_KERNELS = 0.9
# The device works so many times as long as the host's steps last: the host does not wait for it within them.
_HOST_AHEAD = 1.5


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """Waits of the host for the device, by the operator that asked for them."""

    name: str
    count: int
    total_us: float


class DeviceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One device of a rank. `host_while` has the means of the host's counters in gaps of a cause, and in all the time ("all").
    `cpu_gaps` is what the host did in the gaps that wait for the CPU."""

    split: TimeSplit
    launches: LaunchFacts | None
    copies: list[CopyRow]
    clock_drop: ClockDrop | None
    host_while: dict[str, dict[str, float]]
    cpu_gaps: GapWork


class RankSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One trace. `devices` is empty for traces of the CPU alone. `span_ns` is of all events. `host_loading` has the means of the
    host's counters while the loop was in the data loader, {} without them. `notes` say what to beware of."""

    path: str
    rank: int
    host: str
    world_size: int | None
    backend: str
    device_name: str
    begin_ns: int
    span_ns: int
    events: int
    devices: list[DeviceSummary]
    steps: StepFacts
    data_loader_ns: int
    host_loading: dict[str, float]
    kernels: list[DurationRow]
    operators: list[OperatorRow]
    modules: list[ModuleRow]
    syncs: list[Sync]
    notes: list[str]

    @property
    def step_ns(self) -> float | None:
        """How long a step takes of the job: the mean of whole ones by the host's clock. Where the host runs ahead of the device (it
        only hands work over), the device's time by steps. None without whole steps."""
        if self.steps.mean_ns is None:
            return None
        by_device = self.main.split.span_ns / len(self.steps.steps) if self.main else 0.0
        return by_device if by_device > _HOST_AHEAD * self.steps.mean_ns else self.steps.mean_ns

    @property
    def main(self) -> DeviceSummary | None:
        """The device with most work."""
        return max(self.devices, key=lambda device: device.split.busy_ns, default=None)


class RankResult(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, and what only other ranks and other recordings are compared with: it is not shown."""

    summary: RankSummary
    collectives: CollectiveCalls
    exposed_communication: Intervals
    ends: dict[str, Ends]
    kernel_samples: dict[str, Samples]
    operator_samples: dict[str, Samples]
    clock_offset_ns: int | None = None


def summarise(head: TraceFileHead, *, modules: bool = False, progress: Progress | None = None) -> RankResult:
    """Read one file. `modules` reads Python frames too; `progress` is load's. Raises NotATrace and OSError."""
    trace = load(head.path, LoadOptions(flows=False, python_frames=modules), progress)
    result = summarise_trace(trace, head)
    return msgspec.structs.replace(result, clock_offset_ns=head.offset_ns)


def summarise_trace(trace: TraceColumns, head: TraceFileHead) -> RankResult:
    """The same of a trace in memory."""
    work = gpu_work(trace)
    launches = [launch_rows(trace, one) for one in work]
    parts = [occupation(one) for one in work]
    counters = host_counters(trace)
    loader = data_loader_spans(trace)
    tree = host_tree(trace)
    own_device_ns = device_ns(tree, work, launches)
    busiest = max(range(len(work)), key=lambda i: work[i].busy.total_ns, default=-1)
    span = trace.span_ns or (0, 0)
    is_operator = trace.category[tree.rows] == Category.CPU_OP
    kernel_names, kernel_ns = _kernels(trace, work)
    summary = RankSummary(
        path=head.path,
        rank=head.rank or 0,
        host=head.host or trace.head.host,
        world_size=trace.head.world_size,
        backend=trace.head.backend,
        device_name=str(trace.head.devices[0].get("name", "")) if trace.head.devices else "",
        begin_ns=span[0],
        span_ns=span[1] - span[0],
        events=trace.report.events,
        devices=[
            _device(
                trace, tree, done, counters, gpu_of(counters, done[0].device or 0, [one.device or 0 for one in work])
            )
            for done in zip(work, launches, parts, strict=True)
        ],
        steps=step_facts(trace, parts[busiest] if work else None, loader),
        data_loader_ns=loader.total_ns,
        host_loading=means(counters, loader),
        kernels=duration_table(trace.names, kernel_names, kernel_ns),
        operators=operator_table(trace, tree, own_device_ns),
        modules=module_table(trace, tree, own_device_ns),
        syncs=_syncs(trace, tree),
        notes=[],
    )
    return RankResult(
        summary=msgspec.structs.replace(summary, notes=_notes(trace, work, summary)),
        collectives=collective_calls(trace),
        exposed_communication=parts[busiest].exposed_communication if work else Intervals(),
        ends=collective_ends(trace),
        kernel_samples=samples(trace.names, kernel_names, kernel_ns),
        operator_samples=samples(trace.names, trace.name[tree.rows[is_operator]], tree.self_ns()[is_operator]),
    )


def _device(
    trace: TraceColumns, tree: CallTree, done: tuple[GpuWork, Integers, Occupation], counters: dict[str, Held], gpu: int
) -> DeviceSummary:
    work, launches, parts = done
    begin_ns, end_ns = device_span(work)
    idle = idle_gaps(trace, work, launches, begin_ns, end_ns)
    return DeviceSummary(
        split=time_split(work, parts, idle.split()),
        launches=launch_facts(trace, work, launches),
        copies=memory_traffic(trace, work, parts.exposed_memory),
        clock_drop=clock_drop(counters, gpu, work.busy),
        host_while=_host_while(counters, idle, begin_ns, end_ns),
        cpu_gaps=gap_work(trace, tree, idle.mainly("cpu")),
    )


def _host_while(counters: dict[str, Held], idle: IdleGaps, begin_ns: int, end_ns: int) -> dict[str, dict[str, float]]:
    if not counters:
        return {}
    everything = Intervals(np.array([begin_ns]), np.array([end_ns]))
    times = {cause: idle.mainly(cause) for cause in idle.by_cause} | {"all": everything}
    return {cause: means(counters, spans) for cause, spans in times.items() if len(spans)}


def _kernels(trace: TraceColumns, work: list[GpuWork]) -> tuple[Ids, Integers]:
    """Names and durations of all kernels, cut where they outlast the next."""
    names = [trace.name[one.rows[~one.memory]] for one in work]
    durations = [(one.end_ns - one.begin_ns)[~one.memory] for one in work]
    if not work:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    return np.concatenate(names), np.concatenate(durations)


def _syncs(trace: TraceColumns, tree: CallTree) -> list[Sync]:
    """Waits of the host, by the outermost operator around them; the longest first."""
    is_wait = np.isin(tree.rows, waiting_calls(trace))
    outer = tree.outermost(trace.category[tree.rows] == Category.CPU_OP)
    found: dict[str, tuple[int, int]] = {}
    for place in np.flatnonzero(is_wait).tolist():
        row = tree.rows[outer[place]] if outer[place] >= 0 else tree.rows[place]
        name = trace.names[int(trace.name[row])]
        count, total = found.get(name, (0, 0))
        found[name] = (count + 1, total + int(tree.duration_ns[place]))
    rows = [Sync(name=name, count=count, total_us=total / 1000) for name, (count, total) in found.items()]
    return sorted(rows, key=lambda row: -row.total_us)


def _notes(trace: TraceColumns, work: list[GpuWork], summary: RankSummary) -> list[str]:
    found = [*trace.report.sentences()]
    if not len(trace):
        found.append("no complete event: the trace is empty")
    if (share := kernel_share(trace)) is not None and share < _FEW_KERNELS:
        found.append(
            f"only {share:.0%} of the kernel launches left a kernel: idle times are too long and kernels too few"
        )
    if (step_ns := summary.step_ns) and (by_host_ns := summary.steps.mean_ns) and step_ns > by_host_ns:
        found.append(
            f"the host runs ahead: its steps last {ms(by_host_ns)}, the device needs {ms(step_ns)} for one; what each step shows of the "
            "device is of other steps"
        )
    clipped = sum(one.clipped for one in work)
    if clipped:
        raw = sum(int((one.raw_end_ns - one.begin_ns).sum()) for one in work) / 1e6
        cut = sum(int((one.end_ns - one.begin_ns).sum()) for one in work) / 1e6
        found.append(
            f"{clipped:,} device events outlast the next of their stream and were cut there: {cut:,.3f} ms instead of {raw:,.3f} ms"
        )
    return found
