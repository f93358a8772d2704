"""Devices that a backend finds in sysfs: their numbers, the ones that come and go, and a guard around each."""

from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

import msgspec

from dynolog.model.gpu import GpuReading, GpuSample

# Content of a file that nobody expected costs its device, until the next round or refresh, and no other.
_UNEXPECTED = (ArithmeticError, LookupError, OSError, ValueError)


class SysfsGpu(Protocol):
    """One device, or a part of one that counts as a device of its own (`is_whole` False)."""

    is_whole: bool

    def refresh(self) -> None:
        """Look again which files there are, and read what hardly changes. Every half minute."""
        ...

    def read(self, device: str, now_ns: int) -> GpuReading:
        """One reading under the number `device`; `now_ns` is of the monotonic clock. A file that fails costs only its value."""
        ...

    def lost(self, device: str) -> GpuReading | None:
        """What is said of it when its files have gone; None when that is nothing to worry about."""
        ...

    def close(self) -> None:
        """Close its files."""
        ...


class FoundGpu(msgspec.Struct, frozen=True):
    """A device that is there: who drives it, and how to make its reader. With another driver it needs another reader."""

    driver: str
    make: Callable[[], SysfsGpu]


class SysfsGpus:
    """Keeps the number of a device as long as the backend lives: it is what records and people know it by.

    `names` is a cheap look at what there is; `find` gives each device under a key that stays the same (its PCI address).
    """

    FIND_EVERY_NS = 30_000_000_000
    # Each costs half a millisecond, and there may be dozens.
    MOST_AT_ONCE = 16

    def __init__(self, names: Callable[[], Hashable], find: Callable[[], Mapping[str, FoundGpu]]) -> None:
        self._names = names
        self._find = find
        self._devices: dict[str, SysfsGpu] = {}
        # Those that are there, with their drivers.
        self._present: dict[str, str] = {}
        # Of the last refresh, by key.
        self._failures: dict[str, str] = {}
        self._seen_names: Hashable = None
        self._find_at_ns: int | None = None
        self._waiting: list[str] = []

    def look(self, now_ns: int) -> None:
        """Find devices when half a minute has passed or the names have changed; refresh those that wait for it in the rounds after."""
        names = self._names()
        if self._find_at_ns is None or now_ns >= self._find_at_ns or names != self._seen_names:
            self._seen_names = names
            self._find_at_ns = now_ns + self.FIND_EVERY_NS
            self._take(self._find())
            return
        turn, self._waiting = self._waiting[: self.MOST_AT_ONCE], self._waiting[self.MOST_AT_ONCE :]
        for key in turn:
            self._refresh(key)

    def _take(self, found: Mapping[str, FoundGpu]) -> None:
        for key, driver in self._present.items():
            if key not in found or found[key].driver != driver:
                self._devices[key].close()
        for key, gpu in found.items():
            if self._present.get(key) != gpu.driver:
                # One that was away has other files now. It keeps its number.
                self._devices[key] = gpu.make()
                self._refresh(key)
        self._waiting = [key for key in found if key in self._present]
        self._present = {key: gpu.driver for key, gpu in found.items()}

    def _refresh(self, key: str) -> None:
        try:
            self._devices[key].refresh()
        except _UNEXPECTED as error:
            self._failures[key] = _sentence(error)
        else:
            self._failures.pop(key, None)

    def sample(self, backend: str, now_ns: int) -> GpuSample:
        """One reading of every device that was ever seen, in the order of their numbers. Whole devices are counted."""
        readings: list[GpuReading] = []
        expected = seen = 0
        for number, (key, device) in enumerate(self._devices.items()):
            reading = self._reading(key, device, str(number), now_ns)
            if reading is None:
                continue
            readings.append(reading)
            expected += device.is_whole
            seen += device.is_whole and reading.is_up
        return GpuSample(backend=backend, readings=tuple(readings), expected=expected, seen=seen)

    def _reading(self, key: str, device: SysfsGpu, number: str, now_ns: int) -> GpuReading | None:
        if key not in self._present:
            return device.lost(number)
        if key in self._failures:
            return GpuReading(device=number, is_up=False, error=self._failures[key])
        try:
            return device.read(number, now_ns)
        except _UNEXPECTED as error:
            return GpuReading(device=number, is_up=False, error=_sentence(error))

    def close(self) -> None:
        """Close all files."""
        for device in self._devices.values():
            device.close()


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class DriverlessGpu:
    """A device on the PCI bus that no driver has taken: it is known, so it counts, and it does not answer."""

    is_whole = True

    def __init__(self, pci_address: str, name: str) -> None:
        self._pci_address = pci_address
        self._name = name

    def refresh(self) -> None:
        """Nothing of it changes."""

    def read(self, device: str, now_ns: int) -> GpuReading:
        """It is down."""
        del now_ns
        return GpuReading(
            device=device,
            name=self._name,
            pci_bus_id=self._pci_address,
            is_up=False,
            error="no driver has taken this device; see the kernel's log",
        )

    def lost(self, device: str) -> GpuReading | None:
        """It was taken out of the bus while it had no driver."""
        return self.read(device, 0)

    def close(self) -> None:
        """It has no files."""
