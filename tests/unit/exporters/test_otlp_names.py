"""What metrics are called in OTLP."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.otlp.names import LABELS, STYLES, OtlpName, otlp_name, series_name, unknown_name
from dynolog.model.metric import Kind, Scope, Series
from fakes.otlp_catalogue import example_instance, full_catalogue
from fakes.otlp_checks import NAME, UNIT

CATALOGUE = full_catalogue()
NUMBERS = [metric for metric in CATALOGUE if metric.kind is not Kind.LABEL]


def series(key: str, style: str = "dynolog") -> OtlpName:
    found = CATALOGUE.resolve(key)
    assert found is not None, key
    return series_name(found, style)


@pytest.mark.parametrize("style", STYLES)
def test_every_metric_of_the_catalogue_has_a_legal_name_and_unit(style: str) -> None:
    for metric in NUMBERS:
        name = otlp_name(metric, style)
        assert NAME.fullmatch(name.name), metric
        assert UNIT.fullmatch(name.unit), (metric.name, name.unit)
        assert name.times >= 1, metric
        assert name.over >= 1, metric


@pytest.mark.parametrize("style", STYLES)
def test_no_two_metrics_are_taken_for_one_series(style: str) -> None:
    """F02: a collision would give two values for one point in time."""
    seen: dict[tuple[object, ...], str] = {}
    for metric in NUMBERS:
        name = series_name(Series(metric, example_instance(metric)), style)
        # Sensors, controllers and PCI devices never share an instance: what tells them apart is in it.
        scope = metric.scope if name.instance == "hw.id" else None
        key = (name.name, frozenset(name.attributes), scope)
        assert key not in seen, (metric.name, seen[key])
        seen[key] = metric.name


@pytest.mark.parametrize("style", STYLES)
def test_metrics_that_share_a_name_share_unit_and_form(style: str) -> None:
    forms = defaultdict(set)
    for metric in NUMBERS:
        name = otlp_name(metric, style)
        forms[name.name].add((name.unit, metric.kind is Kind.DELTA))
    assert {name: found for name, found in forms.items() if len(found) > 1} == {}


@pytest.mark.parametrize("style", STYLES)
def test_every_device_is_told_apart_by_an_attribute(style: str) -> None:
    for metric in NUMBERS:
        if metric.scope not in (Scope.HOST, Scope.GPU):
            assert otlp_name(metric, style).instance, metric.name


@pytest.mark.parametrize("style", STYLES)
def test_percentages_become_ratios(style: str) -> None:
    for metric in NUMBERS:
        if metric.unit == "%":
            assert otlp_name(metric, style).value(50.0) == 0.5, metric.name
            assert otlp_name(metric, style).unit == "1", metric.name


@pytest.mark.parametrize(
    ("key", "expected", "raw", "sent"),
    [
        ("cpu_util", OtlpName("cpu_util", "1", 1, 100, (("cpu.mode", "active"),)), 37.5, 0.375),
        ("cpu_guest_nice", OtlpName("cpu_guest_nice", "1", 1, 100, (("cpu.mode", "guest_nice"),)), 1.0, 0.01),
        ("cpu_x_ms", OtlpName("cpu_x_ms", "s", 1, 1000, (("cpu.mode", "irq"),)), 1500, 1.5),
        (
            "cpu_i_node1",
            OtlpName("cpu_i_node1", "1", 1, 100, (("cpu.socket", "1"), ("cpu.mode", "idle")), "cpu.socket"),
            100.0,
            1.0,
        ),
        ("uptime", OtlpName("uptime", "s"), 12, 12),
        (
            "tx_errors.eth0",
            OtlpName(
                "tx_errors",
                "{error}",
                attributes=(("network.interface.name", "eth0"), ("network.io.direction", "transmit")),
                instance="network.interface.name",
            ),
            3,
            3,
        ),
        (
            "rx_bytes.a.b",
            OtlpName(
                "rx_bytes",
                "By",
                attributes=(("network.interface.name", "a.b"), ("network.io.direction", "receive")),
                instance="network.interface.name",
            ),
            2**60,
            2**60,
        ),
        ("fp64_active", OtlpName("fp64_active", "1", attributes=(("pipe", "fp64"),)), 0.25, 0.25),
        ("nvlink_rx_bytes", OtlpName("nvlink_rx_bytes", "By/s", attributes=(("direction", "receive"),)), 5, 5),
        (
            "gpu_device_utilization",
            OtlpName("gpu_device_utilization", "1", 1, 100, (("hw.gpu.task", "device"),)),
            50,
            0.5,
        ),
        ("gpu_frequency_mhz", OtlpName("gpu_frequency_mhz", "MHz"), 1410, 1410),
        ("gpu_power_draw", OtlpName("gpu_power_draw", "W", attributes=(("hw.type", "gpu"),)), 71.5, 71.5),
        (
            "mlx5_0:2.port_rcv_data",
            OtlpName(
                "port_rcv_data",
                "By",
                times=4,
                attributes=(("hw.id", "mlx5_0:2"), ("hw.type", "network"), ("network.io.direction", "receive")),
                instance="hw.id",
            ),
            2**60,
            2**62,
        ),
        (
            "tx_discards_phy.eth0",
            OtlpName(
                "tx_discards_phy_ethtool",
                "{packet}",
                attributes=(("network.interface.name", "eth0"), ("network.io.direction", "transmit")),
                instance="network.interface.name",
            ),
            3,
            3,
        ),
    ],
)
def test_names_of_the_log_as_the_public_dynolog_sends_them(
    key: str, expected: OtlpName, raw: float, sent: float
) -> None:
    assert series(key) == expected
    assert expected.value(raw) == sent


@pytest.mark.parametrize(
    ("key", "name", "unit", "attributes", "raw", "sent"),
    [
        ("cpu_s", "system.cpu.utilization", "1", {"cpu.mode": "system"}, 25.0, 0.25),
        ("cpu_s.cpu7", "system.cpu.utilization", "1", {"cpu.mode": "system", "cpu.logical_number": 7}, 25.0, 0.25),
        ("cpu_x_ms", "system.cpu.time", "s", {"cpu.mode": "interrupt"}, 250, 0.25),
        ("mem_cached_bytes", "system.memory.usage", "By", {"system.memory.state": "cached"}, 4096, 4096),
        (
            "tx_bytes.eth0",
            "system.network.io",
            "By",
            {"network.interface.name": "eth0", "network.io.direction": "transmit"},
            9,
            9,
        ),
        (
            "disk_write_ms.sda",
            "system.disk.operation_time",
            "s",
            {"system.device": "sda", "disk.io.direction": "write"},
            8,
            0.008,
        ),
        ("cpu_frequency_mhz", "system.cpu.frequency", "Hz", {}, 2400.5, 2_400_500_000),
        ("gpu_device_utilization", "hw.gpu.utilization", "1", {"hw.type": "gpu", "hw.gpu.task": "general"}, 40, 0.4),
        ("cpu_util", "dynolog.cpu_util", "1", {"cpu.mode": "active"}, 50.0, 0.5),
        ("cpu_u_node0", "dynolog.cpu_u_node", "1", {"cpu.mode": "user", "cpu.socket": "0"}, 50.0, 0.5),
        ("dynolog_threads", "dynolog.threads", "{thread}", {}, 12, 12),
        ("mlx5_0.np_cnp_sent", "dynolog.np_cnp_sent", "{packet}", {"hw.id": "mlx5_0", "hw.type": "network"}, 1, 1),
    ],
)
def test_names_of_the_semantic_conventions(
    key: str, name: str, unit: str, attributes: dict[str, object], raw: float, sent: float
) -> None:
    found = series(key, "semconv")
    assert (found.name, found.unit, dict(found.attributes)) == (name, unit, attributes)
    assert found.value(raw) == sent


def test_the_modes_of_the_conventions_add_up_to_no_more_than_the_whole() -> None:
    """D04: guest times are inside user and nice, and active is user and system and more."""
    modes = {
        value
        for metric in NUMBERS
        for name in [otlp_name(metric, "semconv")]
        if name.name.startswith("system.cpu.")
        for key, value in name.attributes
        if key == "cpu.mode"
    }
    assert modes == {"user", "system", "nice", "iowait", "interrupt", "softirq", "steal", "idle"}


def test_a_whole_number_stays_one_where_nothing_is_divided() -> None:
    assert isinstance(series("rx_bytes.eth0").value(5), int)
    assert isinstance(series("cpu_u_ms").value(5000), float)


@given(st.text(max_size=300), st.sampled_from(STYLES))
def test_a_key_that_nobody_declared_gets_a_legal_name(key: str, style: str) -> None:
    name = unknown_name(key, style).name
    assert NAME.fullmatch(name), name


def test_who_uses_a_device_is_told_in_the_words_of_the_conventions() -> None:
    told = {LABELS["semconv"].get(label) for label in ("username", "pod_uid", "pod_name", "container_id")}
    assert told == {"user.name", "k8s.pod.uid", "k8s.pod.name", "container.id"}
    assert "username" not in LABELS["dynolog"]
