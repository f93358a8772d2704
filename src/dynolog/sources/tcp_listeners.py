"""Who listens on a TCP port, by `/proc/net/tcp` and `/proc/net/tcp6` (proc_pid_net(5))."""

from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_files import open_links

_LISTEN = b"0A"


def parse_listeners(table: bytes, port: int) -> frozenset[int]:
    """Inodes of the sockets that listen on `port` in the text of a table; lines that do not parse are passed over."""
    found = set()
    for line in table.split(b"\n")[1:]:
        columns = line.split()
        if len(columns) < 10 or columns[3] != _LISTEN or not columns[9].isdigit():
            continue
        try:
            local = int(columns[1].rpartition(b":")[2], 16)
        except ValueError:
            continue
        if local == port:
            found.add(int(columns[9]))
    return frozenset(found)


def listener_inodes(host: HostFiles, port: int) -> frozenset[int]:
    """Of both families; the file that is not there (IPv6 off) has none."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            found |= parse_listeners(host.net_file(name).read(), port)
        except OSError:  # no such family here
            continue
    return frozenset(found)


def holders(host: HostFiles, inodes: frozenset[int]) -> list[int]:
    """Pids that have one of these sockets open, as far as their descriptors are ours to see. Looks through every process."""
    links = {f"socket:[{inode}]" for inode in inodes}
    pids = sorted(int(name) for name in host.list("proc") if name.isdigit()) if links else []
    return [pid for pid in pids if not links.isdisjoint(open_links(host.path(f"proc/{pid}/fd")))]
