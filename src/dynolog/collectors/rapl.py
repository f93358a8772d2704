"""Energy and power of processors and memory (RAPL)."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.powercap import Energy, PowercapReader

METRICS = (
    Metric(
        name="rapl_energy_joules",
        scope=Scope.SENSOR,
        kind=Kind.DELTA,
        unit="J",
        description="Energy used by a processor package or a part of it (core, dram)",
    ),
    Metric(
        name="rapl_power_watts",
        scope=Scope.SENSOR,
        kind=Kind.RATE,
        unit="W",
        description="Mean power of a processor package or a part of it (core, dram)",
    ),
)


def energy_delta_uj(before: Energy, after: Energy) -> int | None:
    """Growth in µJ; None when it cannot be known.

    The range says where the counter starts again, so one wrap can be told. More than half the range after a step down means that
    the counter was more probably reset.
    """
    if before.range_uj != after.range_uj:
        return None
    if after.energy_uj >= before.energy_uj:
        return after.energy_uj - before.energy_uj
    wrapped = after.energy_uj + after.range_uj - before.energy_uj
    return wrapped if 0 <= wrapped <= after.range_uj // 2 else None


class RaplCollector:
    """Energy deltas and mean power of each zone."""

    def __init__(self, context: Context) -> None:
        self._reader = PowercapReader(context.host)

    def read(self) -> dict[str, Energy]:
        """One reading."""
        return self._reader.read()

    def compute(self, before: dict[str, Energy], after: dict[str, Energy], elapsed_s: float) -> Values:
        """Energy of the interval and power over the measured time, of the zones that both readings have."""
        values: Values = {}
        for zone, new in after.items():
            old = before.get(zone)
            grown_uj = energy_delta_uj(old, new) if old else None
            if grown_uj is not None:
                values[f"rapl_energy_joules.{zone}"] = grown_uj / 1e6
                if elapsed_s > 0:
                    values[f"rapl_power_watts.{zone}"] = grown_uj / 1e6 / elapsed_s
        return values


SPEC = CollectorSpec(
    name="rapl",
    summary="energy and power of processors and memory",
    needs="/sys/class/powercap/intel-rapl*, as root",
    factory=RaplCollector,
    metrics=METRICS,
)
