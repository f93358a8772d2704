"""AMD GPUs without a vendor library: the files of amdgpu and amdkfd, with `amdsmi` beside them where it is installed."""

import time
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuSample
from dynolog.sources import pci_ids
from dynolog.sources.amdgpu.card import AmdCard
from dynolog.sources.amdgpu.firmware import Firmware
from dynolog.sources.amdgpu.kfd import KfdNode, KfdView
from dynolog.sources.amdgpu.partition import AmdPartition
from dynolog.sources.amdgpu.smi import AmdSmi
from dynolog.sources.drm_cards import DrmCard, card_names, driver_version, find_cards, without_driver
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_attribute import OpenAttributes
from dynolog.sources.sysfs_gpus import DriverlessGpu, FoundGpu, SysfsGpu, SysfsGpus

_VENDOR = 0x1002
_DRIVER = "amdgpu"


class AmdBackend:
    """Cards by PCI address; the partitions of a divided one follow it, each with a number of its own."""

    def __init__(self, options: GpuOptions, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._host = HostFiles(options.root_dir)
        self._files = OpenAttributes()
        self._kfd = KfdView(self._host)
        self._smi = AmdSmi()
        self._gpus = SysfsGpus(self._names, self._find)
        self._cards: dict[str, AmdCard] = {}
        self._pci_names: dict[int, str] = {}
        self._driver_version = ""

    def open(self) -> None:
        """Find the cards. Raises SourceUnavailable when no card has the amdgpu driver."""
        cards = self._drivers_cards()
        if not cards:
            remedy = "load the amdgpu driver, and see the kernel's log" if without_driver(self._host, _VENDOR) else ""
            raise SourceUnavailable("amdgpu", "no AMD GPU with its driver", remedy)
        self._smi.open()
        self._pci_names = pci_ids.device_names(self._host, _VENDOR, {card.device_id for card in cards})
        self._driver_version = driver_version(self._host, _DRIVER)
        self._gpus.look(self._clock())

    def sample(self) -> GpuSample:
        """One reading of every card and partition."""
        now_ns = self._clock()
        self._gpus.look(now_ns)
        self._kfd.begin_round(now_ns)
        return msgspec.structs.replace(
            self._gpus.sample("amd", now_ns),
            driver_version=self._driver_version,
            library_version=self._smi.version,
            notices=self._notices(),
        )

    def pause_profiling(self) -> bool:
        """It holds no profiling hardware."""
        return False

    def resume_profiling(self) -> bool:
        """It holds no profiling hardware."""
        return False

    def close(self) -> None:
        """Close all files."""
        self._gpus.close()
        self._smi.close()

    def _drivers_cards(self) -> list[DrmCard]:
        return [card for card in find_cards(self._host, _VENDOR) if card.driver == _DRIVER]

    def _names(self) -> tuple[str, ...]:
        return tuple(card_names(self._host))

    def _find(self) -> Mapping[str, FoundGpu]:
        self._kfd.refresh()
        self._smi.find()
        found: dict[str, FoundGpu] = {}
        cards = {card.pci_address: card for card in self._drivers_cards()}
        for address in sorted({*cards, *without_driver(self._host, _VENDOR)}):
            if address not in cards:
                found[address] = FoundGpu("", partial(DriverlessGpu, address, "AMD GPU"))
                continue
            found[address] = FoundGpu(_DRIVER, partial(self._make_card, cards[address]))
            for node in self._kfd.nodes(address)[1:]:
                make = partial(self._make_partition, cards[address], node)
                found[f"{address}/{node.partition}"] = FoundGpu(f"{_DRIVER} {node.gpu_id}", make)
        return found

    def _make_card(self, card: DrmCard) -> SysfsGpu:
        firmware = Firmware(card.pci_address, card.device_id, self._smi)
        made = AmdCard(
            self._host, card, files=self._files, kfd=self._kfd, firmware=firmware, name=partial(self._name, card)
        )
        self._cards[card.pci_address] = made
        return made

    def _make_partition(self, card: DrmCard, node: KfdNode) -> SysfsGpu:
        return AmdPartition(self._cards[card.pci_address], node, self._kfd, self._name(card))

    def _name(self, card: DrmCard) -> str:
        return self._smi.name(card.pci_address) or pci_ids.name_or_ids(self._pci_names, "AMD", _VENDOR, card.device_id)

    def _notices(self) -> tuple[tuple[str, str], ...]:
        reasons = {card.firmware.why_not for card in self._cards.values() if card.firmware.why_not}
        return tuple(
            (f"gpu_metrics: {reason}", f"some values of AMD GPUs are missing: {reason}") for reason in sorted(reasons)
        )
