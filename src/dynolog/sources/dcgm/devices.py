"""Which GPUs there are, which instances they are divided into, and how many there ought to be."""

import ctypes
import os
from collections.abc import Mapping

import msgspec

from dynolog.sources.dcgm import codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.connection import Connection
from dynolog.sources.dcgm.reader import Entity
from dynolog.sources.host_files import HostFiles

_PCI = "sys/bus/pci/devices"
_NVIDIA = "0x10de"
# 3D and VGA controllers of the PCI code and ID assignment specification; bridges and audio of a board have other classes.
_GPU_CLASSES = ("0x0302", "0x0300")


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a divided GPU: a GPU instance (with its compute instance when it has just one), or one of several compute instances."""

    entity: Entity
    gpu: int
    gpu_instance_id: int
    compute_instance_id: int | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a GPU is called, as far as it has said so."""

    uuid: str = ""
    name: str = ""
    pci_bus_id: str = ""
    minor: int | None = None


def list_gpus(connection: Connection) -> tuple[int, ...]:
    """The GPUs that the engine can work with; one that is lost is not among them. Raises DcgmError."""
    ids = (ctypes.c_uint * structs.MAX_DEVICES)()
    count = ctypes.c_int()
    connection.library.call("dcgmGetAllSupportedDevices", connection.handle, ids, ctypes.byref(count))
    return tuple(ids[: min(max(count.value, 0), structs.MAX_DEVICES)])


def list_instances(connection: Connection) -> tuple[Instance, ...]:
    """The instances of all GPUs; () without MIG, and with DCGM 2.0, which does not give the driver's ids. Raises DcgmError."""
    found = structs.MigHierarchy(version=structs.struct_version(structs.MigHierarchy, 2))
    code = connection.library.code("dcgmGetGpuInstanceHierarchy", connection.handle, ctypes.byref(found))
    if code in (codes.NOT_SUPPORTED, codes.VERSION_MISMATCH, codes.NO_DATA):
        return ()
    if code != codes.OK:
        raise DcgmError("dcgmGetGpuInstanceHierarchy", code)
    entries = found.entityList[: min(found.count, structs.MAX_HIERARCHY)]
    parents = {
        entry.entity.entityId: entry.parent.entityId
        for entry in entries
        if entry.entity.entityGroupId == structs.ENTITY_GPU_INSTANCE
    }
    parts: dict[int, list[structs.MigHierarchyInfo]] = {number: [] for number in parents}
    for entry in entries:
        if entry.entity.entityGroupId == structs.ENTITY_COMPUTE_INSTANCE and entry.parent.entityId in parts:
            parts[entry.parent.entityId].append(entry)
    instances = []
    for entry in entries:
        if entry.entity.entityGroupId == structs.ENTITY_GPU_INSTANCE:
            instances += _of_gpu_instance(entry, parents[entry.entity.entityId], parts[entry.entity.entityId])
    return tuple(instances)


def _of_gpu_instance(
    entry: structs.MigHierarchyInfo, gpu: int, parts: list[structs.MigHierarchyInfo]
) -> list[Instance]:
    number = entry.info.nvmlInstanceId
    only = parts[0].info.nvmlComputeInstanceId if len(parts) == 1 else None
    whole = Instance(
        entity=(structs.ENTITY_GPU_INSTANCE, entry.entity.entityId),
        gpu=gpu,
        gpu_instance_id=number,
        compute_instance_id=only,
    )
    if len(parts) < 2:
        return [whole]
    return [whole] + [
        Instance(
            entity=(structs.ENTITY_COMPUTE_INSTANCE, part.entity.entityId),
            gpu=gpu,
            gpu_instance_id=number,
            compute_instance_id=part.info.nvmlComputeInstanceId,
        )
        for part in parts
    ]


def pci_gpus(host: HostFiles) -> int:
    """How many NVIDIA GPUs the PCI bus shows, without those that a virtual machine has been given (another driver holds them)."""
    return sum(_is_gpu(host, f"{_PCI}/{device}") for device in host.list(_PCI))


def _is_gpu(host: HostFiles, folder: str) -> bool:
    if host.read_text(f"{folder}/vendor") != _NVIDIA:
        return False
    if not (host.read_text(f"{folder}/class") or "").startswith(_GPU_CLASSES):
        return False
    try:
        return os.path.basename(os.readlink(host.path(f"{folder}/driver"))) == "nvidia"
    except OSError:
        return True


class Known:
    """Every GPU that was ever seen, so that one that is missing is missed."""

    def __init__(self) -> None:
        self._identities: dict[int, Identity] = {}
        self.most = 0

    def learn(self, gpu: int, properties: Mapping[int, int | str], ids: tuple[int, int, int, int]) -> Identity:
        """Remember what a GPU said of itself; `ids` are the fields of uuid, name, PCI address and minor. What it did not say is kept."""
        uuid, name, address, minor = (properties.get(number) for number in ids)
        before = self._identities.get(gpu, Identity())
        identity = Identity(
            uuid=uuid if isinstance(uuid, str) else before.uuid,
            name=name if isinstance(name, str) else before.name,
            pci_bus_id=address if isinstance(address, str) else before.pci_bus_id,
            minor=minor if isinstance(minor, int) else before.minor,
        )
        self._identities[gpu] = identity
        return identity

    def of(self, gpu: int) -> Identity:
        """What is known of a GPU."""
        return self._identities.get(gpu, Identity())

    def missing(self, present: tuple[int, ...]) -> list[int]:
        """Those that were seen and are not there. One whose place or card came back under another number is not missing."""
        here = [self.of(gpu) for gpu in present]
        places = {one.pci_bus_id for one in here} | {one.uuid for one in here}
        gone = [gpu for gpu in sorted(self._identities) if gpu not in present]
        for gpu in [gpu for gpu in gone if {self.of(gpu).pci_bus_id, self.of(gpu).uuid} & places - {""}]:
            del self._identities[gpu]
            gone.remove(gpu)
        self.most = max(self.most, len(present))
        return gone
