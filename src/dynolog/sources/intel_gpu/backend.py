"""Intel GPUs without a vendor library: the files of the xe and i915 drivers."""

import time
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuSample
from dynolog.sources import pci_ids
from dynolog.sources.drm_cards import DrmCard, card_names, driver_version, find_cards, without_driver
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.host_files import HostFiles
from dynolog.sources.intel_gpu.card import IntelCard
from dynolog.sources.open_attribute import OpenAttributes
from dynolog.sources.sysfs_gpus import DriverlessGpu, FoundGpu, SysfsGpus

_VENDOR = 0x8086
_DRIVERS = ("xe", "i915")


class IntelBackend:
    """Integrated and discrete GPUs by PCI address."""

    def __init__(self, options: GpuOptions, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._host = HostFiles(options.root_dir)
        self._files = OpenAttributes()
        self._gpus = SysfsGpus(self._names, self._find)
        self._pci_names: dict[int, str] = {}
        self._driver_version = ""

    def open(self) -> None:
        """Find the devices. Raises SourceUnavailable when none has the xe or i915 driver."""
        cards = self._drivers_cards()
        if not cards:
            remedy = "load the xe or i915 driver" if without_driver(self._host, _VENDOR) else ""
            raise SourceUnavailable("xe and i915", "no Intel GPU with its driver", remedy)
        self._pci_names = pci_ids.device_names(self._host, _VENDOR, {card.device_id for card in cards})
        drivers = sorted({card.driver for card in cards})
        self._driver_version = ", ".join(filter(None, (driver_version(self._host, driver) for driver in drivers)))
        self._gpus.look(self._clock())

    def sample(self) -> GpuSample:
        """One reading of every device."""
        now_ns = self._clock()
        self._gpus.look(now_ns)
        return msgspec.structs.replace(self._gpus.sample("intel", now_ns), driver_version=self._driver_version)

    def pause_profiling(self) -> bool:
        """It holds no profiling hardware."""
        return False

    def resume_profiling(self) -> bool:
        """It holds no profiling hardware."""
        return False

    def close(self) -> None:
        """Close all files."""
        self._gpus.close()

    def _drivers_cards(self) -> list[DrmCard]:
        return [card for card in find_cards(self._host, _VENDOR) if card.driver in _DRIVERS]

    def _names(self) -> tuple[str, ...]:
        return tuple(card_names(self._host))

    def _find(self) -> Mapping[str, FoundGpu]:
        found = {
            address: FoundGpu("", partial(DriverlessGpu, address, "Intel GPU"))
            for address in without_driver(self._host, _VENDOR)
        }
        for card in self._drivers_cards():
            name = pci_ids.name_or_ids(self._pci_names, "Intel", _VENDOR, card.device_id)
            found[card.pci_address] = FoundGpu(card.driver, partial(IntelCard, self._host, card, self._files, name))
        return dict(sorted(found.items()))
