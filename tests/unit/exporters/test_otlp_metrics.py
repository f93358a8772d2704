"""Records as OTLP metrics, looked at by a strict receiver."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA, Metric, NumberDataPoint

from dynolog.exporters.otlp.metrics import MetricsEncoder
from dynolog.model.metric import Kind
from dynolog.model.record import Record
from fakes.otlp_catalogue import OWNERS, example_instance, full_catalogue
from fakes.otlp_checks import StrictMetrics, number, plain

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
CATALOGUE = full_catalogue()
RESOURCE = {"service.name": "dynolog", "host.name": "gpu17"}


def encoder(**options: object) -> MetricsEncoder:
    return MetricsEncoder(CATALOGUE, OWNERS, RESOURCE, **options)  # type: ignore[arg-type]  # options vary


def record(
    values: dict[str, int | float | str], second: int = 0, intervals: dict[str, int] | None = None, **labels: str
) -> Record:
    given_ns = {name: seconds * SECOND for name, seconds in (intervals or {"cpu": 1, "network": 1}).items()}
    source = "gpu" if labels else "kernel"
    return Record(wall_ns=T0 + second * SECOND, source=source, values=values, labels=labels, intervals_ns=given_ns)


def request_of(*records: Record, made: MetricsEncoder | None = None) -> ExportMetricsServiceRequest:
    (payload,) = (made or encoder()).encode(records)
    assert payload.records == len(records)
    assert payload.content_type == "application/x-protobuf"
    return ExportMetricsServiceRequest.FromString(payload.body)


def metrics_of(request: ExportMetricsServiceRequest) -> dict[str, Metric]:
    (of_resource,) = request.resource_metrics
    (scope,) = of_resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def points_of(metric: Metric) -> list[NumberDataPoint]:
    return list(metric.sum.data_points or metric.gauge.data_points)


def test_a_share_is_a_gauge_without_a_start_time() -> None:
    metric = metrics_of(request_of(record({"cpu_u": 12.5})))["cpu_u"]
    assert (metric.unit, metric.WhichOneof("data")) == ("1", "gauge")
    assert metric.description == "Share of CPU time of the host: user mode, guests included"
    (point,) = metric.gauge.data_points
    assert (point.as_double, point.time_unix_nano, point.start_time_unix_nano) == (0.125, T0, 0)
    assert {pair.key: plain(pair.value) for pair in point.attributes} == {"cpu.mode": "user"}


def test_growth_is_a_monotonic_delta_sum_since_the_interval_of_its_own_collector_began() -> None:
    request = request_of(
        record({"rx_bytes.eth0": 7, "cpu_s_ms": 1500}, intervals={"cpu": 2, "network": 10, "disk": 60})
    )
    rx, cpu = metrics_of(request)["rx_bytes"], metrics_of(request)["cpu_s_ms"]
    assert rx.sum.is_monotonic
    assert rx.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
    (point,) = rx.sum.data_points
    assert (point.as_int, point.start_time_unix_nano, point.time_unix_nano) == (7, T0 - 10 * SECOND, T0)
    (point,) = cpu.sum.data_points
    assert (point.as_double, point.start_time_unix_nano) == (1.5, T0 - 2 * SECOND)


def test_the_points_of_one_metric_stand_together_over_devices_and_records() -> None:
    records = [record({"rx_bytes.eth0": second, "rx_bytes.eth1": 5}, second) for second in range(3)]
    (metric,) = metrics_of(request_of(*records)).values()
    assert [
        (plain(point.attributes[0].value), number(point), point.start_time_unix_nano - T0)
        for point in metric.sum.data_points
    ] == [
        ("eth0", 0, -SECOND),
        ("eth1", 5, -SECOND),
        ("eth0", 1, 0),
        ("eth1", 5, 0),
        ("eth0", 2, SECOND),
        ("eth1", 5, SECOND),
    ]


def test_gauges_as_the_public_dynolog_sends_them_on_request() -> None:
    metric = metrics_of(request_of(record({"rx_bytes.eth0": 7}), made=encoder(gauges=True)))["rx_bytes"]
    (point,) = metric.gauge.data_points
    assert (point.as_int, point.start_time_unix_nano) == (7, 0)


def test_running_totals_begin_anew_after_a_reset_and_say_since_when() -> None:
    """F14: the counter of eth0 was reset at second 2, so that there is no value; eth1 goes on."""
    made, totals = encoder(cumulative=True), []
    for second, eth0 in enumerate([5, 6, None, 7, 8]):
        values: dict[str, int | float | str] = {"rx_bytes.eth1": 1}
        if eth0 is not None:
            values["rx_bytes.eth0"] = eth0
        (metric,) = metrics_of(request_of(record(values, second), made=made)).values()
        totals.append(
            {
                str(plain(point.attributes[0].value)): (number(point), (point.start_time_unix_nano - T0) // SECOND)
                for point in metric.sum.data_points
            }
        )
    assert [total.get("eth0") for total in totals] == [(5, -1), (11, -1), None, (7, 2), (15, 2)]
    assert [total["eth1"] for total in totals] == [(1, -1), (2, -1), (3, -1), (4, -1), (5, -1)]


@pytest.mark.parametrize(("style", "expected"), [("dynolog", (8, -1)), ("semconv", (3, 0))])
def test_running_totals_go_on_after_a_reload_unless_the_names_and_so_the_units_changed(
    style: str, expected: tuple[int, int]
) -> None:
    first, second = encoder(cumulative=True), encoder(cumulative=True, style=style)
    request_of(record({"rx_bytes.eth0": 5}, 0), made=first)
    second.take_over(first)
    (metric,) = metrics_of(request_of(record({"rx_bytes.eth0": 3}, 1), made=second)).values()
    (point,) = metric.sum.data_points
    assert (point.as_int, (point.start_time_unix_nano - T0) // SECOND) == expected


def test_running_totals_begin_anew_after_records_were_lost() -> None:
    made = encoder(cumulative=True)
    request_of(record({"rx_bytes.eth0": 5}, 0), made=made)
    (metric,) = metrics_of(request_of(record({"rx_bytes.eth0": 3}, 9), made=made)).values()
    (point,) = metric.sum.data_points
    assert (point.as_int, point.start_time_unix_nano) == (3, T0 + 8 * SECOND)


def test_a_gpu_record_carries_device_and_attribution_as_attributes() -> None:
    labels = {
        "device": "3",
        "minor_id": "3",
        "gpu_name": "H200",
        "gpu_uuid": "GPU-1",
        "job_id": "90210_7",
        "username": "ann",
    }
    request = request_of(record({"fp16_active": 0.5, "gpu_device_utilization": 50}, 0, {"gpu": 10}, **labels))
    (point,) = points_of(metrics_of(request)["fp16_active"])
    assert {pair.key: plain(pair.value) for pair in point.attributes} == {
        "pipe": "fp16",
        "hw.id": "3",
        "hw.model": "H200",
        "gpu_uuid": "GPU-1",
        "job_id": "90210_7",
        "username": "ann",
    }
    assert number(points_of(metrics_of(request)["gpu_device_utilization"])[0]) == 0.5


def test_labels_have_the_conventions_names_with_semconv() -> None:
    made = encoder(style="semconv")
    request = request_of(record({"gpu_power_draw": 70.5}, device="0", pod_name="p", pod_namespace="n"), made=made)
    (point,) = points_of(metrics_of(request)["hw.power"])
    found = {pair.key: plain(pair.value) for pair in point.attributes}
    assert found == {"hw.type": "gpu", "hw.id": "0", "k8s.pod.name": "p", "k8s.namespace.name": "n"}


def test_what_is_no_number_is_left_out() -> None:
    """F03, F13: texts, infinities, NaN, and growth below nothing."""
    values: dict[str, int | float | str] = {
        "boot_id": "x",
        "load_1m": float("nan"),
        "load_5m": float("inf"),
        "rx_bytes.eth0": -1,
        "uptime": 5,
    }
    assert list(metrics_of(request_of(record(values)))) == ["uptime"]


def test_a_record_with_nothing_to_send_is_no_request() -> None:
    assert encoder().encode([record({"boot_id": "x"})]) == []


def test_a_whole_number_beyond_64_bits_is_sent_as_a_double() -> None:
    (point,) = points_of(metrics_of(request_of(record({"rx_bytes.eth0": 1 << 63})))["rx_bytes"])
    assert point.as_double == float(1 << 63)


def test_a_value_that_nobody_declared_is_a_gauge_under_its_own_name() -> None:
    metric = metrics_of(request_of(record({"new%thing": 3})))["new_thing"]
    assert number(metric.gauge.data_points[0]) == 3


def test_a_name_from_outside_that_is_no_utf_8_does_not_stop_the_rest() -> None:
    request = request_of(record({"filesystem_size_bytes./mnt/\udcff": 1, "uptime": 1}))
    (point,) = points_of(metrics_of(request)["filesystem_size_bytes"])
    assert plain(point.attributes[0].value) == "/mnt/\ufffd"


def test_the_sender_is_in_the_resource_and_the_scope() -> None:
    (of_resource,) = request_of(record({"uptime": 1})).resource_metrics
    assert {pair.key: plain(pair.value) for pair in of_resource.resource.attributes} == RESOURCE
    assert of_resource.scope_metrics[0].scope.name == "dynolog"


def test_a_long_backlog_makes_requests_that_receivers_take() -> None:
    """Receivers refuse more than 4 MB."""
    values: dict[str, int | float | str] = {f"cpu_u.cpu{number}": 1.0 for number in range(1024)}
    payloads = encoder().encode([record(values, second) for second in range(40)])
    assert sum(payload.records for payload in payloads) == 40
    assert len(payloads) > 1
    assert max(len(payload.body) for payload in payloads) < 2_000_000


KEYS = [metric.key(example_instance(metric)) for metric in CATALOGUE if metric.kind is not Kind.LABEL]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(KEYS), st.integers(-1, 2**40) | st.floats(), max_size=30),
            st.sampled_from([1, 1, 1, 2, 5]),
            st.integers(900_000_000, 1_100_000_000),
        ),
        max_size=8,
    ),
    st.sampled_from(["dynolog", "semconv"]),
    st.booleans(),
    st.booleans(),
)
def test_a_strict_receiver_has_nothing_to_say_whatever_the_records(
    steps: list[tuple[dict[str, int | float], int, int]], style: str, gauges: bool, cumulative: bool
) -> None:
    made, strict, wall_ns = encoder(style=style, gauges=gauges, cumulative=cumulative), StrictMetrics(), T0
    intervals = set(OWNERS.values())
    for values, seconds, interval_ns in steps:
        wall_ns += seconds * SECOND
        one = Record(
            wall_ns=wall_ns, source="kernel", values=values, intervals_ns=dict.fromkeys(intervals, interval_ns)
        )
        for payload in made.encode([one]):
            strict.look(ExportMetricsServiceRequest.FromString(payload.body))
    assert strict.faults == []


@pytest.mark.parametrize("key", KEYS)
def test_every_metric_arrives_with_its_value(key: str) -> None:
    request = request_of(record({key: 3}, intervals=dict.fromkeys(OWNERS.values(), 1)))
    (metric,) = metrics_of(request).values()
    (point,) = points_of(metric)
    factor = {"1": (100, 1), "s": (1000, 1), "By": (1, 0.25)}.get(metric.unit, (1,))
    assert number(point) in [3 / divisor for divisor in factor]
