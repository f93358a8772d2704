"""The values of one device in one round, and the calls that give them, each guarded by itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

from dynolog.sources.nvml.errors import DEVICE_LOST, NO_SUCH_FUNCTION, NOT_HERE, Code, DeviceLostError
from dynolog.sources.nvml.session import Notices

# What NVML gives for "not available" (NVML_VALUE_NOT_AVAILABLE), in 32 and in 64 bits.
_NOT_AVAILABLE = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
Number = int | float


def is_available(value: Number) -> bool:
    """Whether it is a value at all."""
    return value not in _NOT_AVAILABLE and value == value  # noqa: PLR0124 - NaN is not


class Gathered:
    """What one round found out about one device. A value that NVML marks as not available is left out and counted in `blank`."""

    __slots__ = ("blank", "counters", "values")

    def __init__(self) -> None:
        self.values: dict[str, int | float | str] = {}
        self.counters: dict[str, Number] = {}
        self.blank = 0

    def put(self, key: str, value: Number | None, divisor: int = 1) -> None:
        """A gauge, ratio or rate."""
        self._put(self.values, key, value, divisor)

    def count(self, key: str, value: Number | None, divisor: int = 1) -> None:
        """A counter that only grows."""
        self._put(self.counters, key, value, divisor)

    def add(self, other: "Gathered") -> None:
        """Add what was gathered elsewhere."""
        self.values.update(other.values)
        self.counters.update(other.counters)
        self.blank += other.blank

    def _put(self, into: "dict[str, Any]", key: str, value: Number | None, divisor: int) -> None:
        if value is None:
            return
        if not is_available(value):
            self.blank += 1
            return
        into[key] = value if divisor == 1 else value / divisor


class Probe(NamedTuple):
    """One NVML call on a device: the function, what it is about ("" when another call can take its place), and the call."""

    function: str
    about: str
    read: Callable[[Any, Any, Gathered], None]


class Guard:
    """Runs probes so that a failing one costs only itself. One for each device; functions that the driver lacks are known to all."""

    def __init__(self, nvml: Any, notices: Notices, driver_version: str, absent: set[str]) -> None:
        self.nvml = nvml
        self._notices = notices
        self._driver_version = driver_version
        self._absent = absent
        self._not_here: set[str] = set()
        self.answered = 0
        self.last_error = 0

    def start_round(self) -> None:
        """Forget how the last round went."""
        self.answered = 0
        self.last_error = 0

    def ask_again(self) -> None:
        """Try also what this device did not have: its mode may have changed."""
        self._not_here.clear()

    def run(self, probe: Probe, handle: Any, gathered: Gathered) -> bool:
        """Whether it gave an answer. Raises DeviceLostError when no call on the device can work."""
        if probe.function in self._not_here or probe.function in self._absent:
            return False
        try:
            probe.read(self.nvml, handle, gathered)
        except self.nvml.NVMLError as error:
            self._failed(probe, error.value)
            return False
        self.answered += 1
        return True

    def _failed(self, probe: Probe, code: int) -> None:
        if code in DEVICE_LOST:
            raise DeviceLostError(code)
        if code in NO_SUCH_FUNCTION:
            self._absent.add(probe.function)
            if probe.about:
                self._notices.say(
                    f"nvml_{probe.function}",
                    f"nvml: driver {self._driver_version} has no {probe.function}: {probe.about} cannot be read",
                )
        elif code in NOT_HERE:
            self._not_here.add(probe.function)
            self.answered += code != Code.INVALID_ARGUMENT
            if code == Code.NO_PERMISSION and probe.about:
                self._notices.say(
                    f"nvml_{probe.function}", f"nvml: no permission to read {probe.about}: run the daemon as root"
                )
        else:
            self.last_error = code

    def check_answers(self) -> None:
        """Raises DeviceLostError when every call of the round failed, with the last reason."""
        if not self.answered and self.last_error:
            raise DeviceLostError(self.last_error)
