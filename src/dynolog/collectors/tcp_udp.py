"""TCP, UDP and IP: segments, retransmissions, resets, listen queues, errors."""

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta
from dynolog.model.metric import Kind, Metric
from dynolog.sources.net_snmp import Counter, ProtocolCounters, ProtocolReader

# protocol, column, name, unit, description
_COUNTERS = (
    ("Tcp", "ActiveOpens", "tcp_active_opens", "{connection}", "TCP connections opened from this host"),
    ("Tcp", "PassiveOpens", "tcp_passive_opens", "{connection}", "TCP connections opened to this host"),
    ("Tcp", "AttemptFails", "tcp_attempt_fails", "{connection}", "TCP connections that failed before they were set up"),
    ("Tcp", "EstabResets", "tcp_estab_resets", "{connection}", "TCP connections reset after they were set up"),
    ("Tcp", "InSegs", "tcp_in_segs", "{segment}", "TCP segments received, bad ones included"),
    ("Tcp", "OutSegs", "tcp_out_segs", "{segment}", "TCP segments sent, without retransmissions"),
    ("Tcp", "RetransSegs", "tcp_retrans_segs", "{segment}", "TCP segments sent again"),
    ("Tcp", "InErrs", "tcp_in_errors", "{error}", "TCP segments received with an error"),
    ("Tcp", "InCsumErrors", "tcp_checksum_errors", "{error}", "TCP segments received with a wrong checksum"),
    ("Tcp", "OutRsts", "tcp_out_resets", "{segment}", "TCP resets sent"),
    ("TcpExt", "ListenOverflows", "tcp_listen_overflows", "{connection}", "Connections lost to a full accept queue"),
    (
        "TcpExt",
        "ListenDrops",
        "tcp_listen_drops",
        "{connection}",
        "Connections dropped while listening, for any reason",
    ),
    ("TcpExt", "TCPReqQFullDrop", "tcp_syn_queue_drops", "{connection}", "Connections dropped for a full SYN queue"),
    ("TcpExt", "SyncookiesSent", "tcp_syncookies_sent", "{packet}", "SYN cookies sent, because a SYN queue was full"),
    ("TcpExt", "TCPTimeouts", "tcp_timeouts", "{timeout}", "TCP retransmission timers that ran out"),
    ("TcpExt", "TCPSynRetrans", "tcp_syn_retrans", "{segment}", "SYN and SYN/ACK segments sent again"),
    ("TcpExt", "TCPFastRetrans", "tcp_fast_retrans", "{segment}", "TCP segments sent again before their timer ran out"),
    ("TcpExt", "TCPLostRetransmit", "tcp_lost_retrans", "{segment}", "TCP segments sent again that were lost again"),
    ("TcpExt", "TCPSpuriousRTOs", "tcp_spurious_timeouts", "{timeout}", "TCP timeouts that proved needless"),
    ("TcpExt", "TCPBacklogDrop", "tcp_backlog_drops", "{segment}", "TCP segments dropped, socket's backlog full"),
    ("TcpExt", "TCPRcvQDrop", "tcp_receive_queue_drops", "{segment}", "TCP segments dropped, receive queue full"),
    ("TcpExt", "TCPOFOQueue", "tcp_out_of_order_segs", "{segment}", "TCP segments received out of order and kept"),
    ("TcpExt", "TCPToZeroWindowAdv", "tcp_zero_window_advs", "{event}", "Times a TCP receiver told its sender to stop"),
    ("TcpExt", "TCPAbortOnTimeout", "tcp_timeout_aborts", "{connection}", "TCP connections given up after timeouts"),
    ("TcpExt", "TCPAbortOnMemory", "tcp_memory_aborts", "{connection}", "TCP connections ended for want of memory"),
    ("TcpExt", "TCPMemoryPressures", "tcp_memory_pressures", "{event}", "Times TCP came under memory pressure"),
    ("TcpExt", "PruneCalled", "tcp_prunes", "{event}", "Times a TCP receive buffer was pruned for want of room"),
    ("Udp", "InDatagrams", "udp_in_datagrams", "{datagram}", "UDP datagrams delivered, IPv4 and IPv6"),
    ("Udp", "OutDatagrams", "udp_out_datagrams", "{datagram}", "UDP datagrams sent, IPv4 and IPv6"),
    ("Udp", "InErrors", "udp_in_errors", "{error}", "UDP datagrams that could not be delivered, IPv4 and IPv6"),
    ("Udp", "NoPorts", "udp_no_ports", "{datagram}", "UDP datagrams for a port nobody listens on, IPv4 and IPv6"),
    (
        "Udp",
        "RcvbufErrors",
        "udp_rcvbuf_errors",
        "{error}",
        "UDP datagrams lost to a full receive buffer, IPv4 and IPv6",
    ),
    ("Udp", "SndbufErrors", "udp_sndbuf_errors", "{error}", "UDP datagrams lost to a full send buffer, IPv4 and IPv6"),
    ("Udp", "InCsumErrors", "udp_checksum_errors", "{error}", "UDP datagrams with a wrong checksum, IPv4 and IPv6"),
    ("Ip", "InDiscards", "ip_in_discards", "{packet}", "IPv4 packets received without a fault and dropped"),
    ("Ip", "OutDiscards", "ip_out_discards", "{packet}", "IPv4 packets to be sent without a fault and dropped"),
    ("Ip", "OutNoRoutes", "ip_out_no_routes", "{packet}", "IPv4 packets dropped for want of a route"),
    ("Ip", "ReasmFails", "ip_reassembly_fails", "{event}", "IPv4 reassemblies that failed: a fragment was lost"),
    ("IpExt", "InCEPkts", "ip_in_ce_packets", "{packet}", "IPv4 packets that a switch marked as congested (ECN)"),
)
_ESTABLISHED: Counter = (b"Tcp", b"CurrEstab")
METRICS = (
    *(
        Metric(name=name, kind=Kind.DELTA, unit=unit, description=description)
        for _, _, name, unit, description in _COUNTERS
    ),
    Metric(
        name="tcp_established",
        kind=Kind.GAUGE,
        unit="{connection}",
        description="TCP connections that are set up now (established or waiting for the peer's close)",
    ),
)
_KEYS: dict[Counter, str] = {(protocol.encode(), column.encode()): name for protocol, column, name, _, _ in _COUNTERS}
_UDP6 = {b"Udp6" + column: name for (protocol, column), name in _KEYS.items() if protocol == b"Udp"}


class TcpUdpCollector:
    """Deltas of two readings of the protocol counters of the host's network namespace."""

    def __init__(self, context: Context) -> None:
        self._reader = ProtocolReader(context.host, (*_KEYS, _ESTABLISHED), _UDP6)

    def read(self) -> ProtocolCounters:
        """One reading."""
        return self._reader.read()

    def compute(self, before: ProtocolCounters, after: ProtocolCounters, elapsed_s: float) -> Values:  # noqa: ARG002 - counts
        """Deltas, UDP of both families together, and the number of connections."""
        values: Values = {}
        for counter, new in after.counters.items():
            name = _KEYS.get(counter)
            old = before.counters.get(counter)
            if name is not None and old is not None and new >= old:
                values[name] = new - old
        for column, name in _UDP6.items():
            # One family unknown makes the sum unknown; a family that is not there adds nothing.
            if column in after.udp6 or column in before.udp6:
                delta = counter_delta(before.udp6.get(column), after.udp6.get(column))
                delta4 = values.pop(name, None)
                if delta is not None and isinstance(delta4, int):
                    values[name] = delta4 + delta
        established = after.counters.get(_ESTABLISHED)
        if established is not None:
            values["tcp_established"] = established
        return values


SPEC = CollectorSpec(
    name="tcp_udp",
    summary="TCP, UDP and IP counters",
    needs="/proc/net/snmp, /proc/net/netstat, /proc/net/snmp6",
    factory=TcpUdpCollector,
    metrics=METRICS,
)
