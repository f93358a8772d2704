"""Whose accelerators are in a machine, by PCI and by what drivers leave in procfs: a cheap look before a library is loaded."""

from dynolog.sources.host_files import HostFiles

NVIDIA = "0x10de"
_PCI = "sys/bus/pci/devices"
# Display controllers (03xxxx) and processing accelerators (12xxxx) of the PCI code and ID assignment specification.
_CLASSES = ("0x03", "0x12")
# Also where the device is not on PCI (Tegra).
_NVIDIA_DRIVER = "proc/driver/nvidia/version"


def vendors(host: HostFiles) -> frozenset[str] | None:
    """PCI vendor ids (`0x10de`) of the display controllers and accelerators; None when this host shows no PCI devices at all."""
    found = set()
    devices = host.list(_PCI)
    for device in devices:
        if (host.read_text(f"{_PCI}/{device}/class") or "").startswith(_CLASSES):
            found.add(host.read_text(f"{_PCI}/{device}/vendor") or "")
    if host.read_text(_NVIDIA_DRIVER) is not None:
        found.add(NVIDIA)
    return frozenset(found) if devices or found else None
