"""A partition of an AMD accelerator (MI300 in DPX, QPX or CPX): a device of its own for programs, a part of a socket for the sensors."""

from dynolog.model.gpu import GpuReading
from dynolog.sources.amdgpu.card import AmdCard
from dynolog.sources.amdgpu.kfd import KfdNode, KfdView


class AmdPartition:
    """A partition beside the first one, which is read with the whole socket: power, temperatures, memory in use and errors are there."""

    is_whole = False

    def __init__(self, socket: AmdCard, node: KfdNode, kfd: KfdView, name: str) -> None:
        self._socket = socket
        self._node = node
        self._kfd = kfd
        self._name = name

    def refresh(self) -> None:
        """Nothing of it changes."""

    def read(self, device: str, now_ns: int) -> GpuReading:
        """What is known of the partition alone."""
        del now_ns
        users = self._kfd.users(self._node.gpu_id)
        values: dict[str, int | float | str] = {"gpu_processes": len(users)} if self._kfd.shows_processes else {}
        if self._node.memory_bytes is not None:
            values["gpu_memory_total_bytes"] = self._node.memory_bytes
        shares = self._socket.firmware.partition_busy_pct
        share = shares[self._node.partition] if self._node.partition < len(shares) else None
        if share is not None:
            values["gpu_device_utilization"] = share
        is_up = self._socket.is_up
        return GpuReading(
            device=device,
            name=self._name,
            pci_bus_id=f"{self._node.pci_address[:-1]}{self._node.partition}",
            minor=self._node.render_minor,
            is_up=is_up,
            error="" if is_up else "its socket does not answer",
            values=values if is_up else {},
            processes=users,
        )

    def lost(self, device: str) -> GpuReading | None:
        """The socket was divided otherwise, which is no fault."""
        del device
        return None

    def close(self) -> None:
        """It has no files of its own."""
