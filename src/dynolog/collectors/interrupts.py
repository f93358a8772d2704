"""Interrupts by class: the ones that are not a device's."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.interrupts import InterruptCounts, InterruptsReader

_CLASSES = {
    "nmi": "non-maskable interrupts",
    "loc": "local timer interrupts",
    "spu": "spurious interrupts",
    "pmi": "performance monitoring interrupts",
    "iwi": "IRQ work interrupts",
    "rtr": "APIC ICR read retries",
    "res": "rescheduling interrupts: a CPU woke another",
    "cal": "function call interrupts: a CPU had another run something",
    "tlb": "TLB shootdowns: a CPU had another forget an address",
    "trm": "thermal event interrupts",
    "thr": "threshold APIC interrupts: corrected errors passed a threshold",
    "dfr": "deferred error APIC interrupts",
    "mce": "machine check exceptions: the hardware reported an error",
    "mcp": "machine check polls",
    "hyp": "hypervisor callback interrupts",
    "hre": "Hyper-V reenlightenment interrupts",
    "hvs": "Hyper-V stimer0 interrupts",
    "err": "errors on the APIC bus",
    "mis": "misrouted I/O APIC interrupts",
    "pin": "posted-interrupt notifications",
    "npi": "nested posted-interrupt events",
    "piw": "posted-interrupt wake-ups",
}
METRICS = tuple(
    Metric(
        name=f"interrupts_{name}",
        kind=Kind.DELTA,
        unit="{interrupt}",
        description=f"Interrupts of class {name.upper()} on all CPUs: {text}",
    )
    for name, text in _CLASSES.items()
)
_KEYS = {name: f"interrupts_{name}" for name in _CLASSES}


class InterruptsCollector:
    """Deltas from `/proc/interrupts`."""

    def __init__(self, context: Context) -> None:
        self._reader = InterruptsReader(context.host)

    def read(self) -> InterruptCounts:
        """One reading."""
        return self._reader.read()

    def compute(self, before: InterruptCounts, after: InterruptCounts, elapsed_s: float) -> Values:
        """Growth of each class; nothing when a CPU came or went, because its counts came or went with it."""
        del elapsed_s
        values: Values = {}
        if before.header != after.header:
            return values
        for name, new in after.classes.items():
            old = before.classes.get(name)
            if old is not None and new >= old and name in _KEYS:
                values[_KEYS[name]] = new - old
        return values


SPEC = CollectorSpec(
    name="interrupts",
    summary="interrupts by class (NMI, timer, rescheduling, TLB shootdown, machine check...)",
    needs="/proc/interrupts",
    factory=InterruptsCollector,
    metrics=METRICS,
)
