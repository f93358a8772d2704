"""What drivers of chosen network devices count."""

import pytest

from dynolog.collectors import ethtool
from dynolog.collectors.ethtool import EthtoolCollector
from dynolog.collectors.spec import Context, Values
from dynolog.model.flag import FlagValue
from dynolog.model.metric import Metric
from fakes.collector_context import HostTree
from fakes.ethtool_device import FakeEthtool
from fakes.ethtool_values import DRIVER_AFTER, DRIVER_BEFORE, GROWN


@pytest.fixture(autouse=True)
def interfaces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The network devices of the machine."""
    names = ["lo", "eth0", "eth1", "ens1f0np0"]
    monkeypatch.setattr(ethtool, "interfaces", lambda: names)
    return names


def grown(host_tree: HostTree, device: FakeEthtool, later: dict[str, dict[str, int]], **flags: FlagValue) -> Values:
    collector = EthtoolCollector(host_tree.context(**flags), device)
    before = collector.read()
    device.devices.update(later)
    return collector.compute(before, collector.read(), 1.0)


def test_every_statistic_under_the_name_of_its_device(host_tree: HostTree) -> None:
    device = FakeEthtool({"ens1f0np0": DRIVER_BEFORE})
    values = grown(host_tree, device, {"ens1f0np0": DRIVER_AFTER}, ethtool_interfaces="ens*")
    assert values == {f"{name}.ens1f0np0": number for name, number in GROWN.items()}


@pytest.mark.parametrize(
    ("of_the_driver", "name"),
    [
        ("tx_pause_frames", "tx_pause_ctrl_phy"),
        ("rx_pfc_ena_frames_pri5", "rx_prio5_pause"),
        ("tx_pause_prio_0", "tx_prio0_pause"),
        ("rx_priority_7_xoff.nic", "rx_prio7_pause"),
    ],
)
def test_other_drivers_names_for_the_same(host_tree: HostTree, of_the_driver: str, name: str) -> None:
    device = FakeEthtool({"eth0": {of_the_driver: 4}})
    values = grown(host_tree, device, {"eth0": {of_the_driver: 9}}, ethtool_interfaces="eth0")
    assert values == {f"{name}.eth0": 5}


def test_nothing_is_read_when_no_device_is_asked_for(host_tree: HostTree) -> None:
    device = FakeEthtool({"eth0": {"rx_discards_phy": 4}})
    assert grown(host_tree, device, {}) == {}
    assert not device.calls


def test_a_device_without_statistics_or_that_refuses_costs_only_itself(host_tree: HostTree) -> None:
    """eth0 keeps none, ens1f0np0 went between the list and the question; a counter that went down has no value."""
    before = {"rx_discards_phy": 4, "tx_discards_phy": 4}
    device = FakeEthtool({"eth0": None, "eth1": before})
    values = grown(host_tree, device, {"eth1": {"rx_discards_phy": 6, "tx_discards_phy": 3}}, ethtool_interfaces="e*")
    assert values == {"rx_discards_phy.eth1": 2}
    assert host_tree.notices.said["net ens1f0np0"] == "no driver statistics of ens1f0np0: No such device"


def test_what_was_said_of_a_device_that_has_gone_is_taken_back(host_tree: HostTree, interfaces: list[str]) -> None:
    collector = EthtoolCollector(host_tree.context(ethtool_interfaces="e*"), FakeEthtool({"eth0": {}, "eth1": {}}))
    collector.read()
    assert host_tree.notices.said["net ens1f0np0"]
    interfaces.remove("ens1f0np0")
    collector.read()
    assert host_tree.notices.said["net ens1f0np0"] == ""


def test_a_pattern_that_matches_nothing_is_said(host_tree: HostTree) -> None:
    assert grown(host_tree, FakeEthtool({}), {}, ethtool_interfaces="ib*") == {}
    assert host_tree.notices.said["none"] == "no network device matches --ethtool_interfaces"


def test_more_counters_of_a_driver_are_declared_under_names_that_are_nobody_elses(host_tree: HostTree) -> None:
    """`rx_bytes` would be taken for the counter of the interface."""
    declared: list[Metric] = []
    context = host_tree.context(ethtool_interfaces="eth0", ethtool_counters="rx_bytes,[[]*Drops")
    context = Context(host=context.host, settings=context.settings, notices=context.notices, declare=declared.extend)
    device = FakeEthtool({"eth0": {"rx_bytes": 1, "[3]: Rx Drops": 2, "tx_bytes": 3}})
    collector = EthtoolCollector(context, device)
    before = collector.read()
    device.devices["eth0"] = {"rx_bytes": 5, "[3]: Rx Drops": 9, "tx_bytes": 3}
    assert collector.compute(before, collector.read(), 1.0) == {
        "ethtool_rx_bytes.eth0": 4,
        "ethtool_3_rx_drops.eth0": 7,
    }
    assert [metric.key("eth0") for metric in declared] == ["ethtool_rx_bytes.eth0", "ethtool_3_rx_drops.eth0"]
