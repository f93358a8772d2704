"""What the kernel is doing: context switches, interrupts, softirqs, new and waiting processes."""

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta, put
from dynolog.model.metric import Kind, Metric
from dynolog.sources.proc_stat import SOFTIRQ_CLASSES, ProcStat, ProcStatReader

_COUNTERS = (
    Metric(
        name="context_switches",
        kind=Kind.DELTA,
        unit="{context_switch}",
        description="Switches from one thread to another on all CPUs",
    ),
    Metric(name="interrupts", kind=Kind.DELTA, unit="{interrupt}", description="Hardware interrupts served, all kinds"),
    Metric(
        name="forks",
        kind=Kind.DELTA,
        unit="{process}",
        description="Processes and threads created (fork, vfork, clone)",
    ),
)
_SOFTIRQ_TEXTS = {
    "hi": "high-priority tasklets",
    "timer": "timers",
    "net_tx": "packets sent",
    "net_rx": "packets received",
    "block": "block requests completed",
    "irq_poll": "polled block devices",
    "tasklet": "tasklets",
    "sched": "load balancing between CPUs",
    "hrtimer": "high-resolution timers",
    "rcu": "RCU callbacks",
}
_SOFTIRQS = (
    Metric(name="softirqs", kind=Kind.DELTA, unit="{softirq}", description="Softirqs served, all classes"),
    *(
        Metric(
            name=f"softirqs_{name}",
            kind=Kind.DELTA,
            unit="{softirq}",
            description=f"Softirqs served: {_SOFTIRQ_TEXTS[name]}",
        )
        for name in SOFTIRQ_CLASSES
    ),
)
_SOFTIRQ_KEYS = tuple(metric.name for metric in _SOFTIRQS)

METRICS = (
    *_COUNTERS,
    *_SOFTIRQS,
    Metric(
        name="procs_running", kind=Kind.GAUGE, unit="{thread}", description="Threads that run or wait for a CPU now"
    ),
    Metric(name="procs_blocked", kind=Kind.GAUGE, unit="{thread}", description="Threads that wait for I/O now"),
)


class ActivityCollector:
    """Deltas and gauges from two readings of `/proc/stat`."""

    def __init__(self, context: Context) -> None:
        self._reader = ProcStatReader(context.host)

    def read(self) -> ProcStat:
        """One reading, shared with the CPU collector."""
        return self._reader.read()

    def compute(self, before: ProcStat, after: ProcStat, elapsed_s: float) -> Values:
        """Deltas; a softirq class that a kernel lacks is left out."""
        del elapsed_s
        values: Values = {}
        put(values, "context_switches", counter_delta(before.context_switches, after.context_switches))
        put(values, "interrupts", counter_delta(before.interrupts, after.interrupts))
        put(values, "forks", counter_delta(before.forks, after.forks))
        for key, old, new in zip(_SOFTIRQ_KEYS, before.softirqs, after.softirqs, strict=False):
            if new >= old:
                values[key] = new - old
        put(values, "procs_running", after.procs_running)
        put(values, "procs_blocked", after.procs_blocked)
        return values


SPEC = CollectorSpec(
    name="activity",
    summary="context switches, interrupts, softirqs, forks, processes running and blocked",
    needs="/proc/stat",
    factory=ActivityCollector,
    metrics=METRICS,
)
