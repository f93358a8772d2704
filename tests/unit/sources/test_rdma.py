"""Ports below /sys/class/infiniband, and files that drivers refuse to read."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources import counter_file
from dynolog.sources.counter_file import CounterFile, parse_counter
from dynolog.sources.host_files import HostFiles
from dynolog.sources.rdma import RdmaReader, parse_rate, parse_state, port_name
from dynolog.sources.rdma_counters import HARDWARE_COUNTERS, PORT_COUNTERS, WIDTHS
from dynolog.sources.rdma_net_devices import net_devices
from fakes.collector_context import HostTree
from fakes.measure import put_files
from fakes.rdma_trees import FOLDER, mlx5, port


@given(st.integers(0, 2**64 - 1))
def test_any_64_bit_counter_is_read(number: int) -> None:
    assert parse_counter(f"{number}\n".encode()) == number


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"N/A (no PMA)\n", b"-1\n", b"0x10\n", b"1_0\n", b"18446744073709551616\n", b"9" * 5000]
)
def test_what_is_no_64_bit_counter_is_none(data: bytes) -> None:
    assert parse_counter(data) is None


@given(st.binary(max_size=60))
def test_no_bytes_make_the_parsers_fail(data: bytes) -> None:
    number = parse_counter(data)
    assert number is None or 0 <= number < 2**64
    parse_state(data)
    parse_rate(data)


@pytest.mark.parametrize(
    ("data", "rate"),
    [
        (b"400 Gb/sec (4X NDR)\n", (400.0, 4)),
        (b"2.5 Gb/sec (1X SDR)\n", (2.5, 1)),
        (b"100 Gb/sec (12X)\n", (100.0, 12)),
        (b"10 Gb/sec\n", (10.0, None)),
        (b"unknown\n", (None, None)),
        (None, (None, None)),
    ],
)
def test_speed_and_lanes_of_a_link(data: bytes | None, rate: tuple[float | None, int | None]) -> None:
    assert parse_rate(data) == rate


def test_state_is_the_number_before_the_word() -> None:
    assert [parse_state(data) for data in (b"4: ACTIVE\n", b"1: DOWN\n", b"ACTIVE\n", b"", None)] == [
        4,
        1,
        None,
        None,
        None,
    ]


def test_ports_after_the_first_have_their_number_in_the_name() -> None:
    assert [port_name("mlx5_0", number) for number in (1, 2)] == ["mlx5_0", "mlx5_0:2"]


def test_a_counter_that_is_refused_is_left_alone_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """D19: a restricted port answers EINVAL, and the kernel logs each time."""
    tries = 0

    def refuse(_path: str) -> bytes:
        nonlocal tries
        tries += 1
        raise OSError(errno.EINVAL, "Invalid argument")

    file = CounterFile("port_rcv_data")
    monkeypatch.setattr(counter_file, "_read", refuse)
    assert [file.read(float(second)) for second in range(100)] == [None] * 100
    assert (tries, file.is_refused) == (2, True)
    monkeypatch.setattr(counter_file, "_read", lambda _path: b"7\n")
    assert file.read(3600.0) is None
    assert file.read(3601.0) == 7
    assert not file.is_refused


def test_a_counter_that_is_gone_is_not_taken_for_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_path: str) -> bytes:
        raise OSError(errno.ENODEV, "No such device")

    file = CounterFile("port_rcv_data")
    monkeypatch.setattr(counter_file, "_read", gone)
    assert [file.read(float(second)) for second in range(10)] == [None] * 10
    assert not file.is_refused


def test_a_refused_file_stays_left_alone_when_the_ports_are_looked_for_again(host_tree: HostTree) -> None:
    put_files(
        host_tree,
        {
            **port("mlx5_0", counters={"link_downed": (1, 0)}),
            f"{FOLDER}/mlx5_0/ports/1/counters/port_rcv_data": "N/A\n",
        },
    )
    now_s = 0.0
    reader = RdmaReader(HostFiles(str(host_tree.root)), lambda: (), lambda: now_s)
    for second in (0.0, 10.0, 100.0, 200.0):
        now_s = second
        found = reader.read()["mlx5_0"]
    assert (found.counters, found.refused) == ({"link_downed": 1}, 1)
    put_files(host_tree, {f"{FOLDER}/mlx5_0/ports/1/counters/port_rcv_data": "5\n"})
    assert "port_rcv_data" not in reader.read()["mlx5_0"].counters
    now_s = 4000.0
    assert reader.read()["mlx5_0"].counters["port_rcv_data"] == 5


def test_a_counter_of_the_device_and_of_its_port_is_that_of_the_port(host_tree: HostTree) -> None:
    """Drivers of some kernels print both; a sum would count twice."""
    put_files(host_tree, mlx5("mlx5_0"))
    put_files(
        host_tree, {f"{FOLDER}/mlx5_0/hw_counters/np_cnp_sent": "999\n", f"{FOLDER}/mlx5_0/hw_counters/tx_bytes": "3\n"}
    )
    counters = RdmaReader(HostFiles(str(host_tree.root)), tuple).read()["mlx5_0"].counters
    assert (counters["np_cnp_sent"], counters["rdma_tx_bytes"]) == (10, 3)


def test_a_port_that_comes_later_is_seen(host_tree: HostTree) -> None:
    put_files(host_tree, mlx5("mlx5_0"))
    now_s = 0.0
    reader = RdmaReader(HostFiles(str(host_tree.root)), tuple, lambda: now_s)
    assert set(reader.read()) == {"mlx5_0"}
    put_files(host_tree, mlx5("mlx5_0", 2))
    now_s = RdmaReader.LOOK_AGAIN_S
    assert set(reader.read()) == {"mlx5_0", "mlx5_0:2"}


def test_an_owner_that_is_no_name_is_not_looked_for(host_tree: HostTree) -> None:
    put_files(host_tree, port("mlx5_0", owner="../../etc"))
    assert net_devices(HostFiles(str(host_tree.root)), "mlx5_0", 1) == ()


def test_every_width_is_of_a_counter_that_is_read() -> None:
    assert set(WIDTHS) <= set(PORT_COUNTERS.values())
    assert not set(PORT_COUNTERS) & (set(HARDWARE_COUNTERS) - {"link_downed"})
