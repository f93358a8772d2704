"""How long tasks stood still for want of CPU, memory, I/O or because of interrupts (PSI)."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.pressure import PressureReader, Stall

_WANT = {"cpu": "CPU time", "memory": "memory", "io": "I/O", "irq": "the CPU that served interrupts"}
_LINES = tuple(
    (resource, extent)
    for resource in ("cpu", "memory", "io", "irq")
    for extent in ("some", "full")
    if (resource, extent) != ("irq", "some")  # the kernel has no such line
)


def _describe(resource: str, extent: str) -> str:
    who = "some task" if extent == "some" else "all tasks that were not idle"
    note = "; for a whole host undefined, and 0 on recent kernels" if (resource, extent) == ("cpu", "full") else ""
    return f"{who} waited for {_WANT[resource]}{note}"


METRICS = (
    *(
        Metric(
            name=f"pressure_{resource}_{extent}_us",
            kind=Kind.DELTA,
            unit="us",
            description=f"Time in which {_describe(resource, extent)}",
        )
        for resource, extent in _LINES
    ),
    *(
        Metric(
            name=f"pressure_{resource}_{extent}_avg10",
            kind=Kind.GAUGE,
            unit="%",
            description=f"Share of the last 10 s in which {_describe(resource, extent)}",
        )
        for resource, extent in _LINES
    ),
)
_KEYS = {line: (f"pressure_{line[0]}_{line[1]}_us", f"pressure_{line[0]}_{line[1]}_avg10") for line in _LINES}
Stalls = dict[str, dict[str, Stall]]


class PressureCollector:
    """Stall times and shares from `/proc/pressure`."""

    def __init__(self, context: Context) -> None:
        self._reader = PressureReader(context.host)
        self._notices = context.notices

    def read(self) -> Stalls:
        """One reading; a resource that cannot be read is said once."""
        stalls = self._reader.read()
        if len(stalls) < len(self._reader.files):
            for resource, file in self._reader.files.items():
                if file.error:
                    self._notices.say(
                        f"pressure_{resource}", f"{file.path}: {file.error.strerror}; its values are missing"
                    )
        return stalls

    def compute(self, before: Stalls, after: Stalls, elapsed_s: float) -> Values:
        """Stall time of the interval and the kernel's own average, of the lines that are there."""
        del elapsed_s
        values: Values = {}
        for (resource, extent), (total_key, average_key) in _KEYS.items():
            new = after.get(resource, {}).get(extent)
            if new is None:
                continue
            values[average_key] = new.avg10_pct
            old = before.get(resource, {}).get(extent)
            if old is not None and new.total_us >= old.total_us:
                values[total_key] = new.total_us - old.total_us
        return values


SPEC = CollectorSpec(
    name="pressure",
    summary="stall times for want of CPU, memory, I/O, and by interrupts (PSI)",
    needs="/proc/pressure",
    factory=PressureCollector,
    metrics=METRICS,
)
