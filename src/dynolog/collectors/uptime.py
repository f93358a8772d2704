"""Time since boot, and which boot."""

import msgspec

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.uptime import UptimeReader

METRICS = (
    Metric(name="uptime", kind=Kind.GAUGE, unit="s", description="Time since the host booted"),
    Metric(
        name="boot_id",
        kind=Kind.LABEL,
        unit="",
        description="UUID of this boot: another one means that the host restarted",
    ),
)


class Boot(msgspec.Struct, frozen=True):
    """One reading."""

    uptime_s: int
    boot_id: str | None


class UptimeCollector:
    """Uptime and boot id."""

    def __init__(self, context: Context) -> None:
        self._reader = UptimeReader(context.host)

    def read(self) -> Boot:
        """One reading."""
        return Boot(self._reader.uptime_s(), self._reader.boot_id())

    def compute(self, before: Boot, after: Boot, elapsed_s: float) -> Values:
        """Levels at the end of the interval."""
        del before, elapsed_s
        values: Values = {"uptime": after.uptime_s}
        if after.boot_id:
            values["boot_id"] = after.boot_id
        return values


SPEC = CollectorSpec(
    name="uptime",
    summary="time since boot, and the boot id",
    needs="/proc/uptime",
    factory=UptimeCollector,
    metrics=METRICS,
)
