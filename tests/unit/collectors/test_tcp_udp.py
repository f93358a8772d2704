"""Protocol counters on hand-made files."""

import pytest

from dynolog.collectors.tcp_udp import _COUNTERS, METRICS, TcpUdpCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree, numbers

# Everything that is measured, and what a kernel has between.
COLUMNS = [
    ("Ip", "Forwarding"),
    *[(protocol, column) for protocol, column, *_ in _COUNTERS],
    ("Tcp", "CurrEstab"),
    ("Ip", "X"),
]
SNMP = ("Ip", "Tcp", "Udp")


def table(values: dict[tuple[str, str], int], protocols: tuple[str, ...]) -> str:
    text = ""
    for protocol in protocols:
        columns = [column for column in COLUMNS if column[0] == protocol]
        text += f"{protocol}: " + " ".join(name for _, name in columns) + "\n"
        text += f"{protocol}: " + " ".join(str(values.get(column, 1000)) for column in columns) + "\n"
    return text


def measure(host_tree: HostTree, *steps: dict[tuple[str, str], int]) -> dict[str, float]:
    collector = TcpUdpCollector(host_tree.context())
    snapshots = []
    for step in steps:
        host_tree.write("proc/net/snmp", table(step, SNMP))
        host_tree.write("proc/net/netstat", table(step, ("TcpExt", "IpExt")))
        snapshots.append(collector.read())
    return numbers(collector.compute(snapshots[-2], snapshots[-1], 1.0))


@pytest.mark.parametrize(("protocol", "column", "name"), [counter[:3] for counter in _COUNTERS])
def test_each_counter_comes_from_its_own_column(host_tree: HostTree, protocol: str, column: str, name: str) -> None:
    """It grows by 7 where that column does, and by 0 with all others."""
    values = measure(host_tree, {}, {(protocol, column): 1007})
    assert values[name] == 7
    assert sum(value for key, value in values.items() if key != "tcp_established") == 7


def test_every_declared_metric_has_a_value(host_tree: HostTree) -> None:
    assert set(measure(host_tree, {}, {})) == {metric.name for metric in METRICS}


def test_connections_are_a_level(host_tree: HostTree) -> None:
    assert measure(host_tree, {}, {("Tcp", "CurrEstab"): 12})["tcp_established"] == 12


@pytest.mark.parametrize(("before", "after"), [(5000, 0), (5000, 12), (4294967290, 3)])
def test_a_reset_or_wrap_is_missing_and_costs_only_itself(host_tree: HostTree, before: int, after: int) -> None:
    values = measure(host_tree, {("Tcp", "InSegs"): before}, {("Tcp", "InSegs"): after})
    assert "tcp_in_segs" not in values
    assert values["tcp_out_segs"] == 0


def test_a_column_that_this_kernel_lacks_is_missing(host_tree: HostTree) -> None:
    collector = TcpUdpCollector(host_tree.context())
    host_tree.write("proc/net/snmp", "Tcp: InSegs OutSegs\nTcp: 1 2\n")
    before = collector.read()
    host_tree.write("proc/net/snmp", "Tcp: InSegs OutSegs\nTcp: 4 x\n")
    assert collector.compute(before, collector.read(), 1.0) == {"tcp_in_segs": 3}


def test_udp_counts_both_families(host_tree: HostTree) -> None:
    """IPv4 grew by 5, IPv6 by 3: 8 datagrams; a family that is off adds nothing."""
    host_tree.write("proc/net/snmp6", "Udp6InDatagrams                 \t100\n")
    collector = TcpUdpCollector(host_tree.context())
    host_tree.write("proc/net/snmp", "Udp: InDatagrams NoPorts\nUdp: 10 10\n")
    before = collector.read()
    host_tree.write("proc/net/snmp", "Udp: InDatagrams NoPorts\nUdp: 15 12\n")
    host_tree.write("proc/net/snmp6", "Udp6InDatagrams                 \t103\n")
    assert collector.compute(before, collector.read(), 1.0) == {"udp_in_datagrams": 8, "udp_no_ports": 2}


@pytest.mark.parametrize("after", ["Udp6InDatagrams 99\n", "Udp6InDatagrams x\n", ""])
def test_udp_with_one_family_unknown_is_unknown(host_tree: HostTree, after: str) -> None:
    host_tree.write("proc/net/snmp6", "Udp6InDatagrams 100\n")
    collector = TcpUdpCollector(host_tree.context())
    host_tree.write("proc/net/snmp", "Udp: InDatagrams\nUdp: 10\n")
    before = collector.read()
    host_tree.write("proc/net/snmp", "Udp: InDatagrams\nUdp: 15\n")
    host_tree.write("proc/net/snmp6", after)
    assert collector.compute(before, collector.read(), 1.0) == {}


def test_without_the_files_the_source_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="not there"):
        TcpUdpCollector(host_tree.context()).read()
