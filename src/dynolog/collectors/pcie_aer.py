"""Errors of PCIe devices (Advanced Error Reporting)."""

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta, put
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.pcie_aer import SEVERITIES, PcieAerReader

_TEXTS = {
    "correctable": "that the hardware corrected",
    "nonfatal": "that lost a transaction and left the link working",
    "fatal": "that made the link unreliable",
}
METRICS = tuple(
    Metric(
        name=f"pcie_aer_{severity}_errors",
        scope=Scope.PCI,
        kind=Kind.DELTA,
        unit="{error}",
        description=f"PCIe errors of a device {_TEXTS[severity]}",
    )
    for severity in SEVERITIES
)
Totals = dict[str, dict[str, int]]


class PcieAerCollector:
    """Deltas of the error totals."""

    def __init__(self, context: Context) -> None:
        self._reader = PcieAerReader(context.host)

    def read(self) -> Totals:
        """One reading."""
        return self._reader.read()

    def compute(self, before: Totals, after: Totals, elapsed_s: float) -> Values:
        """Growth on the devices that both readings have."""
        del elapsed_s
        values: Values = {}
        for address, totals in after.items():
            old = before.get(address, {})
            for severity, new in totals.items():
                put(values, f"pcie_aer_{severity}_errors.{address}", counter_delta(old.get(severity), new))
        return values


SPEC = CollectorSpec(
    name="pcie_aer",
    summary="errors of PCIe devices, corrected, not fatal and fatal",
    needs="/sys/bus/pci/devices/*/aer_dev_*",
    factory=PcieAerCollector,
    metrics=METRICS,
    # Three files for each of up to hundreds of devices, for errors that are rare.
    shortest_interval_s=30.0,
)
