"""StatsD and DogStatsD: real sockets, names that stay apart, and lines that a strict reader takes."""

import itertools
import re
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.statsd import connector, datagrams, make
from dynolog.exporters.statsd_lines import StatsdLines
from dynolog.model.errors import FlagError
from dynolog.model.metric import Catalogue, Kind, Metric, Scope
from dynolog.model.record import Record
from fakes.exporter_context import exporter_context, record
from fakes.receivers import DatagramReceiver, unused_port

METRICS = (
    Metric(name="cpu_u", kind=Kind.RATIO, unit="%", description="share"),
    Metric(name="cpu_u", kind=Kind.RATIO, unit="%", description="share", scope=Scope.CPU),
    Metric(name="rx_bytes", kind=Kind.DELTA, unit="By", description="received", scope=Scope.NIC),
    Metric(name="fs_free_bytes", kind=Kind.GAUGE, unit="By", description="free", scope=Scope.FILESYSTEM),
    Metric(name="temperature", kind=Kind.GAUGE, unit="Cel", description="warmth"),
    Metric(name="gpu_power_draw", kind=Kind.GAUGE, unit="W", description="power", scope=Scope.GPU),
    Metric(name="boot_id", kind=Kind.LABEL, unit="1", description="which boot"),
)
KERNEL = record(
    {"cpu_u": 12.5, "cpu_u.cpu7": 1.0, "rx_bytes.eth0.100": 42, "temperature": -3.5, "boot_id": "x", "n": float("nan")}
)
GPU = record({"gpu_power_draw": 300.0}, source="gpu", device="3", job_id="90210_2", gpu_name="NVIDIA H200")


def lines(*records: Record, tags: bool = False, host: str = "gpu17.example", prefix: str = "dynolog") -> list[str]:
    maker = StatsdLines(Catalogue(METRICS), host, prefix, tags=tags)
    return [line.decode() for made in records for line in maker.lines(made)]


def test_plain_statsd() -> None:
    """A bare sign would mean a change, so a negative gauge is set to 0 first; texts are no metrics."""
    assert lines(KERNEL, GPU) == [
        "dynolog.gpu17_example.cpu_u:12.5|g",
        "dynolog.gpu17_example.cpu_u.cpu7:1.0|g",
        "dynolog.gpu17_example.rx_bytes.eth0_100:42|c",
        "dynolog.gpu17_example.temperature:0|g",
        "dynolog.gpu17_example.temperature:-3.5|g",
        "dynolog.gpu17_example.gpu3.gpu_power_draw:300.0|g",
    ]


def test_dogstatsd() -> None:
    assert lines(KERNEL, GPU, tags=True) == [
        "dynolog.cpu_u:12.5|g|#host:gpu17.example",
        "dynolog.cpu_u:1.0|g|#host:gpu17.example,cpu:7",
        "dynolog.rx_bytes:42|c|#host:gpu17.example,nic:eth0.100",
        "dynolog.temperature:-3.5|g|#host:gpu17.example",
        "dynolog.gpu_power_draw:300.0|g|#host:gpu17.example,device:3,job_id:90210_2,gpu_name:NVIDIA_H200",
    ]


@pytest.mark.parametrize("tags", [False, True])
def test_two_mounts_whose_names_differ_only_in_what_is_replaced_stay_two(tags: bool) -> None:
    mounts = ("/mnt/a b", "/mnt/a|b", "/mnt/a_b")
    names = [
        line.split("|#")[-1 if tags else 0].split(":1|")[0]
        for line in lines(record({f"fs_free_bytes.{mount}": 1 for mount in mounts}), tags=tags)
    ]
    assert len(set(names)) == 3
    assert names == [
        line.split("|#")[-1 if tags else 0].split(":1|")[0]
        for line in lines(record({f"fs_free_bytes.{mount}": 1 for mount in mounts}), tags=tags)
    ]


def test_numbers_have_no_exponent() -> None:
    made = record({"a": 1e-7, "b": 1e20, "c": 2**63, "d": 1e-300})
    assert [line.split(":")[1] for line in lines(made)] == [
        "0.0000001|g",
        "100000000000000000000|g",
        "9223372036854775808|g",
        "0|g",
    ]


PLAIN = re.compile(r"[A-Za-z0-9_.-]+:-?[0-9]+(\.[0-9]+)?\|[gc]")
TAGGED = re.compile(r"[A-Za-z0-9_.-]+:-?[0-9]+(\.[0-9]+)?\|[gc]\|#[\w./-]+:[\w./:-]*(,[\w./-]+:[\w./:-]*)*")
NAMES = st.text(min_size=1, max_size=8) | st.sampled_from(("rx_bytes.", "fs_free_bytes.", "cpu_u")).flatmap(
    lambda name: st.text(max_size=8).map(lambda rest: name + rest)
)


@pytest.mark.parametrize("tags", [False, True])
@given(
    values=st.dictionaries(NAMES, st.integers() | st.floats() | st.text(max_size=8), max_size=8),
    labels=st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=3),
    host=st.text(max_size=8),
    prefix=st.text(max_size=8),
)
def test_every_line_is_one_that_a_strict_reader_takes(
    values: dict[str, int | float | str], labels: dict[str, str], host: str, prefix: str, tags: bool
) -> None:
    whole = Record(wall_ns=10**9, source="kernel", values=values, labels=labels)
    made = lines(whole, tags=tags, host=host, prefix=prefix)
    for line in made:
        assert (TAGGED if tags else PLAIN).fullmatch(line), line


@pytest.mark.parametrize("tags", [False, True])
@given(mounts=st.lists(st.text(min_size=1, max_size=4), max_size=20, unique=True))
def test_no_two_series_become_one(mounts: list[str], tags: bool) -> None:
    made = lines(record({f"fs_free_bytes.{mount}": 1 for mount in mounts}), tags=tags)
    assert len(set(made)) == len(mounts)


@given(st.lists(st.binary(min_size=1, max_size=40).filter(lambda line: b"\n" not in line)), st.integers(64, 200))
def test_datagrams_hold_all_lines_in_order_and_no_more_than_they_may(made: list[bytes], most_bytes: int) -> None:
    packed = list(datagrams(made, most_bytes))
    assert [line for datagram in packed for line in datagram.split(b"\n")] == made
    assert all(len(datagram) <= most_bytes for datagram in packed)
    assert all(len(one) + 1 + len(two.split(b"\n")[0]) > most_bytes for one, two in itertools.pairwise(packed))


def test_a_line_that_is_too_long_travels_alone() -> None:
    assert list(datagrams([b"a", b"b" * 100, b"c"], 64)) == [b"a", b"b" * 100, b"c"]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_over_udp(family: socket.AddressFamily) -> None:
    host = "[::1]" if family == socket.AF_INET6 else "127.0.0.1"
    with DatagramReceiver.udp(family) as receiver:
        exporter = make(
            exporter_context(metrics=METRICS, statsd_address=f"{host}:{receiver.port}", statsd_max_bytes=64)
        )
        exporter.export([KERNEL])
        receiver.wait_for("dynolog.gpu17.temperature:-3.5|g")
        exporter.close()
    assert len(receiver.received) > 1
    assert len(receiver.lines) == 5


def test_over_a_unix_socket_that_comes_and_goes(socket_dir: str) -> None:
    path = Path(socket_dir) / "dsd.socket"
    exporter = make(exporter_context(metrics=METRICS, statsd_address=f"unix://{path}", statsd_dialect="dogstatsd"))
    with pytest.raises(FileNotFoundError):
        exporter.export([KERNEL])
    for _ in range(2):
        with DatagramReceiver.unix(path) as receiver:
            exporter.export([KERNEL])
            receiver.wait_for("dynolog.rx_bytes:42|c|#host:gpu17,nic:eth0.100")
        with pytest.raises(OSError, match="refused"):
            exporter.export([KERNEL])
    exporter.close()


def test_nobody_who_listens_on_udp_is_an_error_of_the_next_records() -> None:
    exporter = make(exporter_context(metrics=METRICS, statsd_address=f"127.0.0.1:{unused_port()}"))
    with pytest.raises(ConnectionRefusedError):
        for _ in range(3):
            exporter.export([KERNEL])
    exporter.close()


def test_a_receiver_that_does_not_read_costs_a_second_and_its_records(socket_dir: str) -> None:
    path = Path(socket_dir) / "dsd.socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as silent:
        silent.bind(str(path))
        exporter = make(exporter_context(metrics=METRICS, statsd_address=f"unix://{path}"))
        failed: list[Exception] = []

        def export() -> None:
            try:
                for _ in range(10_000):
                    exporter.export([KERNEL])
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=export)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        assert isinstance(failed[0], TimeoutError)
        exporter.close()


def test_a_socket_is_made_anew_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may mean another address by now; on UDP nothing else would tell."""
    now = 1000.0
    monkeypatch.setattr("dynolog.exporters.statsd.time.monotonic", lambda: now)
    with DatagramReceiver.udp() as receiver:
        exporter = make(exporter_context(metrics=METRICS, statsd_address=f"localhost:{receiver.port}"))
        sockets = []
        for now in (1000.0, 1059.0, 1061.0):  # noqa: B007 - the clock reads it
            exporter.export([GPU])
            sockets.append(exporter._socket)
        exporter.close()
    assert sockets[0] is sockets[1]
    assert sockets[1] is not sockets[2]


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":8125", "host:0", "host:70000", "host:x", "unix://relative", "udp://h:8125"]
)
def test_addresses_that_cannot_be_used(address: str) -> None:
    with pytest.raises(FlagError, match=re.escape(f"--statsd_address={address}")):
        connector(address)
