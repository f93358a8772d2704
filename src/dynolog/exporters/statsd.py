"""StatsD and DogStatsD: lines in datagrams, over UDP or a unix socket (`--use_statsd`). Why no library: docs/architecture.md.

Nothing comes back on this wire and its values have no time of their own: what cannot be sent now is dropped and counted.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag
from dynolog.model.record import Record

if TYPE_CHECKING:
    from dynolog.exporters.statsd_lines import StatsdLines

FLAGS = (
    Flag(
        name="use_statsd",
        default=False,
        help="send records to a StatsD server; what it cannot take at once is dropped",
        section="exporters",
    ),
    Flag(
        name="statsd_address",
        default="127.0.0.1:8125",
        help="HOST:PORT for UDP, or unix:///PATH for a datagram socket",
        section="exporters",
    ),
    Flag(
        name="statsd_dialect",
        default="statsd",
        choices=("statsd", "dogstatsd"),
        help="statsd: PREFIX.HOST.METRIC.DEVICE; dogstatsd: PREFIX.METRIC with host, device and labels as tags",
        section="exporters",
    ),
    Flag(name="statsd_prefix", default="dynolog", help="what the names begin with", section="exporters"),
    Flag(
        name="statsd_max_bytes",
        default=1432,
        minimum=64,
        maximum=65000,
        help="most bytes of a datagram: 1432 fit everywhere, 8932 with jumbo frames, 8192 for a unix socket",
        section="exporters",
    ),
)
_TIMEOUT_S = 1.0
# A name may mean another address by now; on UDP nothing else would tell.
_CONNECTION_S = 60.0
_UNIX = "unix://"


def datagrams(lines: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Lines joined by newlines into datagrams of at most `most_bytes`; a longer line travels alone."""
    packed: list[bytes] = []
    length = -1
    for line in lines:
        if packed and length + 1 + len(line) > most_bytes:
            yield b"\n".join(packed)
            packed, length = [], -1
        packed.append(line)
        length += 1 + len(line)
    if packed:
        yield b"\n".join(packed)


class StatsdExporter:
    """Sends datagrams on a connected socket, which is made anew every minute and after an error."""

    def __init__(
        self, destination: str, connect: Callable[[float], socket.socket], lines: "StatsdLines", most_bytes: int
    ) -> None:
        self.destination = destination
        self._connect = connect
        self._lines = lines
        self._most_bytes = most_bytes
        self._socket: socket.socket | None = None
        self._made_at = 0.0

    def export(self, records: Sequence[Record]) -> None:
        """Raises OSError when the destination is not there or does not take them within a second."""
        now = time.monotonic()
        if self._socket is not None and now - self._made_at > _CONNECTION_S:
            self.close()
        try:
            if self._socket is None:
                self._socket = self._connect(_TIMEOUT_S)
                self._made_at = now
            for datagram in datagrams(
                (line for record in records for line in self._lines.lines(record)), self._most_bytes
            ):
                self._socket.send(datagram)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def udp(host: str, port: int) -> Callable[[float], socket.socket]:
    """Connects to the first address that the name has."""

    def connect(timeout_s: float) -> socket.socket:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(timeout_s)
            made.connect(address)
        except OSError:
            made.close()
            raise
        return made

    return connect


def connector(address: str) -> Callable[[float], socket.socket]:
    """What connects to a value of --statsd_address. Raises FlagError."""
    if address.startswith(_UNIX):
        path = address[len(_UNIX) :]
        if not path.startswith("/"):
            raise FlagError(f"--statsd_address={address}: the path must be absolute: type {_UNIX}/PATH")
        from dynolog.exporters.delivery.stream_transport import unix_datagram  # noqa: PLC0415 - only where it is used

        return unix_datagram(path)
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535 or "//" in host:
        raise FlagError(f"--statsd_address={address}: must be HOST:PORT, [IPV6]:PORT or {_UNIX}/PATH")
    return udp(host, int(port))


def make(context: ExporterContext) -> StatsdExporter:
    """From the flags. Raises FlagError."""
    from dynolog.exporters.statsd_lines import StatsdLines  # noqa: PLC0415 - only a daemon with this exporter should pay for it

    settings = context.settings
    address = settings.text("statsd_address")
    tags = settings.text("statsd_dialect") == "dogstatsd"
    lines = StatsdLines(context.catalogue, context.hostname, settings.text("statsd_prefix"), tags=tags)
    return StatsdExporter(address, connector(address), lines, settings.integer("statsd_max_bytes"))


SPEC = ExporterSpec(name="statsd", summary="StatsD or DogStatsD", flags=FLAGS, factory=make)
