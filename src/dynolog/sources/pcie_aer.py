"""Errors of PCIe devices (`/sys/bus/pci/devices/*/aer_dev_*`, Documentation/ABI sysfs-bus-pci-devices-aer_stats)."""

import os

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import named_numbers
from dynolog.sources.attribute import read_attribute
from dynolog.sources.host_files import HostFiles

SEVERITIES = {
    "correctable": ("aer_dev_correctable", "TOTAL_ERR_COR"),
    "nonfatal": ("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    "fatal": ("aer_dev_fatal", "TOTAL_ERR_FATAL"),
}
_FOLDER = "sys/bus/pci/devices"


class PcieAerReader:
    """Reads the totals of all devices that keep them, again and again. Raises SourceUnavailable when none does."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._folder = host.path(_FOLDER)
        self._on_bus: list[str] = []
        self._devices: tuple[str, ...] = ()

    def read(self) -> dict[str, dict[str, int]]:
        """By PCI address, then by severity: errors since the device was found. A device that has gone is left out."""
        on_bus = self._host.list(_FOLDER)
        if on_bus != self._on_bus:
            self._devices = tuple(
                address for address in on_bus if os.access(f"{self._folder}/{address}/aer_dev_correctable", os.R_OK)
            )
            self._on_bus = on_bus
        totals = {address: found for address in self._devices if (found := self._read_device(address))}
        if not totals:
            raise SourceUnavailable("/" + _FOLDER, "no device with AER counters", "the kernel needs CONFIG_PCIEAER")
        return totals

    def _read_device(self, address: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for severity, (file, total) in SEVERITIES.items():
            data = read_attribute(f"{self._folder}/{address}/{file}")
            if data and total in (numbers := named_numbers.parse(data, (total,))):
                found[severity] = numbers[total]
        return found
