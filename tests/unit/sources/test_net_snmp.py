"""Parsing of /proc/net/snmp, netstat and snmp6."""

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.net_snmp import ProtocolTable, parse_snmp6

WANTED = ((b"Tcp", b"InSegs"), (b"Tcp", b"CurrEstab"), (b"TcpExt", b"TW"))


def test_wanted_columns_by_name_wherever_they_stand() -> None:
    table = ProtocolTable(WANTED)
    data = b"Ip: A B\nIp: 1 2\nTcp: MaxConn InSegs CurrEstab\nTcp: -1 7 2\nTcpExt: TW\nTcpExt: 9\n"
    expected = {(b"Tcp", b"InSegs"): 7, (b"Tcp", b"CurrEstab"): 2, (b"TcpExt", b"TW"): 9}
    assert table.parse(data) == expected
    assert table.parse(b"Tcp: CurrEstab InSegs\nTcp: 4 5\n") == {(b"Tcp", b"InSegs"): 5, (b"Tcp", b"CurrEstab"): 4}
    assert table.parse(data) == expected


def test_a_line_of_values_that_does_not_fit_its_names_is_left_out() -> None:
    table = ProtocolTable(WANTED)
    assert table.parse(b"Tcp: InSegs CurrEstab\nTcp: 7\nTcpExt: TW\nTcpExt: 9\n") == {(b"TcpExt", b"TW"): 9}
    assert table.parse(b"Tcp: InSegs CurrEstab\n") == {}


def test_a_number_that_is_no_count_costs_only_itself() -> None:
    """Text, below 0, and what is below 0 printed unsigned."""
    table = ProtocolTable(WANTED)
    for bad in (b"x", b"-1", b"18446744073709551615"):
        assert table.parse(b"Tcp: InSegs CurrEstab\nTcp: " + bad + b" 2\n") == {(b"Tcp", b"CurrEstab"): 2}


def test_the_memory_of_headers_is_bounded() -> None:
    table = ProtocolTable(WANTED)
    for number in range(100):
        table.parse(b"Tcp: InSegs X%d\nTcp: 7 2\n" % number)
    assert len(table._positions) < 20


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    ProtocolTable(WANTED).parse(data)
    ProtocolTable(WANTED).parse(b"Tcp: InSegs\nTcp: " + data + b"\nTcp: " + data)
    parse_snmp6(data, (b"Udp6InDatagrams",))
    parse_snmp6(b"Udp6InDatagrams" + data, (b"Udp6InDatagrams",))


def test_snmp6_takes_whole_names_only() -> None:
    data = b"Ip6InReceives 4\nUdp6InErrorsX 9\nUdp6InErrors                    \t12\nUdp6NoPorts x\nUdp6OutDatagrams"
    wanted = (b"Udp6InErrors", b"Udp6NoPorts", b"Udp6OutDatagrams", b"Udp6InDatagrams")
    assert parse_snmp6(data.replace(b"Udp6InErrorsX 9\n", b""), wanted) == {b"Udp6InErrors": 12}
    assert parse_snmp6(data, wanted) == {b"Udp6InErrors": 12}
