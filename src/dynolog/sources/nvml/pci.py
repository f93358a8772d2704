"""Which NVIDIA GPUs the PCI bus shows, whatever the driver says (`/sys/bus/pci/devices`, sysfs-bus-pci)."""

import os

from dynolog.sources.host_files import HostFiles

_FOLDER = "sys/bus/pci/devices"
_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers


def gpus_on_bus(host: HostFiles) -> list[str]:
    """Addresses (`0000:3b:00.0`) of the GPUs that the NVIDIA driver should serve here.

    Left out are those that another driver has (vfio-pci: given to a virtual machine), and in a container those whose device
    file it was not given.
    """
    return [
        address
        for address in host.list(_FOLDER)
        if host.read_text(f"{_FOLDER}/{address}/vendor") == _NVIDIA
        and (host.read_text(f"{_FOLDER}/{address}/class") or "").startswith(_DISPLAY_CLASSES)
        and _driver(host, address) in ("nvidia", "")
        and _is_given(host, address)
    ]


def _driver(host: HostFiles, address: str) -> str:
    try:
        return os.path.basename(os.readlink(host.path(f"{_FOLDER}/{address}/driver")))
    except OSError:
        return ""


def _is_given(host: HostFiles, address: str) -> bool:
    information = host.read_text(f"proc/driver/nvidia/gpus/{address}/information") or ""
    for line in information.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Device Minor" and value.strip().isdigit():
            return os.path.exists(host.path(f"dev/nvidia{value.strip()}"))
    return True


def as_in_sysfs(bus_id: str) -> str:
    """NVML writes `00000000:3B:00.0` what sysfs calls `0000:3b:00.0`."""
    lower = bus_id.lower()
    domain, colon, rest = lower.partition(":")
    return f"{domain[-4:]}{colon}{rest}" if len(domain) == 8 and domain.startswith("0000") else lower
