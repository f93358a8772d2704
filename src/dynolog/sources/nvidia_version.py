"""Versions of NVIDIA's kernel driver and of the libraries beside it, by their files: nothing is loaded."""

import os
import re

from dynolog.sources.host_files import HostFiles

_DRIVER = "proc/driver/nvidia/version"
_KERNEL_MODULE = re.compile(r"^NVRM version:.*?\s(\d{3,4}\.\d+(?:\.\d+)?)\s", re.MULTILINE)
_OF_NAME = re.compile(r"\.so\.(\d{3,4}\.\d+(?:\.\d+)?)$")
# Where the distributions, NVIDIA's installer and its container runtime put them.
_FOLDERS = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "lib64",
    "usr/lib",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    "run/opengl-driver/lib",
    "usr/lib/wsl/lib",
    "usr/local/dcgm/lib64",
    "usr/local/lib",
)


def parse_driver_version(text: str) -> str:
    """`550.54.15` from /proc/driver/nvidia/version, of the proprietary or the open module; "" when it is not there."""
    found = _KERNEL_MODULE.search(text)
    return found[1] if found else ""


def driver_version(host: HostFiles) -> str | None:
    """The kernel driver's, "" when it is loaded and does not say, None when it is not loaded."""
    text = host.read_text(_DRIVER)
    return None if text is None else parse_driver_version(text)


def find_library(host: HostFiles, name: str) -> str:
    """The path of the first file of that name (`libnvidia-ml.so.1`; behind `libdcgm.so` any number), "" when there is none."""
    for folder in _FOLDERS:
        for found in host.list(folder):
            if found == name or (name.endswith(".so") and found.startswith(f"{name}.")):
                return host.path(f"{folder}/{found}")
    return ""


def library_version(path: str) -> str:
    """`550.54.15` from the name of the file that a library's link leads to; "" when it does not say."""
    found = _OF_NAME.search(os.path.realpath(path))
    return found[1] if found else ""
