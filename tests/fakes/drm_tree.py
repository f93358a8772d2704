"""Recorded sysfs trees of graphics cards, as small files that Python writes, with the links that the kernel makes."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from fakes.collector_context import HostTree

Files = Mapping[str, str | int | bytes]


class DrmTree(HostTree):
    """A host with cards."""

    def pci(self, path: str, vendor: int, device: int, device_class: int, driver: str = "", **files: str | int) -> str:
        """A PCI device at `path` (`0000:00:01.1/0000:03:00.0`: a bridge and what is behind it); its folder below the root."""
        folder = f"sys/devices/pci0000:00/{path}"
        self.files(
            folder,
            {"vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}", "class": f"0x{device_class:06x}", **files},
        )
        self._link(f"sys/bus/pci/devices/{os.path.basename(path)}", folder)
        if driver:
            self._link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        return folder

    def card(self, number: int, device_folder: str, *, render: int) -> str:
        """A DRM card of a device; its folder in the device."""
        folder = f"{device_folder}/drm/card{number}"
        self.write(f"{folder}/dev", f"226:{number}\n")
        self.write(f"{device_folder}/drm/renderD{render}/dev", f"226:{render}\n")
        self._link(f"{folder}/device", device_folder)
        self._link(f"sys/class/drm/card{number}", folder)
        self._link(f"sys/class/drm/renderD{render}", f"{device_folder}/drm/renderD{render}")
        return folder

    def bridge(self, path: str, vendor: int = 0x1022, **files: str | int) -> str:
        """A PCI bridge."""
        return self.pci(path, vendor, 0x1478, 0x060400, "pcieport", **files)

    def files(self, folder: str, files: Files) -> None:
        """Write files; a number is a line."""
        for name, content in files.items():
            self.write(f"{folder}/{name}", content if isinstance(content, bytes) else f"{content}\n")

    def remove(self, path: str) -> None:
        """Take a file or a folder away."""
        target = self.root / path
        if target.is_symlink() or target.is_file():
            target.unlink()
        else:
            shutil.rmtree(target)

    def _link(self, path: str, target: str) -> None:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        (self.root / target).mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(self.root / target, link.parent))


class SteppedNs:
    """A monotonic clock that stands until a test moves it."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def drm_tree(tmp_path: Path) -> DrmTree:
    """An empty one below a test's folder."""
    return DrmTree(tmp_path / "host")
