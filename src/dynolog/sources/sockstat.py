"""Sockets in use and their memory (`/proc/net/sockstat`, `/proc/net/sockstat6`; proc_pid_net(5))."""

from dynolog.sources.host_files import HostFiles, unavailable

SocketCount = tuple[bytes, bytes]  # protocol and field: (b"TCP", b"inuse")


def parse(data: bytes) -> dict[SocketCount, int]:
    """All counts: `TCP: inuse 3 orphan 0` → {(b"TCP", b"inuse"): 3, ...}; what does not parse is left out. Never raises."""
    counts: dict[SocketCount, int] = {}
    for line in data.split(b"\n"):
        protocol, colon, rest = line.partition(b":")
        fields = rest.split()
        if not colon:
            continue
        for name, text in zip(fields[::2], fields[1::2], strict=False):
            try:
                value = int(text)
            except ValueError:
                continue
            # Memory is an estimate summed over CPUs and may be below 0 for a moment.
            if value >= 0:
                counts[protocol, name] = value
    return counts


class SockstatReader:
    """Reads both files again and again; IPv6 may be off. Raises SourceUnavailable when the first cannot be read."""

    def __init__(self, host: HostFiles) -> None:
        self._file = host.net_file("sockstat")
        self._file6 = host.net_file("sockstat6")

    def read(self) -> dict[SocketCount, int]:
        """One reading."""
        try:
            counts = parse(self._file.read())
        except OSError as error:
            raise unavailable("/proc/net/sockstat", error) from error
        try:
            counts.update(parse(self._file6.read()))
        except OSError:
            return counts
        return counts
