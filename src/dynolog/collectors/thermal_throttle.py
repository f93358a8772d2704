"""How often CPUs were slowed down by heat."""

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.thermal_throttle import ThermalThrottleReader, ThrottleCounts

_CORE = "cpu_core_throttles"
METRICS = (
    Metric(
        name=_CORE, kind=Kind.DELTA, unit="{event}", description="Times that a core was slowed down by heat, all cores"
    ),
    Metric(
        name="cpu_package_throttles",
        kind=Kind.DELTA,
        unit="{event}",
        description="Times that a package was slowed down by heat, all packages",
    ),
    Metric(
        name=_CORE,
        scope=Scope.CPU,
        kind=Kind.DELTA,
        unit="{event}",
        description="Times that a core was slowed down by heat, at the first of its CPUs (--per_cpu)",
    ),
)


class ThermalThrottleCollector:
    """Deltas of the throttle counts."""

    def __init__(self, context: Context) -> None:
        self._reader = ThermalThrottleReader(context.host)
        self._settings = context.settings

    def read(self) -> ThrottleCounts:
        """One reading."""
        return self._reader.read()

    def compute(self, before: ThrottleCounts, after: ThrottleCounts, elapsed_s: float) -> Values:
        """Growth over the cores and packages that both readings have."""
        del elapsed_s
        values: Values = {}
        cores = _growth(before.cores, after.cores)
        packages = _growth(before.packages, after.packages)
        if cores:
            values[_CORE] = sum(cores.values())
        if packages:
            values["cpu_package_throttles"] = sum(packages.values())
        if self._settings.on("per_cpu"):
            for cpu, events in cores.items():
                values[f"{_CORE}.cpu{cpu}"] = events
        return values


def _growth(before: dict[int, int], after: dict[int, int]) -> dict[int, int]:
    return {key: grown for key, new in after.items() if (grown := counter_delta(before.get(key), new)) is not None}


SPEC = CollectorSpec(
    name="thermal_throttle",
    summary="how often CPUs were slowed down by heat",
    needs="/sys/devices/system/cpu/cpu*/thermal_throttle (Intel)",
    factory=ThermalThrottleCollector,
    metrics=METRICS,
    # A file for each core; a count loses nothing by being read seldom.
    shortest_interval_s=10.0,
)
