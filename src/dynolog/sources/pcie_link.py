"""The PCIe link of an accelerator (`current_link_speed` and its siblings, Documentation/ABI/testing/sysfs-bus-pci).

Boards of AMD and Intel carry a switch of their own between the slot and the chip. The chip's own files tell of the link to that switch,
which is always wide and fast (AMD) or meaningless (Intel: 2.5 GT/s, 1 lane), so the link of the switch's upstream port is read.
"""

import os

from dynolog.sources.drm_cards import PCI_ADDRESS, read_hex
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_attribute import OpenAttribute, OpenAttributes

# In tenths of GT/s. The files give '16.0 GT/s PCIe', or 'Unknown'.
_GENERATIONS = {25: 1, 50: 2, 80: 3, 160: 4, 320: 5, 640: 6}
_BRIDGE_CLASS = 0x0604
_MOST_LANES = 32
# Python refuses to read numbers of thousands of digits.
_MOST_DIGITS = 9


def generation(text: str | None) -> int | None:
    """The PCIe generation of a link speed, or None."""
    try:
        return _GENERATIONS.get(round(float((text or "").partition(" ")[0]) * 10))
    except (ValueError, OverflowError):
        return None


def lanes(text: str | None) -> int | None:
    """The width of a link, or None; a device that fell off the bus says 63."""
    digits = (text or "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None
    return width if 0 < (width := int(digits)) <= _MOST_LANES else None


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


class PcieLink:
    """The link between slot and board. What is not known is missing: an integrated device has none."""

    def __init__(self, host: HostFiles, device_folder: str, files: OpenAttributes) -> None:
        self._host = host
        self.folder = link_folder(host, device_folder)
        self._speed = files.at(host.path(f"{self.folder}/current_link_speed"))
        self._width = files.at(host.path(f"{self.folder}/current_link_width"))

    def maxima(self) -> dict[str, int]:
        """The most that the device and the port above it can do, whichever is lower."""
        above = os.path.dirname(self.folder)
        ends = (self.folder, above) if PCI_ADDRESS.fullmatch(os.path.basename(above)) else (self.folder,)
        generations = [generation(self._host.read_text(f"{end}/max_link_speed")) for end in ends]
        widths = [lanes(self._host.read_text(f"{end}/max_link_width")) for end in ends]
        return _known(
            pcie_link_generation_max=min(filter(None, generations), default=None),
            pcie_link_width_max=min(filter(None, widths), default=None),
        )

    def now(self) -> dict[str, int]:
        """What it runs at; devices that idle may lower it."""
        return _known(pcie_link_generation=generation(_text(self._speed)), pcie_link_width=lanes(_text(self._width)))

    def close(self) -> None:
        """Close its files."""
        self._speed.close()
        self._width.close()


def _text(file: OpenAttribute) -> str:
    return (file.read() or b"").decode("ascii", "replace")


def _known(**values: int | None) -> dict[str, int]:
    return {name: value for name, value in values.items() if value is not None}
