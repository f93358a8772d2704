"""Profiling counters that read 0 while kernels ran: not to be believed, and after a while a fault. Pure."""

from collections.abc import Iterable, Mapping
from enum import Enum

from dynolog.collectors.spec import Values
from dynolog.model.gpu import GpuReading

Identity = tuple[str, str, int | None, int | None]
_UTILIZATION = "gpu_device_utilization"
# What the profiling hardware counts. While a kernel runs, at least one of the first two is above 0.
_ACTIVITY = ("graphics_engine_active_ratio", "sm_active_ratio")
_PROFILING = (
    *_ACTIVITY,
    "sm_occupancy",
    "tensorcore_active",
    "hbm_mem_bw_util",
    "fp64_active",
    "fp32_active",
    "fp16_active",
    "pcie_tx_bytes",
    "pcie_rx_bytes",
    "nvlink_tx_bytes",
    "nvlink_rx_bytes",
)
_BUSY_PCT = 50
# The driver's utilisation is of its last second at most, the counters are of their own window: a kernel that began or ended
# between the two makes them contradict each other in one round, and for a second where rounds are shorter.
_FAULT_NS = 2_000_000_000


class _Verdict(Enum):
    UNKNOWN = "unknown"  # one of the two is missing
    PLAUSIBLE = "plausible"
    CONTRADICTION = "contradiction"


class Contradictions:
    """Since when (the time of a sample) each device's counters have contradicted its utilisation in every sample. Immutable."""

    def __init__(self, since_ns: Mapping[Identity, int] = {}, taken_ns: int = 0) -> None:
        self._since_ns = since_ns
        self._taken_ns = taken_ns

    def after(self, readings: Iterable[GpuReading], taken_ns: int) -> "Contradictions":
        """With one more sample."""
        return Contradictions(
            {
                reading.identity: self._since_ns.get(reading.identity, taken_ns)
                for reading in readings
                if _verdict(reading) is _Verdict.CONTRADICTION
            },
            taken_ns,
        )

    def judge(self, reading: GpuReading, values: Values) -> None:
        """Of a device of the last sample: leave counters out that contradict, and say in `gpu_suspect` whether that lasts."""
        verdict = _verdict(reading)
        if verdict is _Verdict.UNKNOWN:
            return
        since_ns = self._since_ns.get(reading.identity, self._taken_ns)
        values["gpu_suspect"] = int(verdict is _Verdict.CONTRADICTION and self._taken_ns - since_ns >= _FAULT_NS)
        if verdict is _Verdict.CONTRADICTION:
            for key in _PROFILING:
                values.pop(key, None)


def _verdict(reading: GpuReading) -> _Verdict:
    busy_pct = reading.values.get(_UTILIZATION)
    activity = [reading.values[key] for key in _ACTIVITY if key in reading.values]
    if not reading.is_up or not activity or busy_pct is None or isinstance(busy_pct, str):
        return _Verdict.UNKNOWN
    if busy_pct >= _BUSY_PCT and all(value == 0 for value in activity):
        return _Verdict.CONTRADICTION
    return _Verdict.PLAUSIBLE
