"""Device memory: what is used, free, and kept by the driver."""

from typing import Any

from dynolog.sources.nvml.values import Gathered, Probe

# Size of the structure and its version (NVML_STRUCT_VERSION).
_VERSION_2 = 40 | 2 << 24


def _version_2(nvml: Any, handle: Any, gathered: Gathered) -> None:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, _VERSION_2)
    total, reserved, free, used = memory.total, memory.reserved, memory.free, memory.used
    if used + free + reserved > total and used + free <= total and used >= reserved:
        # The header says that `used` includes what is reserved, and with some drivers it does.
        used -= reserved
    gathered.put("gpu_memory_total_bytes", total)
    gathered.put("gpu_memory_reserved_bytes", reserved)
    gathered.put("gpu_memory_free_bytes", free)
    gathered.put("gpu_memory_used_bytes", used)


def _version_1(nvml: Any, handle: Any, gathered: Gathered) -> None:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    gathered.put("gpu_memory_total_bytes", memory.total)
    gathered.put("gpu_memory_free_bytes", memory.free)
    gathered.put("gpu_memory_used_bytes", memory.used)


MEMORY = Probe("nvmlDeviceGetMemoryInfo_v2", "", _version_2)
# `used` has what the driver keeps in it then: hundreds of MB on an idle device.
MEMORY_WITH_RESERVED = Probe("nvmlDeviceGetMemoryInfo", "memory", _version_1)
RESERVED_IS_INSIDE = (
    "nvml_memory_v1",
    "nvml: this driver does not tell reserved memory apart: gpu_memory_used_bytes includes what the driver keeps for itself",
)
