"""Errors of PCIe devices (`/sys/bus/pci/devices/*/aer_dev_*`, Documentation/ABI sysfs-bus-pci-devices-aer_stats)."""

import os

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import named_numbers
from dynolog.sources.host_files import HostFiles

SEVERITIES = {
    "correctable": ("aer_dev_correctable", "TOTAL_ERR_COR"),
    "nonfatal": ("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    "fatal": ("aer_dev_fatal", "TOTAL_ERR_FATAL"),
}
_FOLDER = "sys/bus/pci/devices"


class PcieAerReader:
    """Reads the totals of all devices that keep them, again and again. Raises SourceUnavailable when none does."""

    # Looking for devices costs a lookup for each on the bus; reading costs three files for each that has them.
    DEVICES_EVERY = 10

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._devices: tuple[str, ...] = ()
        self._rounds = 0

    def read(self) -> dict[str, dict[str, int]]:
        """By PCI address, then by severity: errors since the device was found. A device that has gone is left out."""
        if self._rounds % self.DEVICES_EVERY == 0:
            self._devices = tuple(
                address
                for address in self._host.list(_FOLDER)
                if os.access(self._host.path(f"{_FOLDER}/{address}/aer_dev_correctable"), os.R_OK)
            )
        self._rounds += 1
        totals = {address: found for address in self._devices if (found := self._read_device(address))}
        if not totals:
            self._rounds = 0
            raise SourceUnavailable("/" + _FOLDER, "no device with AER counters", "the kernel needs CONFIG_PCIEAER")
        return totals

    def _read_device(self, address: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for severity, (file, total) in SEVERITIES.items():
            try:
                data = self._host.read(f"{_FOLDER}/{address}/{file}")
            except OSError:
                continue
            number = named_numbers.parse(data, (total,)).get(total)
            if number is not None:
                found[severity] = number
        return found
