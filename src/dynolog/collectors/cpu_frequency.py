"""Clock frequency of the CPUs."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.cpu_frequency import CpuFrequencyReader

_NAME = "cpu_frequency_mhz"
METRICS = (
    Metric(name=_NAME, kind=Kind.GAUGE, unit="MHz", description="Clock frequency, mean of the CPUs"),
    Metric(name="cpu_frequency_min_mhz", kind=Kind.GAUGE, unit="MHz", description="Clock frequency of the slowest CPU"),
    Metric(name="cpu_frequency_max_mhz", kind=Kind.GAUGE, unit="MHz", description="Clock frequency of the fastest CPU"),
    Metric(
        name=_NAME,
        scope=Scope.CPU,
        kind=Kind.GAUGE,
        unit="MHz",
        description="Clock frequency of a CPU (--per_cpu)",
    ),
)


class CpuFrequencyCollector:
    """Gauges from cpufreq."""

    def __init__(self, context: Context) -> None:
        self._reader = CpuFrequencyReader(context.host)
        self._settings = context.settings

    def read(self) -> dict[int, float]:
        """One reading."""
        return self._reader.read()

    def compute(self, before: dict[int, float], after: dict[int, float], elapsed_s: float) -> Values:
        """Levels at the end of the interval."""
        del before, elapsed_s
        values: Values = {
            _NAME: sum(after.values()) / len(after),
            "cpu_frequency_min_mhz": min(after.values()),
            "cpu_frequency_max_mhz": max(after.values()),
        }
        if self._settings.on("per_cpu"):
            for cpu, mhz in after.items():
                values[f"{_NAME}.cpu{cpu}"] = mhz
        return values


SPEC = CollectorSpec(
    name="cpu_frequency",
    summary="clock frequency of the CPUs",
    needs="/sys/devices/system/cpu/cpu*/cpufreq or /proc/cpuinfo",
    factory=CpuFrequencyCollector,
    metrics=METRICS,
    # A file for each CPU, and kernels before 5.18 interrupt each CPU to answer: at every second that would cost more than
    # everything else, and wake CPUs that sleep.
    shortest_interval_s=10.0,
)
