"""Which network devices carry the traffic of an RDMA port."""

import re

from dynolog.sources.host_files import HostFiles

# A representor of a virtual function or sub-function (`pf0vf3`, `c1pf0sf2`) is not the port.
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+")


def net_devices(host: HostFiles, device: str, port: int) -> tuple[str, ...]:
    """Names of the network devices of a port: those below a bond, else the one that owns the port's first address, else those of the
    PCI function that say they are this port. () for a port that has none in this network namespace.
    """
    folder = f"sys/class/infiniband/{device}"
    owner = host.read_text(f"{folder}/ports/{port}/gid_attrs/ndevs/0")
    if owner and "/" not in owner:
        # A bond's own statistics are not those of the hardware.
        members = host.read_text(f"sys/class/net/{owner}/bonding/slaves")
        return tuple(members.split()) if members else (owner,)
    return tuple(
        name for name in host.list(f"{folder}/device/net") if _is_port(host, f"{folder}/device/net/{name}", port)
    )


def _is_port(host: HostFiles, folder: str, port: int) -> bool:
    if _REPRESENTOR.match(host.read_text(f"{folder}/phys_port_name") or ""):
        return False
    return host.read_text(f"{folder}/dev_port") in (None, str(port - 1))
