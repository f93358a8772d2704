"""The PCIe link of an accelerator (`current_link_speed` and its siblings, Documentation/ABI/testing/sysfs-bus-pci).

Boards of AMD and Intel carry a switch of their own between the slot and the chip. The chip's own files tell of the link to that switch,
which is always wide and fast (AMD) or meaningless (Intel: 2.5 GT/s, 1 lane), so the link of the switch's upstream port is read.
"""

import os

import msgspec

from dynolog.sources.drm_cards import PCI_ADDRESS, read_hex
from dynolog.sources.host_files import HostFiles

# In tenths of GT/s. The files give '16.0 GT/s PCIe', or 'Unknown'.
_GENERATIONS = {25: 1, 50: 2, 80: 3, 160: 4, 320: 5, 640: 6}
_BRIDGE_CLASS = 0x0604
_MOST_LANES = 32


def generation(text: str | None) -> int | None:
    """The PCIe generation of a link speed, or None."""
    try:
        return _GENERATIONS.get(round(float((text or "").partition(" ")[0]) * 10))
    except (ValueError, OverflowError):
        return None


def lanes(text: str | None) -> int | None:
    """The width of a link, or None; a device that fell off the bus says 63."""
    digits = (text or "").strip()
    return width if digits.isascii() and digits.isdigit() and 0 < (width := int(digits)) <= _MOST_LANES else None


class PcieLink(msgspec.Struct, frozen=True, kw_only=True):
    """The link between slot and board: what it is now, and the most that both of its ends can do. None where not known."""

    generation: int | None = None
    generation_max: int | None = None
    width: int | None = None
    width_max: int | None = None


def link_folder(host: HostFiles, device_folder: str) -> str:
    """The PCI device whose link is the one to the slot: the device itself, or the upstream port of its board's switch."""
    vendor = read_hex(host, f"{device_folder}/vendor")
    down = os.path.dirname(device_folder)
    up = os.path.dirname(down)
    # What sits directly on the root bus is a root port, not a switch.
    is_on_root = not PCI_ADDRESS.fullmatch(os.path.basename(os.path.dirname(up)))
    if is_on_root or not all(_is_bridge_of(host, folder, vendor) for folder in (down, up)):
        return device_folder
    return up


def _is_bridge_of(host: HostFiles, folder: str, vendor: int | None) -> bool:
    device_class = read_hex(host, f"{folder}/class")
    return (
        PCI_ADDRESS.fullmatch(os.path.basename(folder)) is not None
        and device_class is not None
        and device_class >> 8 == _BRIDGE_CLASS
        and read_hex(host, f"{folder}/vendor") == vendor
    )


def read_link(host: HostFiles, folder: str) -> PcieLink:
    """One reading. Maxima are of the device and of the port above it, whichever is lower."""
    above = os.path.dirname(folder)
    ends = (folder, above) if PCI_ADDRESS.fullmatch(os.path.basename(above)) else (folder,)
    generations = [generation(host.read_text(f"{end}/max_link_speed")) for end in ends]
    widths = [lanes(host.read_text(f"{end}/max_link_width")) for end in ends]
    return PcieLink(
        generation=generation(host.read_text(f"{folder}/current_link_speed")),
        generation_max=min(filter(None, generations), default=None),
        width=lanes(host.read_text(f"{folder}/current_link_width")),
        width_max=min(filter(None, widths), default=None),
    )


def link_values(link: PcieLink) -> dict[str, int | float | str]:
    """What is known of a link, under the names of the catalogue. An integrated device has no link: nothing."""
    values = {
        "pcie_link_generation": link.generation,
        "pcie_link_generation_max": link.generation_max,
        "pcie_link_width": link.width,
        "pcie_link_width_max": link.width_max,
    }
    return {name: value for name, value in values.items() if value is not None}
