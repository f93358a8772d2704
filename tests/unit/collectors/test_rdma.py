"""InfiniBand and RoCE ports: each metric has here a value counted by hand."""

import pytest

from dynolog.collectors.rdma import RdmaCollector, RdmaSnapshot
from dynolog.collectors.spec import Context, Values
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.ethtool_device import FakeEthtool
from fakes.ethtool_values import DRIVER_AFTER, DRIVER_BEFORE, GROWN
from fakes.measure import Files, measure, put_files
from fakes.rdma_trees import (
    BNXT_HARDWARE,
    DISABLED,
    EDR,
    EFA_HARDWARE,
    FOLDER,
    HFI1_COUNTERS,
    IRDMA_HARDWARE,
    NO_LINK,
    mlx5,
    port,
)

# What mlx5 counts: each file by a number of its own, which the tree adds at step 1.
MLX5_GROWN = {
    "port_xmit_data": 1001,
    "port_xmit_packets": 1002,
    "port_xmit_discards": 1003,
    "port_rcv_data": 1004,
    "port_rcv_packets": 1005,
    "port_rcv_errors": 1006,
    "symbol_error": 1007,
    "link_error_recovery": 8,
    "link_downed": 9,
    "port_rcv_remote_physical_errors": 1010,
    "port_rcv_switch_relay_errors": 1011,
    "port_xmit_constraint_errors": 12,
    "port_rcv_constraint_errors": 13,
    "local_link_integrity_errors": 14,
    "excessive_buffer_overrun_errors": 6,
    "vl15_dropped": 1016,
    "port_xmit_wait": 1017,
    "unicast_xmit_packets": 1018,
    "unicast_rcv_packets": 1019,
    "multicast_xmit_packets": 1020,
    "multicast_rcv_packets": 1021,
    "np_cnp_sent": 2001,
    "rp_cnp_handled": 2002,
    "rp_cnp_ignored": 2003,
    "np_ecn_marked_roce_packets": 2004,
    "rx_atomic_requests": 2005,
    "rx_read_requests": 2006,
    "rx_write_requests": 2007,
    "out_of_sequence": 2008,
    "out_of_buffer": 2009,
    "packet_seq_err": 2010,
    "implied_nak_seq_err": 2011,
    "local_ack_timeout_err": 2012,
    "rnr_nak_retry_err": 2013,
    "duplicate_request": 2014,
    "rx_icrc_encapsulated": 2015,
    "roce_adp_retrans": 2016,
    "roce_adp_retrans_to": 2017,
    "roce_slow_restart": 2018,
    "roce_slow_restart_cnps": 2019,
    "roce_slow_restart_trans": 2020,
    "req_cqe_error": 2021,
    "req_cqe_flush_error": 2022,
    "req_remote_access_errors": 2023,
    "req_remote_invalid_request": 2024,
    "resp_cqe_error": 2025,
    "resp_cqe_flush_error": 2026,
    "resp_local_length_error": 2027,
    "resp_remote_access_errors": 2028,
}
LINK = {"port_up": 1, "port_state": 4, "port_phys_state": 5, "port_rate_gbps": 400.0, "port_width": 4}


def of_port(name: str, values: Values) -> Values:
    return {f"{name}.{key}": value for key, value in values.items()}


def without_net_devices(context: Context) -> RdmaCollector:
    return RdmaCollector(context, FakeEthtool({}))


def test_every_counter_of_mlx5_and_its_link(host_tree: HostTree) -> None:
    values = measure(host_tree, without_net_devices, mlx5("mlx5_0"), mlx5("mlx5_0", step=1))
    assert values == of_port("mlx5_0", {**MLX5_GROWN, **LINK})


def statistics_of(host_tree: HostTree, files: Files, before: FakeEthtool, after: FakeEthtool) -> Values:
    put_files(host_tree, files)
    first: RdmaSnapshot = RdmaCollector(host_tree.context(), before).read()
    collector = RdmaCollector(host_tree.context(), after)
    return collector.compute(first, collector.read(), 1.0)


def test_pauses_and_discards_of_the_network_device_of_a_port_are_the_ports(host_tree: HostTree) -> None:
    tree = port("mlx5_0", owner="ens1f0np0", link=NO_LINK)
    before, after = FakeEthtool({"ens1f0np0": DRIVER_BEFORE}), FakeEthtool({"ens1f0np0": DRIVER_AFTER})
    assert statistics_of(host_tree, tree, before, after) == of_port("mlx5_0", GROWN)


def test_efa_counts_under_its_own_names(host_tree: HostTree) -> None:
    def tree(step: int) -> Files:
        return port("rdmap0s6", hardware=EFA_HARDWARE, step=step, link=NO_LINK)

    expected: Values = {
        "rdma_tx_bytes": 3001,
        "rdma_rx_bytes": 3002,
        "rdma_tx_packets": 3003,
        "rdma_rx_packets": 3004,
        "rdma_rx_discards": 3005,
        "send_bytes": 3006,
        "send_wrs": 3007,
        "recv_bytes": 3008,
        "recv_wrs": 3009,
        "rdma_read_bytes": 3010,
        "rdma_read_wrs": 3011,
        "rdma_read_wr_err": 3012,
        "rdma_read_resp_bytes": 3013,
        "rdma_write_bytes": 3014,
        "rdma_write_wrs": 3015,
        "rdma_write_wr_err": 3016,
        "rdma_write_recv_bytes": 3017,
        "retrans_bytes": 3018,
        "retrans_pkts": 3019,
        "retrans_timeout_events": 3020,
        "impaired_remote_conn_events": 3021,
        "unresponsive_remote_events": 3022,
    }
    assert measure(host_tree, without_net_devices, tree(0), tree(1)) == of_port("rdmap0s6", expected)


def test_bnxt_counts_the_same_things_under_the_names_of_mlx5(host_tree: HostTree) -> None:
    def tree(step: int) -> Files:
        return port("bnxt_re0", hardware=BNXT_HARDWARE, step=step, link=NO_LINK)

    expected: Values = {
        "rdma_rx_packets": 1,
        "rdma_rx_bytes": 2,
        "rdma_tx_packets": 3,
        "rdma_tx_bytes": 4,
        "rdma_tx_errors": 5,
        "rdma_rx_errors": 6,
        "rdma_tx_discards": 7,
        "rdma_rx_discards": 8,
        "local_ack_timeout_err": 9,
        "packet_seq_err": 10,
        "max_retry_exceeded": 11,
        "rnr_naks_rcvd": 12,
        "duplicate_request": 13,
        "out_of_sequence": 14,
        "rx_read_requests": 15,
        "rx_write_requests": 16,
        "rx_atomic_requests": 17,
        "rp_cnp_handled": 18,
        "np_cnp_sent": 19,
        "np_ecn_marked_roce_packets": 20,
    }
    assert measure(host_tree, without_net_devices, tree(0), tree(1)) == of_port("bnxt_re0", expected)


def test_two_ports_of_one_device_are_two_series_and_the_first_keeps_the_name_of_the_device(host_tree: HostTree) -> None:
    before = {**mlx5("mlx5_0"), **mlx5("mlx5_0", 2, link=DISABLED)}
    values = measure(
        host_tree, without_net_devices, before, {**mlx5("mlx5_0", step=1), **mlx5("mlx5_0", 2, link=DISABLED)}
    )
    assert values["mlx5_0.port_xmit_data"] == 1001
    assert values["mlx5_0:2.port_xmit_data"] == 0
    assert (values["mlx5_0:2.port_up"], values["mlx5_0:2.port_state"], values["mlx5_0:2.port_phys_state"]) == (0, 1, 3)
    assert "mlx5_0:2.port_rate_gbps" not in values, "a port that is down has no speed"


def test_irdma_too(host_tree: HostTree) -> None:
    def tree(step: int) -> Files:
        return port("irdma0", hardware=IRDMA_HARDWARE, step=step, link=NO_LINK)

    expected: Values = {
        "np_cnp_sent": 1,
        "rp_cnp_handled": 2,
        "rp_cnp_ignored": 3,
        "np_ecn_marked_roce_packets": 4,
        "rx_read_requests": 5,
        "rx_write_requests": 6,
        "out_of_sequence": 7,
        "local_ack_timeout_err": 8,
    }
    assert measure(host_tree, without_net_devices, tree(0), tree(1)) == of_port("irdma0", expected)


def test_an_omni_path_card_without_some_files_gives_the_others(host_tree: HostTree) -> None:
    def tree(step: int) -> Files:
        return port("hfi1_0", counters=HFI1_COUNTERS, step=step, link=EDR)

    values = measure(host_tree, without_net_devices, tree(0), tree(1))
    counted = {name.lower(): MLX5_GROWN[name.lower()] for name in HFI1_COUNTERS}
    assert len(counted) == 16
    assert values == of_port("hfi1_0", {**counted, **LINK, "port_rate_gbps": 100.0})


def test_a_counter_at_its_largest_value_has_no_value_and_that_is_said(host_tree: HostTree) -> None:
    """A ConnectX-3: 32 bits of data, 8 and 4 bits of errors; they stay at the end until somebody resets them."""
    end = {
        "port_xmit_data": (4_294_967_295, 0),
        "port_rcv_data": (4_294_967_290, 5),
        "link_downed": (255, 0),
        "local_link_integrity_errors": (15, 0),
        "symbol_error": (65_534, 0),
    }

    def tree(step: int) -> Files:
        return port("mlx4_0", counters=end, step=step, link=NO_LINK)

    assert measure(host_tree, without_net_devices, tree(0), tree(1)) == {"mlx4_0.symbol_error": 0}
    said = host_tree.notices.said["saturated mlx4_0"]
    assert said.startswith("mlx4_0: link_downed, local_link_integrity_errors, port_xmit_data at the largest value")


def test_a_counter_that_was_reset_has_no_value(host_tree: HostTree) -> None:
    before = port("mlx5_0", counters={"port_xmit_data": (500, 0), "port_rcv_data": (500, 0)}, link=NO_LINK)
    after = port("mlx5_0", counters={"port_xmit_data": (3, 0), "port_rcv_data": (501, 0)}, link=NO_LINK)
    assert measure(host_tree, without_net_devices, before, after) == {"mlx5_0.port_rcv_data": 1}


def test_what_is_no_number_is_no_value(host_tree: HostTree) -> None:
    """D19: a port without counters."""
    before = port("mlx4_0", counters={"port_xmit_data": (1, 0)}, link=NO_LINK)
    text = {f"{FOLDER}/mlx4_0/ports/1/counters/port_xmit_data": "N/A (no PMA)\n"}
    assert measure(host_tree, without_net_devices, before, text) == {}
    assert measure(host_tree, without_net_devices, text, before) == {}


def test_only_the_devices_that_are_wanted_are_read(host_tree: HostTree) -> None:
    tree = {**mlx5("mlx5_0"), **mlx5("mlx5_bond_0"), **port("irdma0", counters={"link_downed": (1, 0)})}
    values = measure(host_tree, without_net_devices, tree, {}, rdma_devices="mlx5_?,irdma*")
    assert {key.partition(".")[0] for key in values} == {"mlx5_0", "irdma0"}


def test_a_device_that_goes_costs_only_itself_and_one_that_comes_is_seen(host_tree: HostTree) -> None:
    put_files(host_tree, {**mlx5("mlx5_0"), **mlx5("mlx5_1")})
    collector = without_net_devices(host_tree.context())
    first = collector.read()
    (host_tree.root / FOLDER / "mlx5_1").rename(host_tree.root / FOLDER / "mlx5_2")
    put_files(host_tree, mlx5("mlx5_0", step=1))
    second = collector.read()
    values = collector.compute(first, second, 1.0)
    assert values["mlx5_0.port_xmit_data"] == 1001
    assert values["mlx5_2.port_up"] == 1
    assert "mlx5_2.port_xmit_data" not in values, "nobody knows since when it counts"
    assert not [key for key in values if key.startswith("mlx5_1")]
    put_files(host_tree, mlx5("mlx5_2", step=1))
    assert collector.compute(second, collector.read(), 1.0)["mlx5_2.port_xmit_data"] == 1001


def test_what_was_said_of_a_port_that_has_gone_is_taken_back(host_tree: HostTree) -> None:
    text = {f"{FOLDER}/mlx4_0/ports/1/counters/port_xmit_data": "N/A (no PMA)\n"}
    put_files(
        host_tree, {**mlx5("mlx5_0"), **port("mlx4_0", counters={"port_xmit_data": (1, 0)}, link=NO_LINK), **text}
    )
    collector = without_net_devices(host_tree.context())
    for _ in range(4):
        collector.read()
    assert "mlx4_0" in host_tree.notices.said["refused mlx4_0"]
    (host_tree.root / FOLDER / "mlx4_0").rename(host_tree.root / "gone")
    collector.read()
    assert host_tree.notices.said["refused mlx4_0"] == ""


def test_without_devices_it_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no RDMA device is there"):
        without_net_devices(host_tree.context()).read()
    put_files(host_tree, mlx5("mlx5_0"))
    with pytest.raises(SourceUnavailable, match=r"one of those to measure.*mlx5_0"):
        without_net_devices(host_tree.context(rdma_devices="efa*")).read()


def test_the_members_of_a_bond_are_added_up(host_tree: HostTree) -> None:
    tree = {
        **port("mlx5_bond_0", owner="bond0", link=NO_LINK),
        "sys/class/net/bond0/bonding/slaves": "ens1f0np0 ens1f1np1\n",
    }
    before = FakeEthtool({"ens1f0np0": {"tx_prio3_pause": 10}, "ens1f1np1": {"tx_prio3_pause": 100}})
    after = FakeEthtool({"ens1f0np0": {"tx_prio3_pause": 17}, "ens1f1np1": {"tx_prio3_pause": 120}})
    assert statistics_of(host_tree, tree, before, after) == {"mlx5_bond_0.tx_prio3_pause": 27}
    reset = FakeEthtool({"ens1f0np0": {"tx_prio3_pause": 17}, "ens1f1np1": {"tx_prio3_pause": 0}})
    assert statistics_of(host_tree, tree, before, reset) == {}, "a part is not the sum"
    gone = FakeEthtool({"ens1f0np0": {"tx_prio3_pause": 17}})
    assert statistics_of(host_tree, tree, before, gone) == {}


def test_a_port_takes_the_network_device_that_says_it_is_its_own_and_no_representor(host_tree: HostTree) -> None:
    nets = f"{FOLDER}/mlx5_0/device/net"
    tree: Files = {
        **port("mlx5_0", link=NO_LINK),
        **port("mlx5_0", 2, link=NO_LINK),
        f"{nets}/ens1/dev_port": "0\n",
        f"{nets}/ens1d1/dev_port": "1\n",
        f"{nets}/ens1_0/dev_port": "0\n",
        f"{nets}/ens1_0/phys_port_name": "pf0vf0\n",
    }
    before = FakeEthtool({name: {"rx_discards_phy": 0} for name in ("ens1", "ens1d1", "ens1_0")})
    after = FakeEthtool(
        {"ens1": {"rx_discards_phy": 1}, "ens1d1": {"rx_discards_phy": 2}, "ens1_0": {"rx_discards_phy": 4}}
    )
    expected = {"mlx5_0.rx_discards_phy": 1, "mlx5_0:2.rx_discards_phy": 2}
    assert statistics_of(host_tree, tree, before, after) == expected


def test_a_network_device_of_another_namespace_is_said_and_costs_only_its_statistics(host_tree: HostTree) -> None:
    tree = {**mlx5("mlx5_0", owner="ens9"), **port("mlx5_1", owner="ens1", link=NO_LINK)}
    devices = FakeEthtool({"ens1": {"rx_discards_phy": 1}})
    values = statistics_of(host_tree, tree, devices, devices)
    assert values["mlx5_1.rx_discards_phy"] == 0
    assert values["mlx5_0.port_up"] == 1
    assert (
        host_tree.notices.said["net ens9"] == "no driver statistics of ens9 in this network namespace: No such device"
    )
