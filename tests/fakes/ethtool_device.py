"""The ioctl of ethtool over statistics that a test writes."""

import array
import errno
import struct
from collections.abc import Mapping

GSTRINGS, GSTATS, GSSET_INFO = 0x1B, 0x1D, 0x37
_STATS = 1


class FakeEthtool:
    """Network devices and their statistics in the driver's order; None for a device that keeps none. `calls` are the commands."""

    def __init__(self, devices: Mapping[str, Mapping[str, int] | None]) -> None:
        self.devices = dict(devices)
        self.calls: list[int] = []
        # Statistics that a driver has from the next command of this kind on.
        self.changes: dict[int, tuple[str, Mapping[str, int]]] = {}

    def call(self, interface: str, buffer: "array.array[int]") -> None:
        (command,) = struct.unpack_from("=I", buffer)
        self.calls.append(command)
        if command in self.changes:
            name, changed = self.changes.pop(command)
            self.devices[name] = changed
        if interface not in self.devices:
            raise OSError(errno.ENODEV, "No such device")
        statistics = self.devices[interface]
        if statistics is None:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        match command:
            case _ if command == GSSET_INFO:
                (mask,) = struct.unpack_from("=Q", buffer, 8)
                assert mask == 1 << _STATS
                struct.pack_into("=QI", buffer, 8, mask if statistics else 0, len(statistics))
            case _ if command == GSTRINGS:
                struct.pack_into("=I", buffer, 8, len(statistics))
                for index, name in enumerate(statistics):
                    struct.pack_into("32s", buffer, 12 + 32 * index, name.encode())
            case _ if command == GSTATS:
                struct.pack_into("=I", buffer, 4, len(statistics))
                for index, number in enumerate(statistics.values()):
                    struct.pack_into("=Q", buffer, 8 + 8 * index, number)
            case _:
                raise OSError(errno.EOPNOTSUPP, "Operation not supported")
