"""Memory traffic by monitoring domain (`/sys/fs/resctrl/mon_data`, Documentation/filesystems/resctrl.rst): Intel MBM, AMD QoS, ARM MPAM."""

import re

from dynolog.sources.host_files import HostFiles, KernelFile
from dynolog.sources.topology import parse_cpu_list

_ROOT = "sys/fs/resctrl"
_CPUS = "sys/devices/system/cpu"
_DOMAIN = re.compile(r"mon_L3_(\d+)")
# Directories beside the control groups.
_NO_GROUPS = ("info", "mon_data", "mon_groups")


class MemoryTraffic:
    """Reads the bytes between every L3 cache and memory again and again.

    The kernel counts each control group by itself; the root group holds whatever is in no other one. `sockets` gives the socket of a
    domain (an L3 cache, by number) of which the kernel says it.
    """

    def __init__(self, host: HostFiles) -> None:
        self.sockets = _sockets_of_caches(host)
        self._host = host
        self._files: dict[tuple[str, int], KernelFile] = {}

    def read(self) -> dict[tuple[str, int], int]:
        """Bytes by control group ("" is the root) and domain.

        One that is `Unavailable` (its counter has just been given out) or gone is left out; {} where resctrl is not mounted or does not
        monitor.
        """
        values: dict[tuple[str, int], int] = {}
        for key, file in self._follow().items():
            try:
                values[key] = int(file.read())
            except (OSError, ValueError):
                continue
        return values

    def _follow(self) -> dict[tuple[str, int], KernelFile]:
        groups = [name for name in self._host.list(_ROOT) if name not in _NO_GROUPS]
        files: dict[tuple[str, int], KernelFile] = {}
        for group in ("", *groups):
            data = f"{_ROOT}/{group}/mon_data" if group else f"{_ROOT}/mon_data"
            for name in self._host.list(data):
                if match := _DOMAIN.fullmatch(name):
                    key = (group, int(match[1]))
                    files[key] = self._files.get(key) or self._host.file(f"{data}/{name}/mbm_total_bytes")
        self._files = files
        return files


def _sockets_of_caches(host: HostFiles) -> dict[int, int]:
    """The socket of each L3 cache by its number, through the first CPU of each."""
    sockets: dict[int, int] = {}
    try:
        online = parse_cpu_list(host.read_text(f"{_CPUS}/online") or "")
    except ValueError:
        return sockets
    seen: set[int] = set()
    for cpu in online:
        if cpu in seen:
            continue
        cache = host.read_text(f"{_CPUS}/cpu{cpu}/cache/index3/id")
        socket = host.read_text(f"{_CPUS}/cpu{cpu}/topology/physical_package_id")
        if cache is not None and cache.isdecimal() and socket is not None and socket.isdecimal():
            sockets[int(cache)] = int(socket)
        try:
            seen.update(parse_cpu_list(host.read_text(f"{_CPUS}/cpu{cpu}/cache/index3/shared_cpu_list") or ""))
        except ValueError:
            continue
    return sockets
