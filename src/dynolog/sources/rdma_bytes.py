"""Bytes that RDMA ports received and sent, and nothing else of them: two files a port, for readings many times a second.

`port_rcv_data` and `port_xmit_data` count in units of 4 bytes (Documentation/ABI/stable/sysfs-class-infiniband); drivers without them
(EFA) count bytes in `hw_counters`.
"""

from dynolog.sources.host_files import HostFiles, KernelFile
from dynolog.sources.rdma import port_name
from dynolog.sources.rdma_counters import LARGEST

_FOLDER = "sys/class/infiniband"
# Directory, the files of both directions, and the bytes that one of their units is.
_KINDS = (("counters", "port_rcv_data", "port_xmit_data", 4), ("hw_counters", "rx_bytes", "tx_bytes", 1))
# Where an old adapter's counter stops.
_STUCK = LARGEST["port_rcv_data"]

Traffic = tuple[int | None, int | None]


class _Port:
    def __init__(self, received: KernelFile, sent: KernelFile, unit_bytes: int) -> None:
        self.received = received
        self.sent = sent
        self.unit_bytes = unit_bytes

    def read(self) -> Traffic:
        return _bytes(self.received, self.unit_bytes), _bytes(self.sent, self.unit_bytes)


class RdmaBytesReader:
    """Reads the ports that were there when it was made. Never raises: what cannot be read is None."""

    def __init__(self, host: HostFiles) -> None:
        self._ports: dict[str, _Port] = {}
        for device in host.list(_FOLDER):
            for number in host.list(f"{_FOLDER}/{device}/ports"):
                if number.isdecimal() and (port := _find(host, f"{_FOLDER}/{device}/ports/{number}")):
                    self._ports[port_name(device, int(number))] = port

    def read(self) -> dict[str, Traffic]:
        """Bytes received and sent by port, since it came up."""
        return {name: port.read() for name, port in self._ports.items()}


def _find(host: HostFiles, folder: str) -> _Port | None:
    for kind, received, sent, unit_bytes in _KINDS:
        if {received, sent} <= set(host.list(f"{folder}/{kind}")):
            return _Port(host.file(f"{folder}/{kind}/{received}"), host.file(f"{folder}/{kind}/{sent}"), unit_bytes)
    return None


def _bytes(file: KernelFile, unit_bytes: int) -> int | None:
    try:
        text = file.read().strip()
    except OSError:
        return None
    # A counter that stopped at its end tells nothing any more.
    return int(text) * unit_bytes if text.isdigit() and len(text) <= 20 and int(text) != _STUCK else None
