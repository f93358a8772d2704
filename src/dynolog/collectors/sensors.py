"""Temperatures, fans and power of the hardware's own sensors (hwmon)."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.hwmon import HwmonReader, Sensor

METRICS = (
    Metric(
        name="sensor_temperature_celsius",
        scope=Scope.SENSOR,
        kind=Kind.GAUGE,
        unit="Cel",
        description="Temperature of a sensor, by chip and label",
    ),
    Metric(
        name="sensor_fan_rpm",
        scope=Scope.SENSOR,
        kind=Kind.GAUGE,
        unit="{revolution}/min",
        description="Speed of a fan, by chip and label",
    ),
    Metric(
        name="sensor_power_watts",
        scope=Scope.SENSOR,
        kind=Kind.GAUGE,
        unit="W",
        description="Power measured by a sensor, by chip and label",
    ),
)
# hwmon gives m°C, revolutions a minute, and µW.
_KINDS = {
    "temp": ("sensor_temperature_celsius", 1000),
    "fan": ("sensor_fan_rpm", 1),
    "power": ("sensor_power_watts", 1_000_000),
}
Readings = list[tuple[Sensor, int]]


class SensorsCollector:
    """Gauges of all sensors."""

    def __init__(self, context: Context) -> None:
        self._reader = HwmonReader(context.host)

    def read(self) -> Readings:
        """One reading."""
        return self._reader.read()

    def compute(self, before: Readings, after: Readings, elapsed_s: float) -> Values:
        """Levels at the end of the interval."""
        del before, elapsed_s
        values: Values = {}
        for sensor, reading in after:
            name, divisor = _KINDS[sensor.kind]
            values[f"{name}.{sensor.name}"] = reading / divisor if divisor > 1 else reading
        return values


SPEC = CollectorSpec(
    name="sensors",
    summary="temperatures, fans and power of the hardware's sensors",
    needs="/sys/class/hwmon",
    factory=SensorsCollector,
    metrics=METRICS,
    # Many sensors sit behind a slow bus (I2C, an NVMe command), and temperatures do not change by the second.
    shortest_interval_s=10.0,
)
