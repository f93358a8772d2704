"""Statistics that the driver of a network device keeps (`ethtool -S`), by the SIOCETHTOOL ioctl (linux/ethtool.h, netdevice(7)).

The device is looked for in the network namespace of this process, whatever the root directory of its files is.
"""

import array
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from typing import Protocol

import msgspec

_SIOCETHTOOL = 0x8946
_GSTRINGS, _GSTATS, _GSSET_INFO = 0x1B, 0x1D, 0x37
_SS_STATS = 1
_NAME_BYTES = 32  # ETH_GSTRING_LEN
_LONGEST_INTERFACE = 15  # IFNAMSIZ without the zero byte
# The kernel writes as many entries as there are by then, however many the caller has room for. A driver that gets more queues
# between two calls adds some dozens for each.
_SPARE = 8192
_MOST = 65536


class EthtoolDevice(Protocol):
    """The ioctl."""

    def call(self, interface: str, buffer: "array.array[int]") -> None:
        """Carry out the command that `buffer` (bytes) begins with, answering in it. Raises OSError as ioctl(2) does."""
        ...


class EthtoolIoctl:
    """The real one, on a socket that stays open."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def call(self, interface: str, buffer: "array.array[int]") -> None:
        """Raises OSError: ENODEV for no such device, EOPNOTSUPP for one without statistics."""
        name = interface.encode()
        if not 0 < len(name) <= _LONGEST_INTERFACE or b"\0" in name:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), interface)
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        # struct ifreq: the name, then a union of 24 bytes, of which only the pointer is used.
        request = struct.pack("16sP16x", name, buffer.buffer_info()[0])
        fcntl.ioctl(self._socket.fileno(), _SIOCETHTOOL, request)

    def __del__(self) -> None:
        if self._socket is not None:
            self._socket.close()


class _Table(msgspec.Struct, frozen=True):
    """Statistics of a device: how many, and where those that are wanted stand (name, index)."""

    count: int
    wanted: tuple[tuple[str, int], ...]


class EthtoolReader:
    """Reads the wanted statistics of devices again and again. `name_of` gives the name under which one is wanted, "" for none."""

    def __init__(self, name_of: Callable[[str], str], device: EthtoolDevice | None = None) -> None:
        self._name_of = name_of
        self._device = device or EthtoolIoctl()
        self._tables: dict[str, _Table] = {}
        self._buffer = array.array("B")

    def read(self, interface: str) -> dict[str, int]:
        """The numbers by name, {} for a device that keeps none. Raises OSError: the device has gone or refuses."""
        try:
            count = self._count(interface)
        except OSError as error:
            self._tables.pop(interface, None)
            if error.errno == errno.EOPNOTSUPP:
                return {}
            raise
        if not count:
            return {}
        table = self._tables.get(interface)
        if table is None or table.count != count:
            table = self._tables[interface] = self._table(interface, count)
        if not table.wanted:
            return {}
        numbers = self._numbers(interface, table)
        if numbers is None:
            # They became more or fewer since they were counted: the names of the indices are others now.
            table = self._tables[interface] = self._table(interface, self._count(interface))
            numbers = self._numbers(interface, table) or {}
        return numbers

    def keep_only(self, interfaces: set[str]) -> None:
        """Forget the tables of others."""
        for interface in self._tables.keys() - interfaces:
            del self._tables[interface]

    def _count(self, interface: str) -> int:
        buffer = array.array("B", struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _SS_STATS, 0))
        self._device.call(interface, buffer)
        _, _, mask, count = struct.unpack_from("=IIQI", buffer)
        return min(int(count), _MOST) if mask else 0

    def _table(self, interface: str, count: int) -> _Table:
        buffer = array.array("B", bytes(12 + _NAME_BYTES * (count + _SPARE)))
        struct.pack_into("=III", buffer, 0, _GSTRINGS, _SS_STATS, count)
        self._device.call(interface, buffer)
        (found,) = struct.unpack_from("=I", buffer, 8)
        wanted: dict[str, int] = {}
        for index, statistic in enumerate(parse_names(buffer[12:].tobytes(), min(found, count + _SPARE))):
            if name := self._name_of(statistic):
                wanted.setdefault(name, index)
        return _Table(found, tuple(wanted.items()))

    def _numbers(self, interface: str, table: _Table) -> dict[str, int] | None:
        if len(self._buffer) < 8 + 8 * (table.count + _SPARE):
            self._buffer = array.array("B", bytes(8 + 8 * (table.count + 2 * _SPARE)))
        buffer = self._buffer
        struct.pack_into("=II", buffer, 0, _GSTATS, table.count)
        self._device.call(interface, buffer)
        (found,) = struct.unpack_from("=I", buffer, 4)
        if found != table.count:
            return None
        return {name: struct.unpack_from("=Q", buffer, 8 + 8 * index)[0] for name, index in table.wanted}


def parse_names(data: bytes, count: int) -> list[str]:
    """`count` names of 32 bytes each, which end at a zero byte; fewer when there are fewer. Never raises."""
    return [
        data[start : start + _NAME_BYTES].partition(b"\0")[0].decode("latin-1").strip()
        for start in range(0, min(count * _NAME_BYTES, len(data)), _NAME_BYTES)
    ]
