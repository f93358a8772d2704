"""Memory errors that the memory controllers found."""

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta, put
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.edac import EdacReader, MemoryErrors

METRICS = (
    Metric(
        name="edac_correctable_errors",
        scope=Scope.MEMORY_CONTROLLER,
        kind=Kind.DELTA,
        unit="{error}",
        description="Memory errors that the controller corrected",
    ),
    Metric(
        name="edac_uncorrectable_errors",
        scope=Scope.MEMORY_CONTROLLER,
        kind=Kind.DELTA,
        unit="{error}",
        description="Memory errors that the controller could not correct",
    ),
)


class EdacCollector:
    """Deltas of the error counts."""

    def __init__(self, context: Context) -> None:
        self._reader = EdacReader(context.host)

    def read(self) -> dict[str, MemoryErrors]:
        """One reading."""
        return self._reader.read()

    def compute(self, before: dict[str, MemoryErrors], after: dict[str, MemoryErrors], elapsed_s: float) -> Values:
        """Growth on the controllers that both readings have; a driver that was loaded anew starts from 0."""
        del elapsed_s
        values: Values = {}
        for controller, new in after.items():
            if old := before.get(controller):
                put(values, f"edac_correctable_errors.{controller}", counter_delta(old.correctable, new.correctable))
                put(
                    values,
                    f"edac_uncorrectable_errors.{controller}",
                    counter_delta(old.uncorrectable, new.uncorrectable),
                )
        return values


SPEC = CollectorSpec(
    name="edac",
    summary="memory errors, corrected and not",
    needs="/sys/devices/system/edac/mc",
    factory=EdacCollector,
    metrics=METRICS,
    # Errors are rare and the counts lose nothing by being read seldom.
    shortest_interval_s=10.0,
)
