"""CPU performance counters through perf_event. What counts is loaded when it is switched on."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dynolog.collectors.perf_metrics import METRICS
from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.flag import Flag

if TYPE_CHECKING:
    from dynolog.collectors.perf_counters import PerfSnapshot
    from dynolog.sources.perf_event.syscall import PerfCalls


class PerfCollector:
    """Counters of the processor, and of whatever else has a PMU."""

    def __init__(
        self, context: Context, calls: "PerfCalls | None" = None, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        # A daemon that does not count keeps the memory of all that.
        from dynolog.collectors.perf_counters import PerfCounters  # noqa: PLC0415

        self._counters = PerfCounters(context, calls, monotonic_ns)

    def read(self) -> "PerfSnapshot":
        """One reading. Raises SourceUnavailable when nothing of what is wanted can be counted."""
        return self._counters.read()

    def compute(self, before: "PerfSnapshot", after: "PerfSnapshot", elapsed_s: float) -> Values:  # noqa: ARG002 - snapshots say it
        """Metrics of the interval; none of a group that had a counter for less than --perf_min_running_pct of it."""
        return self._counters.compute(before, after)


FLAGS = (
    Flag(
        name="perf_metrics",
        default="default",
        help="what to count, a comma list of sets (default, ipc, cache, branches, tlb, stalls, topdown, flops, membw, power, c_states, "
        "software) and events by name (pmu/event/, pmu/config=0x1/, r1a2, category:tracepoint); what comes first is kept "
        "when not all fits",
        section="collectors",
        live=True,
    ),
    Flag(
        name="perf_cgroups",
        default="",
        help="count these cgroups too, each by itself: a comma list of paths from the root of the cgroup file system, with * in names "
        "(/system.slice/*.service)",
        section="collectors",
        live=True,
    ),
    Flag(
        name="perf_min_running_pct",
        default=5.0,
        minimum=0.0,
        maximum=100.0,
        help="give no value of events that had a counter for a smaller percentage of the time on some CPU",
        section="collectors",
        live=True,
    ),
)

SPEC = CollectorSpec(
    name="perf",
    summary="CPU performance counters",
    needs="perf_event_open(2): root, CAP_PERFMON, or kernel.perf_event_paranoid=0",
    factory=PerfCollector,
    metrics=METRICS,
    flags=FLAGS,
    on_by_default=False,
    own_enable_flag="enable_perf_monitor",
    own_interval_flag="perf_monitor_reporting_interval_s",
)
