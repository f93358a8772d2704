"""Which processes have a device open, for backends that list none: all of /proc is looked at, but rarely and in small pieces."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from dynolog.model.gpu import GpuProcess, GpuReading
from dynolog.model.held_gpu import HeldGpu
from dynolog.sources.device_files import DeviceKind, device_files
from dynolog.sources.gpu_files import held_gpus
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_files import open_links
from dynolog.sources.process import ProcessStat, parse_stat

# A pass over all processes begins at most this often; those that hold a device are looked at in between.
FULL_SCAN_EVERY_S = 60.0
HOLDERS_EVERY_S = 10.0
# Kernel threads, most of a large machine's processes, have nothing open; so many passes long they are not looked at again.
_PASSES_WITHOUT_KERNEL_THREADS = 10
_KTHREADD = 2
# What one call may take of its thread; a pass that is not done goes on at the next call.
BUDGET_S = 0.010
# A process may have a million files open, each some 10 µs; devices are among the first.
MOST_LINKS = 4096
# These keep a device open and use none: monitors, and what the vendor runs in the background. Names as the kernel cuts them.
_BYSTANDERS = frozenset(
    name[:15]
    for name in (
        "nvidia-persistenced",
        "nvidia-smi",
        "nvidia-device-plugin",
        "nv-hostengine",
        "nv-fabricmanager",
        "dcgm-exporter",
        "dcgmi",
        "dynolog",
        "rocm-smi",
        "amd-smi",
        "Xorg",
        "Xwayland",
        "gnome-shell",
    )
)


class DeviceScan:
    """Holders of devices by open files. Used from one thread; `clock` gives monotonic seconds."""

    def __init__(self, host: HostFiles, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._held: dict[int, tuple[HeldGpu, ...]] = {}
        self._rest: Iterator[int] | None = None
        self._kernel_threads: set[int] = set()
        self._passes = 0
        self._next_full_s = 0.0
        self._next_holders_s = 0.0
        self._own = os.getpid()

    def advance(self, budget_s: float = BUDGET_S) -> None:
        """Go on looking for about `budget_s`. Raises nothing for a process that ends meanwhile."""
        now_s = self._clock()
        if self._rest is None and now_s >= self._next_full_s:
            self._next_full_s = now_s + FULL_SCAN_EVERY_S
            if self._passes % _PASSES_WITHOUT_KERNEL_THREADS == 0:
                self._kernel_threads.clear()
            self._passes += 1
            self._rest = iter(self._pids())
        if self._rest is None:
            if now_s >= self._next_holders_s:
                self._next_holders_s = now_s + HOLDERS_EVERY_S
                for pid in tuple(self._held):
                    self._look(pid)
            return
        deadline_s = now_s + budget_s
        for pid in self._rest:
            self._look(pid)
            if self._clock() >= deadline_s:
                return
        self._rest = None
        self._next_holders_s = self._clock() + HOLDERS_EVERY_S

    @property
    def holders(self) -> Mapping[int, tuple[HeldGpu, ...]]:
        """Devices by the pid of who has them open."""
        return self._held

    def processes_of(self, reading: GpuReading) -> tuple[GpuProcess, ...]:
        """Those that have this device or instance open; their memory is not known."""
        return tuple(
            GpuProcess(pid=pid) for pid, held in sorted(self._held.items()) if any(_is(gpu, reading) for gpu in held)
        )

    def _pids(self) -> list[int]:
        return [
            pid for name in self._host.list("proc") if name.isdigit() and (pid := int(name)) not in self._kernel_threads
        ]

    def _look(self, pid: int) -> None:
        held: tuple[HeldGpu, ...] = ()
        links = tuple(islice(open_links(self._host.path(f"proc/{pid}/fd")), MOST_LINKS))
        files = device_files(links)
        if files and not self._is_bystander(pid):
            held = held_gpus(files, self._host)
        elif not links and self._is_kernel_thread(pid):
            self._kernel_threads.add(pid)
        if held:
            self._held[pid] = held
        else:
            self._held.pop(pid, None)

    def _is_kernel_thread(self, pid: int) -> bool:
        stat = self._stat(pid)
        return stat is not None and stat.parent_pid == _KTHREADD

    def _is_bystander(self, pid: int) -> bool:
        stat = self._stat(pid)
        if stat is None:
            return True
        return stat.name in _BYSTANDERS or self._own in (pid, stat.parent_pid)

    def _stat(self, pid: int) -> ProcessStat | None:
        try:
            return parse_stat(self._host.read(f"proc/{pid}/stat"))
        except (OSError, ValueError):  # it has ended
            return None


def _is(gpu: HeldGpu, reading: GpuReading) -> bool:
    if gpu.gpu_instance_id != reading.gpu_instance_id:
        return False
    if gpu.uuid and reading.uuid and gpu.gpu_instance_id is None:
        return gpu.uuid == reading.uuid
    if gpu.device.startswith(DeviceKind.RENDER):
        return reading.minor is not None and gpu.device == f"{DeviceKind.RENDER}{reading.minor}"
    return gpu.device == reading.device
