"""Memory and allocations of each NUMA node (`/sys/devices/system/node/node*/{meminfo,numastat}`, numastat.rst)."""

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import named_numbers
from dynolog.sources.host_files import HostFiles
from dynolog.sources.optional_file import OptionalFile

_FOLDER = "sys/devices/system/node"
COUNTERS = ("numa_hit", "numa_miss", "numa_foreign", "local_node", "other_node")
_MEMORY = (("MemTotal", b" MemTotal:"), ("MemFree", b" MemFree:"), ("MemUsed", b" MemUsed:"))


class Node(msgspec.Struct, frozen=True):
    """One node: memory in kB, and pages allocated since boot by how the allocation went."""

    memory_kb: dict[str, int]
    counters: dict[str, int]


def parse_meminfo(data: bytes) -> dict[str, int]:
    """MemTotal, MemFree and MemUsed in kB from lines `Node 0 MemTotal:  98304 kB`; one that does not parse is left out. Never raises."""
    memory: dict[str, int] = {}
    for name, marker in _MEMORY:
        at = data.find(marker)
        if at >= 0:
            at += len(marker)
            value, _, unit = data[at : data.find(b"\n", at)].strip().partition(b" ")
            if value.isdigit() and len(value) < 20 and unit == b"kB":
                memory[name] = int(value)
    return memory


class NumaReader:
    """Reads all nodes again and again. Raises SourceUnavailable on a kernel without NUMA."""

    # Nodes come and go only when memory is hot-plugged.
    NODES_EVERY = 60

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._files: dict[int, tuple[OptionalFile, OptionalFile]] = {}
        self._rounds = 0

    def read(self) -> dict[int, Node]:
        """Nodes by id; one that cannot be read is left out."""
        if self._rounds % self.NODES_EVERY == 0:
            self._find_nodes()
        self._rounds += 1
        nodes: dict[int, Node] = {}
        for node, (meminfo, numastat) in self._files.items():
            memory = parse_meminfo(meminfo.read() or b"")
            counters = named_numbers.parse(numastat.read() or b"", COUNTERS)
            if memory or counters:
                nodes[node] = Node(memory, counters)
        if not nodes:
            self._rounds = 0
            self._files = {}
            raise SourceUnavailable("/" + _FOLDER, "no NUMA node", "this kernel is built without NUMA")
        return nodes

    def _find_nodes(self) -> None:
        found = [int(name[4:]) for name in self._host.list(_FOLDER) if name.startswith("node") and name[4:].isdecimal()]
        self._files = {
            node: self._files.get(node)
            or (
                OptionalFile(self._host, f"{_FOLDER}/node{node}/meminfo"),
                OptionalFile(self._host, f"{_FOLDER}/node{node}/numastat"),
            )
            for node in sorted(found)
        }
