"""What the host's own counters (docs/analysis.md, "Host counters") say of a time: means, and clocks that drop."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import Integers, TraceColumns
from dynolog.analysis.reading.intervals import Intervals

PREFIX = "host "
# NVML's bits of why the clock is held down.
THROTTLE_REASONS = {
    0x80: "power brake",
    0x40: "heat (hardware)",
    0x20: "heat (software)",
    0x08: "hardware slowdown",
    0x04: "power cap",
}
_DROPPED = 0.9  # of the highest clock seen


class Held(msgspec.Struct, frozen=True):
    """One counter: its values, each from `begin_ns` to `end_ns`."""

    begin_ns: Integers
    end_ns: Integers
    value: NDArray[np.float64]

    def mean(self, times: Intervals) -> float | None:
        """Over some times; None where none was sampled."""
        weight = times.within(self.begin_ns, self.end_ns)
        whole = int(weight.sum())
        return float((weight * self.value).sum() / whole) if whole else None


class ClockDrop(msgspec.Struct, frozen=True, kw_only=True):
    """A device's clock below 90 % of its highest: for how long within the device's busy time, how low on average, and what that cost.

    `reason` is "" where the trace does not tell. `lost_ns` is what the work done meanwhile would have taken less at the full clock.
    """

    device: int
    low_ns: int
    low_mhz: float
    full_mhz: float
    reason: str
    lost_ns: int


def host_counters(trace: TraceColumns) -> dict[str, Held]:
    """The counters of the host by metric, such as `cpu_user_pct` or `gpu_clock_mhz.0`."""
    found = {}
    for number, (name, _, _) in enumerate(trace.counters.series_names):
        if not name.startswith(PREFIX):
            continue
        chosen = trace.counters.series == number
        held = _held(trace.counters.at_ns[chosen], trace.counters.value[chosen])
        if held is not None:
            found[name.removeprefix(PREFIX)] = held
    return found


def _held(at_ns: Integers, value: NDArray[np.float64]) -> Held | None:
    order = np.argsort(at_ns, kind="stable")
    at_ns, value = at_ns[order], value[order]
    if not len(at_ns):
        return None
    last = at_ns[-1] - at_ns[-2] if len(at_ns) > 1 else 0
    return Held(at_ns, np.append(at_ns[1:], at_ns[-1] + last), value)


def means(counters: dict[str, Held], times: Intervals) -> dict[str, float]:
    """The mean of each counter over some times; without those that have no sample then."""
    found = {name: held.mean(times) for name, held in counters.items()}
    return {name: value for name, value in found.items() if value is not None}


def clock_drop(counters: dict[str, Held], device: int, busy: Intervals) -> ClockDrop | None:
    """Whether a device's clock fell while it worked; None when not, or nothing was sampled."""
    clock = counters.get(f"gpu_clock_mhz.{device}")
    if clock is None:
        return None
    weight = busy.within(clock.begin_ns, clock.end_ns)
    worked = weight > 0
    if not worked.any():
        return None
    full = float(clock.value[worked].max())
    low = worked & (clock.value < _DROPPED * full)
    low_ns = int(weight[low].sum())
    if not low_ns:
        return None
    low_mhz = float((weight * clock.value)[low].sum() / low_ns)
    return ClockDrop(
        device=device,
        low_ns=low_ns,
        low_mhz=low_mhz,
        full_mhz=full,
        reason=_reason(counters.get(f"gpu_throttle.{device}"), clock, low),
        lost_ns=int((weight[low] * (1 - clock.value[low] / full)).sum()),
    )


def _reason(throttle: Held | None, clock: Held, low: NDArray[np.bool_]) -> str:
    """The reasons that were set for at least half of the time of the low clock."""
    if throttle is None:
        return ""
    times = Intervals(clock.begin_ns[low], clock.end_ns[low])
    weight = times.within(throttle.begin_ns, throttle.end_ns)
    bits = throttle.value.astype(np.int64)
    named = [
        reason for bit, reason in THROTTLE_REASONS.items() if int(weight[(bits & bit) != 0].sum()) * 2 >= times.total_ns
    ]
    return ", ".join(named)
