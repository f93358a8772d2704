"""Which accelerators a process has open: `/dev/nvidia0`, `/dev/nvidia-caps/nvidia-cap21`, `/dev/dri/renderD128`, `/dev/kfd`."""

import os
import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from dynolog.sources.open_files import open_links

# nvidiactl, nvidia-uvm and nvidia-modeset belong to no device; card0 is for displays.
_DEVICE = re.compile(r"^/dev/(?:(nvidia)(\d+)|nvidia-caps/(nvidia-cap)(\d+)|dri/(renderD)(\d+)|(kfd))$")


class DeviceKind(StrEnum):
    """What a device file stands for."""

    NVIDIA = "nvidia"  # a whole device; the minor number is the driver's own count
    NVIDIA_CAPABILITY = "nvidia-cap"  # the right to a MIG instance
    RENDER = "renderD"  # the render node of an AMD or Intel device
    KFD = "kfd"  # AMD's compute interface: of all devices at once


class DeviceFile(msgspec.Struct, frozen=True):
    """A device file that is open, by kind and minor number (0 for kfd)."""

    kind: DeviceKind
    minor: int


def device_file(link: str) -> DeviceFile | None:
    """What a link of `/proc/PID/fd` names, None for anything that is no accelerator."""
    found = _DEVICE.match(link)
    if not found:
        return None
    parts = [part for part in found.groups() if part is not None]
    return DeviceFile(DeviceKind(parts[0]), int(parts[1]) if len(parts) > 1 else 0)


def device_files(links: Iterable[str]) -> frozenset[DeviceFile]:
    """The accelerators among such links, each once."""
    return frozenset(found for link in links if (found := device_file(link)) is not None)


def open_device_files(directory: str) -> frozenset[DeviceFile]:
    """The accelerators open in the process whose fd directory this is; empty when its descriptors are not ours to see."""
    return device_files(open_links(directory))


def accelerators_present(dev: str = "/dev") -> bool:
    """Whether this machine has a driver for any of them."""
    return any(os.path.exists(f"{dev}/{name}") for name in ("nvidiactl", "kfd", "dri"))
