"""What the host's own counters (docs/analysis.md, "Host counters") say of a time: means, and clocks that drop."""

import re
from collections.abc import Collection, Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.columns import Integers, TraceColumns
from dynolog.analysis.reading.intervals import Intervals, union

PREFIX = "host "
_HELD = "gpu_held."
# NVML's bits of why the clock is held down.
THROTTLE_REASONS = {
    0x80: "power brake",
    0x40: "heat (hardware)",
    0x20: "heat (software)",
    0x08: "hardware slowdown",
    0x04: "power cap",
}
# NVML sets the general bit beside these, which say more.
_HARDWARE_SLOWDOWN, _SAY_WHICH = 0x08, 0xC0
# No device in order is held down for these; a power cap is usual under full load.
_NEVER_USUAL = 0xE8
_DROPPED = 0.9  # of the clock that it could have


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
    """A device's clock below 90 % of what it could be: for how long within the device's busy time, how low on average, and what that cost.

    `device` is the host's number. `reasons` are of THROTTLE_REASONS, none where the trace does not tell. `lost_ns` is what the work done
    meanwhile would have taken less at the full clock. `seen_full` is False when the recording has no higher clock than the low one, and
    `full_mhz` is the device's own.
    """

    device: int
    low_ns: int
    low_mhz: float
    full_mhz: float
    seen_full: bool
    reasons: list[str]
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


def gpu_of(counters: Iterable[str], device: int, devices: Collection[int]) -> int:
    """The host's number of a device of the trace, which is the process's own: with CUDA_VISIBLE_DEVICES, or in a container, 0 may be 5.

    `devices` are all of the trace. Told by the devices on which the driver listed the process; the same number where it listed none.
    """
    held = sorted(int(name.removeprefix(_HELD)) for name in counters if re.fullmatch(rf"{_HELD}\d+", name))
    if set(devices) <= set(held) or not 0 <= device < len(held):
        return device
    return held[device]


def clock_drop(counters: dict[str, Held], device: int, busy: Intervals) -> ClockDrop | None:
    """Whether the clock of a GPU (the host's number) fell while it worked; None when not, or nothing was sampled."""
    clock = counters.get(f"gpu_clock_mhz.{device}")
    if clock is None:
        return None
    weight = busy.within(clock.begin_ns, clock.end_ns)
    worked = weight > 0
    if not worked.any():
        return None
    throttle = counters.get(f"gpu_throttle.{device}")
    could = np.full(len(clock.value), clock.value[worked].max())
    if throttle is not None and (limit := counters.get(f"gpu_clock_max_mhz.{device}")) is not None:
        # Held down all the time, it shows no drop: then only the device's own highest clock tells.
        held = _is_set(throttle, clock, _NEVER_USUAL)
        could[held] = np.maximum(could[held], limit.value.max())
    low = worked & (clock.value < _DROPPED * could)
    low_ns = int(weight[low].sum())
    if not low_ns:
        return None
    return ClockDrop(
        device=device,
        low_ns=low_ns,
        low_mhz=float((weight * clock.value)[low].sum() / low_ns),
        full_mhz=float(could[low].max()),
        seen_full=bool((worked & ~low).any()),
        reasons=_reasons(throttle, Intervals(clock.begin_ns[low], clock.end_ns[low])) if throttle else [],
        lost_ns=int((weight[low] * (1 - clock.value[low] / could[low])).sum()),
    )


def _is_set(throttle: Held, clock: Held, bits: int) -> NDArray[np.bool_]:
    """Whether one of these reasons held for at least half of the time of each value of the clock."""
    values = throttle.value.astype(np.int64)
    times = union(throttle.begin_ns[(values & bits) != 0], throttle.end_ns[(values & bits) != 0])
    held: NDArray[np.bool_] = times.within(clock.begin_ns, clock.end_ns) * 2 >= clock.end_ns - clock.begin_ns
    return held


def _reasons(throttle: Held, times: Intervals) -> list[str]:
    """Those that were set for at least half of the time of the low clock."""
    weight = times.within(throttle.begin_ns, throttle.end_ns)
    values = throttle.value.astype(np.int64)
    bits = [bit for bit in THROTTLE_REASONS if int(weight[(values & bit) != 0].sum()) * 2 >= times.total_ns]
    if any(bit & _SAY_WHICH for bit in bits):
        bits = [bit for bit in bits if bit != _HARDWARE_SLOWDOWN]
    return [THROTTLE_REASONS[bit] for bit in bits]
