"""Which CPUs are online (`/sys/devices/system/cpu/online`, cputopology.rst)."""

from dynolog.sources.host_files import HostFiles
from dynolog.sources.topology import parse_cpu_list


def cpu_ids(host: HostFiles) -> tuple[int, ...]:
    """Ids of the CPUs that are online; () when the kernel does not say."""
    try:
        return parse_cpu_list(host.read_text("sys/devices/system/cpu/online") or "")
    except ValueError:
        return ()
