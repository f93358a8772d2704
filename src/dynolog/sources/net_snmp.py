"""Counters of the network protocols (`/proc/net/snmp`, `/proc/net/netstat`, `/proc/net/snmp6`; proc_pid_net(5), RFC 1213)."""

from collections.abc import Iterable

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, KernelFile, unavailable

Counter = tuple[bytes, bytes]  # protocol and column: (b"Tcp", b"InSegs")
_LARGEST = (1 << 63) - 1


class ProtocolTable:
    """Picks some counters out of files that have a line of column names and a line of values for each protocol.

    Where each column stands is remembered, because a kernel prints the same names every time.
    """

    def __init__(self, wanted: Iterable[Counter]) -> None:
        self._wanted: dict[bytes, set[bytes]] = {}
        for protocol, column in wanted:
            self._wanted.setdefault(protocol, set()).add(column)
        self._positions: dict[bytes, tuple[int, list[tuple[int, Counter]]]] = {}

    def parse(self, data: bytes) -> dict[Counter, int]:
        """The wanted counters that are there; a line or number that does not parse is left out. Never raises."""
        found: dict[Counter, int] = {}
        header = protocol = b""
        for line in data.split(b"\n"):
            name = line[: line.find(b":")]
            if name not in self._wanted:
                continue
            if name != protocol:
                header, protocol = line, name
                continue
            protocol = b""
            columns, positions = self._positions_of(header, name)
            values = line.split()
            if len(values) == columns:
                _pick(found, values, positions)
        return found

    def _positions_of(self, header: bytes, protocol: bytes) -> tuple[int, list[tuple[int, Counter]]]:
        known = self._positions.get(header)
        if known is None:
            if len(self._positions) > 16:
                self._positions.clear()
            names = header.split()
            known = self._positions[header] = (
                len(names),
                [(at, (protocol, name)) for at, name in enumerate(names) if name in self._wanted[protocol]],
            )
        return known


def _pick(found: dict[Counter, int], values: list[bytes], positions: list[tuple[int, Counter]]) -> None:
    for at, counter in positions:
        try:
            value = int(values[at])
        except ValueError:
            continue
        # A gauge that is summed over CPUs while they change it can be below 0 for a moment, printed signed or unsigned.
        if 0 <= value <= _LARGEST:
            found[counter] = value


def parse_snmp6(data: bytes, wanted: Iterable[bytes]) -> dict[bytes, int]:
    """Counters of IPv6, one a line (`Udp6InDatagrams 12`); what is not there or does not parse is left out. Never raises."""
    found: dict[bytes, int] = {}
    text = b"\n" + data
    for name in wanted:
        # The kernel fills names up to 32 columns, so a space follows each of those wanted here.
        start = text.find(b"\n" + name + b" ")
        if start < 0:
            continue
        start += len(name) + 2
        try:
            value = int(text[start : start + 64].partition(b"\n")[0])
        except ValueError:
            continue
        if 0 <= value <= _LARGEST:
            found[name] = value
    return found


class ProtocolCounters(msgspec.Struct, frozen=True):
    """One reading: what was found, and the counters of UDP over IPv6 ({} where IPv6 is off)."""

    counters: dict[Counter, int]
    udp6: dict[bytes, int]


class ProtocolReader:
    """Reads the wanted counters again and again. Raises SourceUnavailable when neither main file can be read."""

    def __init__(self, host: HostFiles, wanted: Iterable[Counter], udp6: Iterable[bytes]) -> None:
        self._files = (host.net_file("snmp"), host.net_file("netstat"))
        self._file6 = host.net_file("snmp6")
        self._table = ProtocolTable(wanted)
        self._udp6 = tuple(udp6)

    def read(self) -> ProtocolCounters:
        """One reading."""
        counters: dict[Counter, int] = {}
        failure: SourceUnavailable | None = None
        failures = 0
        for file in self._files:
            try:
                counters.update(self._table.parse(file.read()))
            except OSError as error:
                failures += 1
                failure = failure or unavailable("/proc/net/snmp", error)
        if failure is not None and failures == len(self._files):
            raise failure
        return ProtocolCounters(counters, self._read6(self._file6))

    def _read6(self, file: KernelFile) -> dict[bytes, int]:
        try:
            return parse_snmp6(file.read(), self._udp6)
        except OSError:
            return {}
