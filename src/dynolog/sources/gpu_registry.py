"""Every GPU backend by the name that `--gpu_backend` gives it, in the order in which `auto` tries them. Loaded in the child only."""

import re
from importlib import import_module

import msgspec

from dynolog.sources.gpu_backend import GpuBackend, GpuOptions

AUTO, NONE = "auto", "none"


class Entry(msgspec.Struct, frozen=True):
    """A backend: where its class is, and the PCI vendor whose devices it reads."""

    name: str
    place: str
    vendor: str
    maker: str


BACKENDS = (
    Entry("dcgm", "dynolog.sources.dcgm.backend:DcgmBackend", "0x10de", "NVIDIA"),
    Entry("nvml", "dynolog.sources.nvml.backend:NvmlBackend", "0x10de", "NVIDIA"),
    Entry("amd", "dynolog.sources.amdgpu.backend:AmdBackend", "0x1002", "AMD"),
    Entry("intel", "dynolog.sources.intel_gpu.backend:IntelBackend", "0x8086", "Intel"),
)
_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_known(name: str) -> bool:
    """Whether `--gpu_backend` may be this: a name of the list, `auto`, `none`, or MODULE:CLASS of a backend from elsewhere."""
    return name in (AUTO, NONE) or any(entry.name == name for entry in BACKENDS) or bool(_PLACE.fullmatch(name))


def load(options: GpuOptions) -> GpuBackend:
    """Import and make the backend that `options.backend` names; it is not opened yet. Raises ImportError, AttributeError."""
    place = next((entry.place for entry in BACKENDS if entry.name == options.backend), options.backend)
    module, _, name = place.partition(":")
    backend: GpuBackend = getattr(import_module(module), name)(options)
    return backend
