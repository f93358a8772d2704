"""The compute driver's view (`/sys/class/kfd/kfd`): partitions of a chip, XGMI neighbours, and processes with their memory."""

import os
import re

import msgspec

from dynolog.model.gpu import GpuProcess
from dynolog.sources import named_numbers
from dynolog.sources.attribute import read_attribute, read_integer
from dynolog.sources.host_files import HostFiles

_NODES = "sys/class/kfd/kfd/topology/nodes"
_GENERATION = "sys/class/kfd/kfd/topology/generation_id"
_PROCESSES = "sys/class/kfd/kfd/proc"
# kfd_ioctl.h and the CRAT table: type of a link between two nodes.
_XGMI = 11
_VRAM_HEAPS = (1, 2)
_VRAM_FILE = re.compile(r"vram_(\d{1,10})")


class KfdNode(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, or one partition of it, as compute programs see it.

    `pci_address` is the whole device's; partitions of one device are told apart by `partition`, from 0. `xgmi_peers` is the number of
    GPUs that an XGMI link leads to. `memory_bytes` is its own memory, None when it is not said.
    """

    gpu_id: int
    pci_address: str
    partition: int
    render_minor: int | None = None
    xgmi_peers: int = 0
    memory_bytes: int | None = None


def read_nodes(host: HostFiles) -> list[KfdNode]:
    """All GPUs; none when the driver is not there or a device cgroup hides them. One that cannot be read is left out."""
    gpu_ids = {number: _integer(host, f"{_NODES}/{number}/gpu_id") or 0 for number in _numbered(host, _NODES)}
    gpus = {number for number, gpu_id in gpu_ids.items() if gpu_id}
    nodes = [node for number in sorted(gpus) if (node := _node(host, number, gpu_ids[number], gpus))]
    by_device: dict[str, list[KfdNode]] = {}
    for node in sorted(nodes, key=lambda node: node.partition):
        by_device.setdefault(node.pci_address, []).append(node)
    # Older kernels give all partitions of a device the same location.
    return [
        msgspec.structs.replace(node, partition=partition)
        for partitions in by_device.values()
        for partition, node in enumerate(partitions)
    ]


def _node(host: HostFiles, number: int, gpu_id: int, gpus: set[int]) -> KfdNode | None:
    folder = f"{_NODES}/{number}"
    data = read_attribute(host.path(f"{folder}/properties"))
    found = named_numbers.parse(data or b"", ("location_id", "domain", "drm_render_minor"))
    location = found.get("location_id")
    if location is None:
        return None
    # The number of a partition stands where PCI has the function.
    address = f"{found.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.0"
    return KfdNode(
        gpu_id=gpu_id,
        pci_address=address,
        partition=location & 7,
        render_minor=found.get("drm_render_minor") or None,
        xgmi_peers=len(_xgmi_peers(host, folder) & gpus),
        memory_bytes=_memory_bytes(host, folder),
    )


def _xgmi_peers(host: HostFiles, folder: str) -> set[int]:
    peers: set[int] = set()
    for links in ("io_links", "p2p_links"):
        for link in _numbered(host, f"{folder}/{links}"):
            data = read_attribute(host.path(f"{folder}/{links}/{link}/properties"))
            found = named_numbers.parse(data or b"", ("type", "node_to"))
            if found.get("type") == _XGMI and "node_to" in found:
                peers.add(found["node_to"])
    return peers


def _memory_bytes(host: HostFiles, folder: str) -> int | None:
    sizes = []
    for bank in _numbered(host, f"{folder}/mem_banks"):
        data = read_attribute(host.path(f"{folder}/mem_banks/{bank}/properties"))
        found = named_numbers.parse(data or b"", ("heap_type", "size_in_bytes"))
        if found.get("heap_type") in _VRAM_HEAPS and "size_in_bytes" in found:
            sizes.append(found["size_in_bytes"])
    return sum(sizes) if sizes else None


class _Known(msgspec.Struct):
    """A process: the GPUs that it had memory on, and when to look at all of them again (each time after twice as long)."""

    gpu_ids: list[int]
    all_at_ns: int
    wait_ns: int


class KfdProcesses:
    """Processes that have memory on a GPU, by `gpu_id`. Pids are the host's.

    Every process that opened the compute driver has a file for every GPU; one that reads 0 is no user of that GPU. With dozens of
    devices those are thousands of files, so all are read when a process is new, and again now and then: programs take their memory in
    their first minute. Of those again, only so many in one round.
    """

    FIRST_WAIT_NS = 10_000_000_000
    LONGEST_WAIT_NS = 160_000_000_000
    MOST_AGAIN = 8

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._known: dict[int, _Known] = {}

    def read(self, now_ns: int) -> dict[int, list[GpuProcess]]:
        """One reading."""
        pids = _numbered(self._host, _PROCESSES)
        self._look_at_all(pids, now_ns)
        users: dict[int, list[GpuProcess]] = {}
        for pid in pids:
            folder = self._host.path(f"{_PROCESSES}/{pid}")
            known = self._known[pid]
            used = {gpu_id: size for gpu_id in known.gpu_ids if (size := read_integer(f"{folder}/vram_{gpu_id}"))}
            known.gpu_ids = list(used)
            for gpu_id, size in used.items():
                users.setdefault(gpu_id, []).append(GpuProcess(pid=pid, used_memory_bytes=size))
        return users

    def _look_at_all(self, pids: list[int], now_ns: int) -> None:
        self._known = {pid: self._known[pid] for pid in pids if pid in self._known}
        again = [pid for pid, known in self._known.items() if now_ns >= known.all_at_ns]
        for pid in (*(pid for pid in pids if pid not in self._known), *again[: self.MOST_AGAIN]):
            before = self._known.get(pid)
            wait_ns = min(2 * before.wait_ns, self.LONGEST_WAIT_NS) if before else self.FIRST_WAIT_NS
            files = (_VRAM_FILE.fullmatch(name) for name in self._host.list(f"{_PROCESSES}/{pid}"))
            self._known[pid] = _Known([int(file[1]) for file in files if file], now_ns + wait_ns, wait_ns)


class KfdView:
    """The nodes, looked at seldom, and the processes of one round."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._processes = KfdProcesses(host)
        self._nodes: dict[str, list[KfdNode]] = {}
        self._users: dict[int, list[GpuProcess]] = {}
        self._generation: str | None = None
        self.shows_processes = False

    def refresh(self) -> None:
        """Read the nodes, when the driver says that they have changed: in a divided machine, thousands of files."""
        generation = self._host.read_text(_GENERATION)
        if generation is not None and generation == self._generation:
            return
        self._generation = generation
        nodes: dict[str, list[KfdNode]] = {}
        for node in read_nodes(self._host):
            nodes.setdefault(node.pci_address, []).append(node)
        self._nodes = nodes

    def begin_round(self, now_ns: int) -> None:
        """Read the processes."""
        self.shows_processes = bool(self._nodes) and os.path.isdir(self._host.path(_PROCESSES))
        self._users = self._processes.read(now_ns) if self.shows_processes else {}

    def nodes(self, pci_address: str) -> list[KfdNode]:
        """The partitions of one device, one where it is not divided; none when the compute driver does not know it."""
        return self._nodes.get(pci_address, [])

    def users(self, gpu_id: int) -> tuple[GpuProcess, ...]:
        """Who has memory on it, by pid."""
        return tuple(self._users.get(gpu_id, ()))


def _numbered(host: HostFiles, folder: str) -> list[int]:
    return sorted(int(name) for name in host.list(folder) if name.isascii() and name.isdigit() and len(name) < 12)


def _integer(host: HostFiles, path: str) -> int | None:
    return read_integer(host.path(path))
