"""Which socket each CPU is in (`topology/physical_package_id`, cputopology.rst)."""

from collections.abc import Iterable

from dynolog.sources.attribute import read_integer
from dynolog.sources.host_files import HostFiles


def sockets_of(host: HostFiles, cpus: Iterable[int]) -> dict[int, int]:
    """The number of the socket by CPU; a CPU of which the kernel does not say it (-1 on some ARM machines) is left out."""
    sockets = {
        cpu: read_integer(host.path(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")) for cpu in cpus
    }
    return {cpu: socket for cpu, socket in sockets.items() if socket is not None and socket >= 0}
