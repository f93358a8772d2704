"""What a device plugin's id means: a uuid, a device file, a PCI address, each perhaps of a part of a device or of one of its sharers."""

import re

import msgspec

from dynolog.model.gpu import GpuReading

# `GPU-<uuid>::3`: one of several pods that take turns.
_SHARER = re.compile(r"::\d+$")
# Google's plugin: `nvidia0`, `nvidia0/gi1`, either with `/vgpu2` for a sharer.
_DEVICE_FILE = re.compile(r"^nvidia(\d+)(?:/gi(\d+))?(?:/vgpu\d+)?$")
# `MIG-GPU-<uuid of the device>/<gpu instance>/<compute instance>`, of drivers before 470.
_OLD_MIG = re.compile(r"^MIG-(GPU-[0-9a-f-]+)/(\d+)/(\d+)$", re.IGNORECASE)
# AMD's plugin: the PCI address.
_PCI = re.compile(r"^([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$", re.IGNORECASE)


class DeviceKey(msgspec.Struct, frozen=True):
    """A device by one of its names. `instance` is the GPU instance in it, where the name is that of the device around it."""

    kind: str  # uuid, file, pci or number
    name: str
    instance: int | None = None


def key_of_id(device_id: str) -> DeviceKey:
    """The device behind an id; an id of no known form is taken for a uuid or number as it is."""
    plain = _SHARER.sub("", device_id.strip())
    if found := _DEVICE_FILE.match(plain):
        return DeviceKey("file", found[1], int(found[2]) if found[2] else None)
    if found := _OLD_MIG.match(plain):
        return DeviceKey("uuid", found[1].lower(), int(found[2]))
    if found := _PCI.match(plain):
        return DeviceKey("pci", _pci(found))
    if plain.isdecimal():
        return DeviceKey("number", plain)
    return DeviceKey("uuid", plain.lower())


def keys_of_reading(reading: GpuReading, device_uuid: str) -> tuple[DeviceKey, ...]:
    """All names that a plugin may have for a device or instance. `device_uuid` is that of the device around an instance."""
    instance = reading.gpu_instance_id
    keys = [DeviceKey("uuid", reading.uuid.lower())] if reading.uuid else []
    if reading.minor is not None:
        keys.append(DeviceKey("file", str(reading.minor), instance))
    if instance is not None:
        return (*keys, DeviceKey("uuid", device_uuid.lower(), instance)) if device_uuid else tuple(keys)
    if found := _PCI.match(reading.pci_bus_id):
        keys.append(DeviceKey("pci", _pci(found)))
    return (*keys, DeviceKey("number", reading.device))


def _pci(found: "re.Match[str]") -> str:
    """Some write the domain with four digits, some with eight."""
    return f"{int(found[1], 16):x}:{found[2].lower()}"
