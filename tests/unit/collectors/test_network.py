"""Network deltas, utilisation and links on hand-made files."""

import os
import threading
import time
from collections.abc import Mapping

import pytest

from dynolog.collectors import network
from dynolog.collectors.network import NetworkCollector, NetworkSnapshot
from dynolog.sources.net_dev import COLUMNS
from dynolog.sources.net_link import Link
from fakes.big_host.network import NICS, SPEED_MBPS, build_network, nic_counters
from fakes.collector_context import HostTree, numbers

HEADER = "Inter-|   Receive |  Transmit\n face |bytes packets |bytes packets\n"


def net_dev(**devices: tuple[int, ...]) -> str:
    lines = [
        f"{name}: " + " ".join(map(str, (*row[:4], 0, 0, 0, 0, *row[4:], 0, 0, 0, 0))) for name, row in devices.items()
    ]
    return HEADER + "\n".join(lines) + "\n"


def measure(
    host_tree: HostTree, *steps: Mapping[str, tuple[int, ...]], elapsed_s: float = 1.0, **flags: bool | str
) -> dict[str, float]:
    """Values of the last of the intervals between the steps."""
    collector = NetworkCollector(host_tree.context(**flags))
    values: dict[str, float] = {}
    before: NetworkSnapshot | None = None
    for step in steps:
        host_tree.write("proc/net/dev", net_dev(**step))
        after = collector.read()
        if before is not None:
            values = numbers(collector.compute(before, after, elapsed_s))
        before = after
    return values


def write_link(host_tree: HostTree, name: str, **attributes: str) -> None:
    host_tree.write(f"sys/class/net/{name}/device/vendor", "0x8086\n")
    for attribute, text in attributes.items():
        host_tree.write(f"sys/class/net/{name}/{attribute}", text)


ZERO = (0,) * 8


def test_deltas_of_each_column(host_tree: HostTree) -> None:
    values = measure(
        host_tree, {"eth0": (10, 20, 30, 40, 50, 60, 70, 80)}, {"eth0": (1010, 22, 33, 44, 2050, 66, 77, 88)}
    )
    assert values == {
        "rx_bytes.eth0": 1000,
        "rx_packets.eth0": 2,
        "rx_errors.eth0": 3,
        "rx_drops.eth0": 4,
        "tx_bytes.eth0": 2000,
        "tx_packets.eth0": 6,
        "tx_errors.eth0": 7,
        "tx_drops.eth0": 8,
    }


def test_new_and_vanished_interfaces_have_no_value(host_tree: HostTree) -> None:
    values = measure(host_tree, {"old0": ZERO, "eth0": ZERO}, {"eth0": (1,) * 8, "new0": (9,) * 8})
    assert {key.rpartition(".")[2] for key in values} == {"eth0"}


def test_a_malformed_line_costs_only_its_interface(host_tree: HostTree) -> None:
    collector = NetworkCollector(host_tree.context())
    host_tree.write("proc/net/dev", net_dev(eth0=ZERO, eth1=ZERO))
    before = collector.read()
    host_tree.write("proc/net/dev", net_dev(eth0=(1,) * 8) + "eth1: 5 5 x\n")
    assert len(collector.compute(before, collector.read(), 1.0)) == 8


@pytest.mark.parametrize("after", [0, 7, 398444176030])
def test_a_reset_gives_no_value_and_a_new_start(host_tree: HostTree, after: int) -> None:
    """D09: to 0 or to a small value; the other columns of the interface were reset with it."""
    old = (398444176031, 1, 0, 0, 1, 1, 0, 0)
    new = (after, 5, 5, 5, 5, 5, 5, 5)
    assert measure(host_tree, {"eth0": old}, {"eth0": new}) == {}
    later = (after + 3, *new[1:])
    if after < 100:
        assert measure(host_tree, {"eth0": old}, {"eth0": new}, {"eth0": later})["rx_bytes.eth0"] == 3


def test_a_32_bit_wrap_is_no_value(host_tree: HostTree) -> None:
    """D09: an old driver's counter starts again; 2^64 is never added."""
    assert measure(host_tree, {"eth0": (4294967290, *ZERO[1:])}, {"eth0": (10, *ZERO[1:])}) == {}


def test_a_counter_that_is_0_once_gives_no_petabyte(host_tree: HostTree) -> None:
    """D09: 398444176031 → 0 → 398444180000."""
    steps = [{"veth0": (value, *ZERO[1:])} for value in (398444176031, 0, 398444180000)]
    assert measure(host_tree, *steps, elapsed_s=60) == {}
    assert measure(host_tree, *steps, {"veth0": (398444180009, *ZERO[1:])})["rx_bytes.veth0"] == 9


def test_more_than_the_link_can_carry_is_no_value(host_tree: HostTree) -> None:
    """D09: 10 Gbit/s carries 1.25 GB in a second; 398 GB are a broken counter, 2 GB may be a driver's nominal speed."""
    write_link(host_tree, "eth0", speed="10000\n")
    absurd = measure(host_tree, {"eth0": ZERO}, {"eth0": (398444180000, *ZERO[1:])})
    assert not any(key.startswith("rx_") for key in absurd)
    assert measure(host_tree, {"eth0": ZERO}, {"eth0": (2 * 10**9, *ZERO[1:])})["rx_bytes.eth0"] == 2 * 10**9
    assert measure(host_tree, {"lo": ZERO}, {"lo": (10**16, *ZERO[1:])}) == {}


def test_utilisation_is_of_the_link_speed(host_tree: HostTree) -> None:
    """1000 Mbit/s carry 250 MB in 2 s: 25 MB are 10 %, 125 MB are 50 %."""
    write_link(host_tree, "eth0", speed="1000\n")
    values = measure(host_tree, {"eth0": ZERO}, {"eth0": (25_000_000, 1, 0, 0, 125_000_000, 1, 0, 0)}, elapsed_s=2.0)
    assert values["rx_util.eth0"] == pytest.approx(10)
    assert values["tx_util.eth0"] == pytest.approx(50)
    assert values["link_speed_mbps.eth0"] == 1000


def test_without_a_speed_there_is_no_utilisation(host_tree: HostTree) -> None:
    write_link(host_tree, "eth0", speed="-1\n", operstate="up\n")
    values = measure(host_tree, {"eth0": ZERO}, {"eth0": (1,) * 8})
    assert "rx_util.eth0" not in values
    assert "link_speed_mbps.eth0" not in values
    assert values["link_up.eth0"] == 1


def test_the_state_of_a_link_and_its_changes(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkCollector, "LINKS_EVERY_S", 0.0)
    monkeypatch.setattr(NetworkCollector, "LINKS_WAIT_S", 10.0)
    host_tree.write("proc/net/dev", net_dev(eth0=ZERO))
    collector = NetworkCollector(host_tree.context())
    write_link(host_tree, "eth0", operstate="up\n", carrier_changes="2\n")
    before = collector.read()
    write_link(host_tree, "eth0", operstate="down\n", carrier_changes="5\n")
    after = collector.read()
    values = collector.compute(before, after, 1.0)
    assert values["link_up.eth0"] == 0
    assert values["carrier_changes.eth0"] == 3
    write_link(host_tree, "eth0", carrier_changes="1\n")
    assert "carrier_changes.eth0" not in collector.compute(after, collector.read(), 1.0)


def test_a_link_that_cannot_be_read_in_time_delays_nothing(
    host_tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may hold `speed` back: counters go on, one look at a time, and its answer is used when it is there."""
    release, looks = threading.Event(), []

    def slow(*_: object) -> dict[str, Link]:
        looks.append(1)
        release.wait(10)
        return {"eth0": Link(speed_mbps=1000)}

    monkeypatch.setattr(network, "read_links", slow)
    monkeypatch.setattr(NetworkCollector, "LINKS_EVERY_S", 0.0)
    monkeypatch.setattr(NetworkCollector, "LINKS_WAIT_S", 0.001)
    host_tree.write("proc/net/dev", net_dev(eth0=ZERO))
    collector = NetworkCollector(host_tree.context())
    snapshots = [collector.read()]
    # Only the round that sent somebody to look may wait.
    monkeypatch.setattr(NetworkCollector, "LINKS_WAIT_S", 20.0)
    started = time.monotonic()
    snapshots += [collector.read() for _ in range(2)]
    assert time.monotonic() - started < 60
    assert "rx_bytes.eth0" in collector.compute(snapshots[1], snapshots[2], 1.0)
    assert len(looks) == 1
    release.set()
    assert collector._look.wait(10)
    assert collector.read().links == {"eth0": Link(speed_mbps=1000)}


def test_interfaces_that_come_and_go_do_not_make_it_look_every_time(
    host_tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[str, ...]] = []

    def look(_: object, names: tuple[str, ...]) -> dict[str, Link]:
        looks.append(names)
        return {}

    monkeypatch.setattr(network, "read_links", look)
    monkeypatch.setattr(NetworkCollector, "LINKS_WAIT_S", 10.0)
    collector = NetworkCollector(host_tree.context())
    for number in range(3):
        host_tree.write("proc/net/dev", net_dev(**{f"veth{number}": ZERO}))
        collector.read()
    assert looks == [("veth0",)]
    monkeypatch.setattr(NetworkCollector, "LINKS_EVERY_S_WHEN_CHANGED", 0.0)
    collector.read()
    collector.read()
    assert looks == [("veth0",), ("veth2",)]


def test_links_seen_too_long_ago_are_not_shown(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    write_link(host_tree, "eth0", speed="1000\n")
    host_tree.write("proc/net/dev", net_dev(eth0=ZERO))
    collector = NetworkCollector(host_tree.context())
    assert collector.read().links
    monkeypatch.setattr(NetworkCollector, "LINKS_VALID_S", -1.0)
    assert not collector.read().links


def test_the_filter_comes_before_other_files_are_opened(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """D11: an interface that is not wanted cannot trouble anybody; the filter is off unless asked for."""
    write_link(host_tree, "veth1", speed="10000\n")
    write_link(host_tree, "eth0", speed="10000\n")
    opened: list[str] = []
    open_before = os.open

    def noting_open(path: str, *arguments: int) -> int:
        opened.append(path)
        return open_before(path, *arguments)

    monkeypatch.setattr(os, "open", noting_open)
    steps = ({"veth1": ZERO, "eth0": ZERO, "docker0": ZERO},) * 2
    values = measure(host_tree, *steps, filter_nic_interfaces=True)
    assert {key.rpartition(".")[2] for key in values} == {"eth0"}
    assert opened
    assert not [path for path in opened if "veth1" in path]
    assert "rx_bytes.docker0" in measure(host_tree, *steps)
    values = measure(host_tree, *steps, filter_nic_interfaces=True, allow_interface_prefixes="dock, ve")
    assert {key.rpartition(".")[2] for key in values} == {"veth1", "docker0"}


def test_names_that_come_and_go_do_not_fill_memory(host_tree: HostTree) -> None:
    collector = NetworkCollector(host_tree.context())
    for number in range(6000):
        collector._keys_of(f"veth{number}")
    assert len(collector._keys) <= 4097


def test_a_big_host(host_tree: HostTree) -> None:
    """Every interface of 16 has the deltas that were written."""
    collector = NetworkCollector(host_tree.context())
    build_network(host_tree.root, 0)
    before = collector.read()
    build_network(host_tree.root, 1)
    values = collector.compute(before, collector.read(), 1.0)
    for number, name in enumerate(NICS):
        old, new = nic_counters(number, 0), nic_counters(number, 1)
        for column, label in enumerate(COLUMNS):
            assert values[f"{label}.{name}"] == new[column] - old[column]
        assert values[f"link_speed_mbps.{name}"] == SPEED_MBPS
        assert values[f"rx_util.{name}"] == pytest.approx(100 * (number + 1) * 1e6 / 5e10)
    assert values["rx_bytes.veth00000003"] == 3
