"""Socket counts on hand-made files."""

import os

import pytest

from dynolog.collectors.sockets import METRICS, SocketsCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree

PAGE = os.sysconf("SC_PAGESIZE")
SOCKSTAT = """sockets: used 900
TCP: inuse 400 orphan 1 tw 30 alloc 420 mem 100
UDP: inuse 20 mem 5
UDPLITE: inuse 77
RAW: inuse 2
FRAG: inuse 66 memory 4096
"""


def test_every_level(host_tree: HostTree) -> None:
    host_tree.write("proc/net/sockstat", SOCKSTAT)
    host_tree.write("proc/net/sockstat6", "TCP6: inuse 12\nUDP6: inuse 4\nUDPLITE6: inuse 55\nRAW6: inuse 3\n")
    collector = SocketsCollector(host_tree.context())
    values = collector.compute({}, collector.read(), 1.0)
    assert values == {
        "sockets_used": 900,
        "tcp_sockets_in_use": 400,
        "tcp6_sockets_in_use": 12,
        "tcp_sockets_orphaned": 1,
        "tcp_sockets_time_wait": 30,
        "tcp_sockets_allocated": 420,
        "tcp_memory_bytes": 100 * PAGE,
        "udp_sockets_in_use": 20,
        "udp6_sockets_in_use": 4,
        "udp_memory_bytes": 5 * PAGE,
        "raw_sockets_in_use": 2,
        "raw6_sockets_in_use": 3,
        "ip_fragment_memory_bytes": 4096,
    }
    assert set(values) == {metric.name for metric in METRICS}


def test_a_malformed_line_costs_only_itself_and_ipv6_may_be_off(host_tree: HostTree) -> None:
    host_tree.write("proc/net/sockstat", SOCKSTAT.replace("tw 30", "tw x").replace("UDP:", "UDP"))
    collector = SocketsCollector(host_tree.context())
    values = collector.compute({}, collector.read(), 1.0)
    assert values["tcp_sockets_in_use"] == 400
    for missing in ("tcp_sockets_time_wait", "udp_sockets_in_use", "tcp6_sockets_in_use"):
        assert missing not in values


def test_without_the_file_the_source_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="not there"):
        SocketsCollector(host_tree.context()).read()
