"""Load averages and threads."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.loadavg import LoadAverage, LoadAverageReader

METRICS = (
    *(
        Metric(
            name=f"load_{minutes}m",
            kind=Kind.GAUGE,
            unit="1",
            description=f"Threads that ran, or waited for a CPU or a disk, averaged over {minutes} min",
        )
        for minutes in (1, 5, 15)
    ),
    Metric(name="threads_runnable", kind=Kind.GAUGE, unit="{thread}", description="Threads that run or wait for a CPU"),
    Metric(
        name="threads_total", kind=Kind.GAUGE, unit="{thread}", description="Threads on the host, the kernel's included"
    ),
)


class LoadCollector:
    """Gauges from `/proc/loadavg`."""

    def __init__(self, context: Context) -> None:
        self._reader = LoadAverageReader(context.host)

    def read(self) -> LoadAverage:
        """One reading."""
        return self._reader.read()

    def compute(self, before: LoadAverage, after: LoadAverage, elapsed_s: float) -> Values:
        """Levels at the end of the interval."""
        del before, elapsed_s
        return {
            "load_1m": after.over_1m,
            "load_5m": after.over_5m,
            "load_15m": after.over_15m,
            "threads_runnable": after.threads_runnable,
            "threads_total": after.threads_total,
        }


SPEC = CollectorSpec(
    name="load",
    summary="load averages and threads",
    needs="/proc/loadavg",
    factory=LoadCollector,
    metrics=METRICS,
)
