"""Which CPU belongs to which NUMA node (`/sys/devices/system/node/node*/cpulist`, sysfs-devices-node)."""

from dynolog.sources.host_files import HostFiles

# The kernel's own limit is 8192 (NR_CPUS); a range must not fill memory.
_MOST_CPUS = 1 << 16


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The kernel's list format: "0-3,8,10-11" → (0, 1, 2, 3, 8, 10, 11); "" → (). Raises ValueError for anything else."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        lowest, highest = int(first), int(last if dash else first)
        if highest >= _MOST_CPUS:
            raise ValueError(f"no machine has a CPU {highest}")
        cpus.extend(range(lowest, highest + 1))
    return tuple(cpus)


def cpus_of_nodes(host: HostFiles) -> dict[int, tuple[int, ...]]:
    """CPU ids of each NUMA node that has CPUs; {} on a kernel without NUMA. A node that cannot be read is left out."""
    nodes: dict[int, tuple[int, ...]] = {}
    for name in host.list("sys/devices/system/node"):
        if not (name.startswith("node") and name[4:].isdecimal()):
            continue
        try:
            cpus = parse_cpu_list(host.read_text(f"sys/devices/system/node/{name}/cpulist") or "")
        except ValueError:
            continue
        if cpus:
            nodes[int(name[4:])] = cpus
    return nodes
