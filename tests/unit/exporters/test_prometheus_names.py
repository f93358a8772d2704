"""Names in Prometheus: legal, unique, by its conventions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.collectors.registry import COLLECTORS
from dynolog.exporters.prometheus.names import (
    Families,
    NameTaken,
    Type,
    dynolog_family,
    legal,
    legal_label,
    standard_family,
)
from dynolog.exporters.prometheus.series import OWN_FAMILIES
from dynolog.model.metric import Kind, Metric, Scope
from fakes.prometheus import catalogue

METRICS = list(catalogue())
NAME = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]")
# What promtool calls abbreviated, and what conventions keep for histograms.
NO_LAST_WORDS = {"ms", "us", "ns", "mb", "kb", "gb", "mhz", "pct", "mbps", "count", "sum", "bucket"}


def metric(name: str, scope: Scope = Scope.HOST, kind: Kind = Kind.GAUGE, unit: str = "1") -> Metric:
    return Metric(name=name, kind=kind, unit=unit, description="what it is", scope=scope)


@pytest.mark.parametrize("style", ["dynolog", "standard"])
def test_every_metric_of_the_catalogue_has_a_name_that_is_legal_and_its_own(style: str) -> None:
    """Families refuses two metrics with one name."""
    families = Families(METRICS, style).all
    assert len({family.sample for family in (*families, *OWN_FAMILIES)}) == len(METRICS) + len(OWN_FAMILIES)
    for family in families:
        assert NAME.fullmatch(family.sample), family.sample
        assert family.label == legal_label(family.label or "x")[: len(family.label)]


@pytest.mark.parametrize("each", METRICS, ids=lambda m: f"{m.name}-{m.scope}")
def test_standard_names_follow_the_conventions(each: Metric) -> None:
    family = standard_family(each)
    assert family.sample.startswith("dynolog_")
    assert (family.type is Type.COUNTER) == (each.kind is Kind.DELTA)
    assert family.sample.endswith("_total") == (each.kind is Kind.DELTA)
    assert not NO_LAST_WORDS & set(family.name.split("_")[-1:])
    assert not re.search(r"(_ratio|_bytes|_seconds)_(ratio|bytes|seconds)$", family.name)
    if each.unit in ("%", "ms", "us", "s", "By", "J", "W", "Cel", "MHz", "Mbit/s"):
        assert family.unit, family.name
    if family.unit:
        assert family.name.endswith(f"_{family.unit}")


@pytest.mark.parametrize(
    ("each", "sample", "label", "of_one"),
    [
        (metric("rx_bytes", Scope.NIC, Kind.DELTA, "By"), "dynolog_network_receive_bytes_total", "device", 1),
        (metric("cpu_util", kind=Kind.RATIO, unit="%"), "dynolog_cpu_utilization_ratio", "", 0.01),
        (metric("cpu_u", Scope.NODE, Kind.RATIO, "%"), "dynolog_node_cpu_user_ratio", "node", 0.01),
        (metric("cpu_u", Scope.CPU, Kind.RATIO, "%"), "dynolog_per_cpu_user_ratio", "cpu", 0.01),
        (metric("cpu_u_ms", kind=Kind.DELTA, unit="ms"), "dynolog_cpu_user_seconds_total", "", 0.001),
        (metric("pressure_io_full_us", kind=Kind.DELTA, unit="us"), "dynolog_pressure_io_full_seconds_total", "", 1e-6),
        (metric("disk_read_latency_ms", Scope.DISK, unit="ms"), "dynolog_disk_read_latency_seconds", "device", 0.001),
        (metric("mem_used_bytes", unit="By"), "dynolog_memory_used_bytes", "", 1),
        (metric("link_speed_mbps", Scope.NIC, unit="Mbit/s"), "dynolog_network_link_speed_bytes_per_second", "device", 125e3),
        (metric("cpu_frequency_mhz", unit="MHz"), "dynolog_cpu_frequency_hertz", "", 1e6),
        (metric("sm_occupancy", Scope.GPU, Kind.RATIO), "dynolog_gpu_sm_occupancy_ratio", "", 1),
        (metric("pcie_tx_bytes", Scope.GPU, Kind.RATE, "By/s"), "dynolog_gpu_pcie_transmit_bytes_per_second", "", 1),
        (metric("gpu_power_draw", Scope.GPU, unit="W"), "dynolog_gpu_power_draw_watts", "", 1),
        (metric("port_rcv_packets", Scope.RDMA, Kind.DELTA, "{packet}"), "dynolog_rdma_port_receive_packets_total", "device", 1),
        (metric("port_rcv_data", Scope.RDMA, Kind.DELTA, "{four_bytes}"), "dynolog_rdma_port_receive_data_bytes_total", "device", 4),
        (metric("port_rate_gbps", Scope.RDMA, unit="Gbit/s"), "dynolog_rdma_port_rate_bytes_per_second", "device", 125e6),
        (metric("rx_discards_phy", Scope.ETHTOOL, Kind.DELTA, "{packet}"), "dynolog_ethtool_receive_discards_phy_total", "device", 1),
        (metric("mips", kind=Kind.RATE, unit="{instruction}/s"), "dynolog_instructions_per_second", "", 1e6),
        (metric("boot_id", kind=Kind.LABEL, unit=""), "dynolog_boot_info", "boot_id", 1),
    ],
)  # fmt: skip
def test_standard_names_of_each_kind(each: Metric, sample: str, label: str, of_one: float) -> None:
    family = standard_family(each)
    assert (family.sample, family.label) == (sample, label)
    assert family.multiply / family.divide == pytest.approx(of_one)


@pytest.mark.parametrize(
    ("each", "sample", "label"),
    [
        (metric("cpu_util", kind=Kind.RATIO, unit="%"), "cpu_util", ""),
        (metric("rx_bytes", Scope.NIC, Kind.DELTA, "By"), "rx_bytes", "net"),
        (metric("disk_read_ops", Scope.DISK, Kind.DELTA, "{operation}"), "disk_read_ops", "disk"),
        (metric("cpu_u", Scope.NODE, Kind.RATIO, "%"), "cpu_u_node", "node"),
        (metric("cpu_u", Scope.CPU, Kind.RATIO, "%"), "cpu_u_cpu", "cpu"),
        (metric("port_rcv_data", Scope.RDMA, Kind.DELTA, "{four_bytes}"), "port_rcv_data", "rdma"),
        (metric("rx_discards_phy", Scope.ETHTOOL, Kind.DELTA, "{packet}"), "rx_discards_phy_ethtool", "net"),
    ],
)
def test_names_like_the_original_are_gauges_in_the_units_of_the_log(each: Metric, sample: str, label: str) -> None:
    family = dynolog_family(each)
    assert (family.sample, family.label, family.type) == (sample, label, Type.GAUGE)
    assert (family.multiply, family.divide) == (1, 1)


def test_two_metrics_that_would_share_a_name_are_refused() -> None:
    """F02: `a_util` and `a_utilization` in percent are told apart by the log, and not by the conventions."""
    with pytest.raises(
        NameTaken, match=r"a_utilization \(host\) and a_util \(host\) would both be dynolog_a_utilization_ratio"
    ):
        Families([metric("a_util", unit="%"), metric("a_utilization", unit="%")], "standard")


def test_illegal_names_are_made_legal_and_collisions_found() -> None:
    """F02: the names that were seen in the field."""
    families = Families([], "standard")
    first = families.undeclared("processcount_?")
    assert first is not None
    assert first.sample == "dynolog_processcount__"
    percent = families.undeclared("sm_utilization_%")
    assert percent is not None
    assert percent.sample == "dynolog_sm_utilization__"
    with pytest.raises(NameTaken):
        families.undeclared("processcount_µ")
    assert families.undeclared("processcount_µ") is None, "said once, then left out"
    assert families.undeclared("processcount_?") is first


@given(st.text(max_size=30))
def test_whatever_comes_the_name_is_legal(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", legal(name))
    assert re.fullmatch(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*", legal_label(name))


def test_every_scope_has_a_label_in_both_styles() -> None:
    """A device's value without its label would stand for all devices."""
    for spec in COLLECTORS:
        for each in spec.metrics:
            if each.scope not in (Scope.HOST, Scope.GPU):
                assert standard_family(each).label
                assert dynolog_family(each).label
