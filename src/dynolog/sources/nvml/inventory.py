"""Which GPUs are known to be in the machine, by which number, and which of them NVML shows now."""

import msgspec

from dynolog.model.gpu import GpuProcess, GpuReading
from dynolog.sources.nvml.values import Gathered

_FELL_OFF = "NVML does not show it any more: it fell off the bus or was taken out"


class KnownGpu(msgspec.Struct, frozen=True, kw_only=True):
    """Who a GPU is. `device` is NVML's number of it when it was first seen, and stays when another one goes."""

    device: str
    uuid: str = ""
    name: str = ""
    pci_bus_id: str = ""
    minor: int | None = None

    def reading(self, gathered: Gathered, processes: tuple[GpuProcess, ...]) -> GpuReading:
        """What it said."""
        return GpuReading(
            device=self.device,
            uuid=self.uuid,
            name=self.name,
            pci_bus_id=self.pci_bus_id,
            minor=self.minor,
            values=gathered.values,
            counters=gathered.counters,
            processes=processes,
        )

    def lost(self, why: str, extra: Gathered) -> GpuReading:
        """That it says nothing, and why; the Xids that were seen are still known."""
        return msgspec.structs.replace(self.reading(extra, ()), is_up=False, error=why)


class Inventory:
    """Every GPU that was seen since the start, by uuid."""

    def __init__(self) -> None:
        self._known: dict[str, KnownGpu] = {}

    def __len__(self) -> int:
        return len(self._known)

    def recognise(self, index: int, uuid: str, name: str, pci_bus_id: str, minor: int | None) -> KnownGpu:
        """The GPU with this uuid, which NVML shows as number `index` now."""
        known = self._known.get(uuid)
        device = known.device if known is not None else self._number(index)
        self._known[uuid] = KnownGpu(device=device, uuid=uuid, name=name, pci_bus_id=pci_bus_id, minor=minor)
        return self._known[uuid]

    def _number(self, index: int) -> str:
        taken = {known.device for known in self._known.values()}
        while str(index) in taken:
            index += 1
        return str(index)

    def nameless(self, index: int, uuid: str, shown: set[str]) -> KnownGpu:
        """One that NVML shows as number `index` and that says nothing: by its uuid from elsewhere, else who is not `shown` (numbers)."""
        if uuid in self._known:
            return self._known[uuid]
        missing = self.missing(shown)
        by_number = [known for known in missing if known.device == str(index)]
        if by_number or len(missing) == 1:
            return (by_number or missing)[0]
        return KnownGpu(device=self._number(index), uuid=uuid)

    def missing(self, shown: set[str]) -> list[KnownGpu]:
        """Those that are not among `shown` (numbers)."""
        return [known for known in self._known.values() if known.device not in shown]


def fell_off(known: KnownGpu, extra: Gathered) -> GpuReading:
    """The reading of one that NVML does not even list."""
    return known.lost(_FELL_OFF, extra)
