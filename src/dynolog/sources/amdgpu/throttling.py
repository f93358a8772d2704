"""Why amdgpu holds the clocks back: at this moment (bits), or for how long (counts of firmware cycles)."""

from dynolog.sources.amdgpu.gpu_metrics import MetricsTable

# SMU_THROTTLER_* of amdgpu_smu.h, the numbering that does not depend on the chip.
_BITS: dict[str, tuple[int, ...]] = {
    "power": tuple(range(8)),
    "current": tuple(range(16, 24)),
    "thermal": (32, 33, 35, 36, 37),
    "hbm_thermal": (34,),
    "vr_thermal": (38, 39, 40, 41, 44, 45),
    "liquid_thermal": (42, 43),
    "prochot": (46, 47),
}
_MASKS = {reason: sum(1 << bit for bit in bits) for reason, bits in _BITS.items()}
_REASONS = ("prochot", "power", "thermal", "vr_thermal", "hbm_thermal")
_WRAP = 1 << 32


def active(bits: int) -> dict[str, int | float | str]:
    """The bits as 0 or 1 for each kind of reason, and as they are."""
    values: dict[str, int | float | str] = {
        f"gpu_throttle_active.{reason}": int(bool(bits & mask)) for reason, mask in _MASKS.items()
    }
    values["gpu_clock_event_reasons"] = bits
    return values


class ThrottleTime:
    """Time that each limit held the clocks back, in ms since the start, from the tables of server chips (v1.6 on).

    The firmware counts its cycles, and those in which a limit was in force; their ratio is a share of the time between two tables.
    """

    def __init__(self) -> None:
        self._last: tuple[MetricsTable, int] | None = None
        self._ms: dict[str, float] = {}

    def add(self, table: MetricsTable, now_ns: int) -> dict[str, float]:
        """The sums after this table; a reason that the chip does not count is missing."""
        if "cycles" not in table.numbers:
            return {}
        for reason in _REASONS:
            if f"{reason}_cycles" in table.numbers:
                self._ms.setdefault(reason, 0.0)
        if self._last is not None:
            self._grow(self._last[0], table, (now_ns - self._last[1]) / 1e6)
        self._last = (table, now_ns)
        return {f"gpu_throttle_ms.{reason}": ms for reason, ms in self._ms.items()}

    def forget(self) -> None:
        """The next table begins a new interval; the sums stay."""
        self._last = None

    def _grow(self, before: MetricsTable, after: MetricsTable, elapsed_ms: float) -> None:
        cycles = (after.numbers["cycles"] - before.numbers["cycles"]) % _WRAP
        for reason in self._ms:
            name = f"{reason}_cycles"
            if name not in before.numbers or name not in after.numbers:
                continue
            held = (after.numbers[name] - before.numbers[name]) % _WRAP
            # More than all cycles is a firmware that started anew.
            if 0 < held <= cycles:
                self._ms[reason] += elapsed_ms * held / cycles
