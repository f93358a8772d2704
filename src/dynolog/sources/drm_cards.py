"""Graphics and compute devices that have a driver (`/sys/class/drm/card*`), and those on the PCI bus that have none."""

import os
import re

import msgspec

from dynolog.sources.attribute import read_attribute
from dynolog.sources.host_files import HostFiles

_FOLDER = "sys/class/drm"
_PCI = "sys/bus/pci/devices"
_CARD = re.compile(r"card(\d+)")
_RENDER_NODE = re.compile(r"renderD(\d+)")
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Base classes of PCI: display controllers, and processing accelerators.
_ACCELERATOR_CLASSES = ("0x03", "0x12")


class DrmCard(msgspec.Struct, frozen=True, kw_only=True):
    """One PCI device with a DRM driver.

    `folder` is its directory in the DRM class and `device_folder` that of the PCI device, both below the root. `render_minor` is
    the number in `/dev/dri/renderD128`.
    """

    folder: str
    device_folder: str
    pci_address: str
    device_id: int
    driver: str
    render_minor: int | None = None


def card_names(host: HostFiles) -> list[str]:
    """Names of all cards, for seeing that one came or went."""
    return [name for name in host.list(_FOLDER) if _CARD.fullmatch(name)]


def find_cards(host: HostFiles, vendor_id: int) -> list[DrmCard]:
    """The cards of one maker by PCI address; what is not a PCI device (a partition, a display over USB) is left out."""
    root = os.path.realpath(host.root)
    cards = [card for name in card_names(host) if (card := _card(host, root, f"{_FOLDER}/{name}", vendor_id))]
    return sorted(cards, key=lambda card: card.pci_address)


def _card(host: HostFiles, root: str, folder: str, vendor_id: int) -> DrmCard | None:
    if read_hex(host, f"{folder}/device/vendor") != vendor_id:
        return None
    device = os.path.realpath(f"{root}/{folder}/device")
    address = os.path.basename(device)
    if not PCI_ADDRESS.fullmatch(address):
        return None
    device_folder = os.path.relpath(device, root)
    nodes = [_RENDER_NODE.fullmatch(name) for name in host.list(f"{device_folder}/drm")]
    minors = [int(node[1]) for node in nodes if node]
    return DrmCard(
        folder=folder,
        device_folder=device_folder,
        pci_address=address,
        device_id=read_hex(host, f"{device_folder}/device") or 0,
        driver=driver_of(host, device_folder),
        render_minor=min(minors, default=None),
    )


def without_driver(host: HostFiles, vendor_id: int) -> list[str]:
    """PCI addresses of one maker's accelerators that no driver has taken; one that was given to a virtual machine has one."""
    return [
        address
        for address in host.list(_PCI)
        if PCI_ADDRESS.fullmatch(address)
        and read_hex(host, f"{_PCI}/{address}/vendor") == vendor_id
        and (host.read_text(f"{_PCI}/{address}/class") or "").startswith(_ACCELERATOR_CLASSES)
        and not driver_of(host, f"{_PCI}/{address}")
    ]


def driver_of(host: HostFiles, device_folder: str) -> str:
    """The name of a PCI device's driver, "" when it has none."""
    try:
        return os.path.basename(os.readlink(host.path(f"{device_folder}/driver")))
    except OSError:
        return ""


def read_hex(host: HostFiles, path: str) -> int | None:
    """A number like 0x1002, or None."""
    data = read_attribute(host.path(path))
    try:
        return None if data is None else int(data, 16)
    except ValueError:
        return None


def driver_version(host: HostFiles, driver: str) -> str:
    """The version of a module that has one of its own (a vendor's package), else that of the kernel it belongs to."""
    if own := host.read_text(f"sys/module/{driver}/version"):
        return f"{driver} {own}"
    kernel = host.read_text("proc/sys/kernel/osrelease")
    return f"{driver} of kernel {kernel}" if kernel else ""
