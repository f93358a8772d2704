"""Sockets in use by protocol, and the memory they hold."""

import os

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.sockstat import SocketCount, SockstatReader

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
# protocol, field, name, unit, factor, description
_COUNTS = (
    ("sockets", "used", "sockets_used", "{socket}", 1, "Sockets of all protocols in use"),
    ("TCP", "inuse", "tcp_sockets_in_use", "{socket}", 1, "TCP sockets over IPv4 in use, listening ones included"),
    ("TCP6", "inuse", "tcp6_sockets_in_use", "{socket}", 1, "TCP sockets over IPv6 in use, listening ones included"),
    ("TCP", "orphan", "tcp_sockets_orphaned", "{socket}", 1, "TCP sockets that no process holds any more"),
    ("TCP", "tw", "tcp_sockets_time_wait", "{socket}", 1, "TCP connections that are over and wait for late segments"),
    ("TCP", "alloc", "tcp_sockets_allocated", "{socket}", 1, "TCP sockets that exist, in use or not"),
    ("TCP", "mem", "tcp_memory_bytes", "By", _PAGE_BYTES, "Memory of the buffers of TCP sockets"),
    ("UDP", "inuse", "udp_sockets_in_use", "{socket}", 1, "UDP sockets over IPv4 in use"),
    ("UDP6", "inuse", "udp6_sockets_in_use", "{socket}", 1, "UDP sockets over IPv6 in use"),
    ("UDP", "mem", "udp_memory_bytes", "By", _PAGE_BYTES, "Memory of the buffers of UDP sockets"),
    ("RAW", "inuse", "raw_sockets_in_use", "{socket}", 1, "Raw sockets over IPv4 in use"),
    ("RAW6", "inuse", "raw6_sockets_in_use", "{socket}", 1, "Raw sockets over IPv6 in use"),
    ("FRAG", "memory", "ip_fragment_memory_bytes", "By", 1, "Memory of IPv4 fragments that wait for the rest"),
)
METRICS = tuple(
    Metric(name=name, kind=Kind.GAUGE, unit=unit, description=description)
    for _, _, name, unit, _, description in _COUNTS
)
_KEYS: tuple[tuple[SocketCount, str, int], ...] = tuple(
    ((protocol.encode(), field.encode()), name, factor) for protocol, field, name, _, factor, _ in _COUNTS
)


class SocketsCollector:
    """Levels of the later reading of sockstat."""

    def __init__(self, context: Context) -> None:
        self._reader = SockstatReader(context.host)

    def read(self) -> dict[SocketCount, int]:
        """One reading."""
        return self._reader.read()

    def compute(
        self,
        before: dict[SocketCount, int],  # noqa: ARG002 - levels
        after: dict[SocketCount, int],
        elapsed_s: float,  # noqa: ARG002 - levels
    ) -> Values:
        """The counts that are there; memory as bytes."""
        return {name: after[count] * factor for count, name, factor in _KEYS if count in after}


SPEC = CollectorSpec(
    name="sockets",
    summary="sockets in use and their memory",
    needs="/proc/net/sockstat, /proc/net/sockstat6",
    factory=SocketsCollector,
    metrics=METRICS,
)
