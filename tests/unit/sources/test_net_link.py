"""Link attributes in sysfs."""

import pytest

from dynolog.sources.host_files import HostFiles
from dynolog.sources.net_link import Link, read_links
from fakes.collector_context import HostTree


def write_nic(
    host_tree: HostTree, name: str, speed: str = "10000\n", state: str = "up\n", changes: str = "3\n"
) -> None:
    host_tree.write(f"sys/class/net/{name}/device/vendor", "0x8086\n")
    host_tree.write(f"sys/class/net/{name}/speed", speed)
    host_tree.write(f"sys/class/net/{name}/operstate", state)
    host_tree.write(f"sys/class/net/{name}/carrier_changes", changes)


def links(host_tree: HostTree, *names: str) -> dict[str, Link]:
    return read_links(HostFiles(str(host_tree.root)), names)


def test_a_physical_interface(host_tree: HostTree) -> None:
    write_nic(host_tree, "eth0")
    assert links(host_tree, "eth0") == {"eth0": Link(10000, 3, 1)}


@pytest.mark.parametrize("speed", ["-1\n", "4294967295\n", "0\n", "", "N/A\n", "10000 Mb\n", "9" * 40, "\xb2\n"])
def test_a_speed_that_is_not_known_is_missing(host_tree: HostTree, speed: str) -> None:
    """D10, D19: what drivers print instead of a speed never becomes a number."""
    write_nic(host_tree, "eth0", speed=speed)
    assert links(host_tree, "eth0") == {"eth0": Link(None, 3, 1)}


@pytest.mark.parametrize(("state", "up"), [("down\n", 0), ("lowerlayerdown\n", 0), ("unknown\n", None), ("", None)])
def test_the_state_of_the_link(host_tree: HostTree, state: str, up: int | None) -> None:
    write_nic(host_tree, "eth0", state=state)
    assert links(host_tree, "eth0")["eth0"].up == up


def test_virtual_interfaces_aliases_and_vanished_ones_are_left_out(host_tree: HostTree) -> None:
    """D11: a tunnel's speed means nothing; a name without a directory costs only itself."""
    host_tree.write("sys/class/net/tun0/speed", "10\n")
    write_nic(host_tree, "eth0")
    assert list(links(host_tree, "tun0", "eth0:1", "gone0", "eth0")) == ["eth0"]


def test_a_bond_counts_as_physical(host_tree: HostTree) -> None:
    host_tree.write("sys/class/net/bond0/bonding/mode", "802.3ad 4\n")
    host_tree.write("sys/class/net/bond0/speed", "20000\n")
    assert links(host_tree, "bond0") == {"bond0": Link(20000, None, None)}


def test_an_attribute_that_is_a_directory_is_missing(host_tree: HostTree) -> None:
    """D12."""
    write_nic(host_tree, "eth0")
    (host_tree.root / "sys/class/net/eth0/speed").unlink()
    (host_tree.root / "sys/class/net/eth0/speed").mkdir()
    assert links(host_tree, "eth0")["eth0"].speed_mbps is None
