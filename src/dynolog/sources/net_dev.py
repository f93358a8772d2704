"""Traffic of every network interface since it came up (`/proc/net/dev`, proc_pid_net(5))."""

from dynolog.sources.host_files import HostFiles, unavailable

COLUMNS = ("rx_bytes", "rx_packets", "rx_errors", "rx_drops", "tx_bytes", "tx_packets", "tx_errors", "tx_drops")
NicCounters = tuple[int, ...]

# IFNAMSIZ is 16 with the NUL; a longer "name" is a torn or foreign line.
_LONGEST_NAME = 15


def parse(data: bytes, prefixes: tuple[bytes, ...] = ()) -> dict[str, NicCounters]:
    """Counters in the order of COLUMNS by interface; only names that start with one of `prefixes` when there are any.

    A line that does not parse is left out. Never raises.
    """
    devices: dict[str, NicCounters] = {}
    for line in data.split(b"\n"):
        # The name may hold a colon (an alias), and a number may follow the colon at once: the last colon is the fixed one.
        name, colon, rest = line.rpartition(b":")
        name = name.strip()
        if not colon or not 0 < len(name) <= _LONGEST_NAME or (prefixes and not name.startswith(prefixes)):
            continue
        columns = rest.split()
        if len(columns) < 16 or b"-" in rest or len(name.split()) != 1:
            continue
        try:
            counters = tuple(map(int, columns[0:4] + columns[8:12]))
        except ValueError:
            continue
        devices[name.decode("utf-8", "backslashreplace")] = counters
    return devices


class NetDevReader:
    """Reads `/proc/net/dev` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles) -> None:
        self._file = host.net_file("dev")

    def read(self, prefixes: tuple[str, ...] = ()) -> dict[str, NicCounters]:
        """One reading of the interfaces whose names start with one of `prefixes`; () means all."""
        try:
            data = self._file.read()
        except OSError as error:
            raise unavailable("/proc/net/dev", error) from error
        return parse(data, tuple(prefix.encode() for prefix in prefixes))
