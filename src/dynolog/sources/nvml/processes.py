"""Which processes hold a context on a GPU (nvmlDeviceGet{Compute,Graphics}RunningProcesses, three versions of it)."""

import ctypes
from collections.abc import Iterable
from typing import Any, NamedTuple

from dynolog.model.gpu import GpuProcess
from dynolog.sources.nvml.errors import NO_SUCH_FUNCTION, Code
from dynolog.sources.nvml.session import Notices

_NO_INSTANCE = 0xFFFFFFFF
_PID_MAX = 1 << 22  # PID_MAX_LIMIT of the kernel
_KINDS = ("Compute", "Graphics")
_VERSIONS = ("_v3", "_v2", "")


class ListedProcess(NamedTuple):
    """One entry of a list. Instances are None on a GPU that is not divided."""

    pid: int
    used_memory_bytes: int | None
    is_compute: bool
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


class _ProcessInfo1(ctypes.Structure):
    """nvmlProcessInfo_v1_t, which nvidia-ml-py has no more."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


class ProcessLists:
    """Reads the lists in the newest version that this driver has and fills in rightly; the same for all devices."""

    def __init__(self, nvml: Any, notices: Notices, driver_version: str) -> None:
        self._nvml = nvml
        self._notices = notices
        self._driver_version = driver_version
        self._version = dict.fromkeys(_KINDS, 0)

    def read(self, handle: Any) -> list[ListedProcess] | None:
        """All processes of a GPU, or None when the driver does not say. Raises NVMLError for what concerns the device."""
        lists = [self._read_kind(handle, kind) for kind in _KINDS]
        known = [entries for entries in lists if entries is not None]
        return [entry for entries in known for entry in entries] if known else None

    def _read_kind(self, handle: Any, kind: str) -> list[ListedProcess] | None:
        while self._version[kind] < len(_VERSIONS):
            version = _VERSIONS[self._version[kind]]
            try:
                entries = self._call(handle, kind, version)
            except self._nvml.NVMLError as error:
                if error.value not in NO_SUCH_FUNCTION:
                    if error.value in (Code.NOT_SUPPORTED, Code.NO_PERMISSION, Code.INSUFFICIENT_SIZE):
                        return None
                    raise
                self._older_version(kind, f"has no version {version or 'later than the first'} of it")
                continue
            if all(_is_sane(entry) for entry in entries):
                return entries
            self._older_version(kind, f"fills version {version} of it in another layout than nvidia-ml-py reads")
        return None

    def _older_version(self, kind: str, why: str) -> None:
        self._version[kind] += 1
        left = self._version[kind] < len(_VERSIONS)
        self._notices.say(
            f"nvml_processes_{kind}_{self._version[kind]}",
            f"nvml: driver {self._driver_version} {why} (list of {kind.lower()} processes): "
            + ("an older version is read" if left else "processes are not read"),
        )

    def _call(self, handle: Any, kind: str, version: str) -> list[ListedProcess]:
        is_compute = kind == "Compute"
        name = f"nvmlDeviceGet{kind}RunningProcesses{version}"
        if not version:
            return [
                ListedProcess(info.pid, _memory(info.usedGpuMemory), is_compute)
                for info in self._version_1(handle, name)
            ]
        return [
            ListedProcess(
                info.pid,
                _memory(info.usedGpuMemory),
                is_compute,
                _instance(info.gpuInstanceId),
                _instance(info.computeInstanceId),
            )
            for info in getattr(self._nvml, name)(handle)
        ]

    def _version_1(self, handle: Any, name: str) -> list[_ProcessInfo1]:
        function = getattr(self._nvml.nvmlLib, name, None)
        if function is None:
            raise self._nvml.NVMLError(Code.FUNCTION_NOT_FOUND)
        count = ctypes.c_uint(256)
        entries = (_ProcessInfo1 * count.value)()
        code = function(handle, ctypes.byref(count), entries)
        if code:
            raise self._nvml.NVMLError(code)
        return list(entries[: count.value])


def _memory(used: int | None) -> int | None:
    return None if used in (None, 0xFFFFFFFFFFFFFFFF) else used


def _instance(number: int) -> int | None:
    return None if number == _NO_INSTANCE else number


def _is_sane(entry: ListedProcess) -> bool:
    """Some drivers of branch 535 wrote longer entries than their header said: from the second on, all is shifted."""
    return 0 < entry.pid <= _PID_MAX and (entry.used_memory_bytes or 0) < 1 << 50


def merge(listed: Iterable[ListedProcess]) -> tuple[GpuProcess, ...]:
    """One entry for each process: it may be listed as compute and graphics, each time with all its memory."""
    merged: dict[int, GpuProcess] = {}
    for entry in listed:
        known = merged.get(entry.pid, GpuProcess(pid=entry.pid, is_compute=False))
        amounts = [one for one in (entry.used_memory_bytes, known.used_memory_bytes) if one is not None]
        merged[entry.pid] = GpuProcess(
            pid=entry.pid,
            used_memory_bytes=max(amounts, default=None),
            is_compute=entry.is_compute or known.is_compute,
        )
    return tuple(merged.values())
