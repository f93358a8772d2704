"""Records as OpenTelemetry log records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from dynolog.exporters.otlp.logs import LogsEncoder
from dynolog.exporters.otlp.mappings import Collected, Naming, Renamed
from dynolog.model.record import Record
from fakes.otlp_checks import StrictLogs, plain

T0 = 1_700_000_000_141_000_000
RESOURCE = {"service.name": "dynolog", "host_name": "gpu17"}


def record(values: dict[str, int | float | str], **labels: str) -> Record:
    return Record(wall_ns=T0, source="gpu", values=values, labels=labels)


def attributes(made: LogRecord) -> dict[str, object]:
    return {pair.key: plain(pair.value) for pair in made.attributes}


def one(given_record: Record, mappings: dict[str, Naming] | None = None) -> LogRecord:
    (payload,) = LogsEncoder(RESOURCE, mappings or {}).encode([given_record])
    (of_resource,) = ExportLogsServiceRequest.FromString(payload.body).resource_logs
    (scope,) = of_resource.scope_logs
    (made,) = scope.log_records
    return made


def test_each_value_and_label_is_an_attribute_of_its_own_type() -> None:
    made = one(record({"sm_active_ratio": 0.5, "dcgm_error": 0}, device="3", gpu_name="H200", job_id="90210_7"))
    assert (made.time_unix_nano, made.observed_time_unix_nano) == (T0, T0)
    assert attributes(made) == {
        "sample_time": 1_700_000_000,
        "sm_active_ratio": 0.5,
        "dcgm_error": 0,
        "device": 3,
        "gpu_name": "H200",
        "job_id": "90210_7",
    }


def test_mappings_rename_scale_and_collect() -> None:
    mappings: dict[str, Naming] = {
        "sm_active_ratio": Renamed("sm_pct", 100.0),
        "gpu_name": Renamed("model"),
        "dcgm_error": Collected("error", "dcgm"),
        "gpu_power_draw": Collected("error", "power"),
    }
    made = one(record({"sm_active_ratio": 0.5, "dcgm_error": 1, "gpu_power_draw": 1.5}, gpu_name="H200"), mappings)
    assert attributes(made) == {
        "sample_time": 1_700_000_000,
        "sm_pct": 50.0,
        "model": "H200",
        "error": {"dcgm": "1", "power": "1.500000"},
    }


def test_a_column_wins_over_a_value_of_the_same_name() -> None:
    """Two attributes of one name are not allowed."""
    made = one(record({"error": 1, "dcgm_error": 1}), {"dcgm_error": Collected("error", "dcgm")})
    assert sorted(pair.key for pair in made.attributes) == ["error", "sample_time"]
    assert attributes(made)["error"] == {"dcgm": "1"}


def test_what_is_not_finite_is_left_out() -> None:
    assert attributes(one(record({"a": float("nan"), "b": float("-inf"), "c": 1}))) == {
        "sample_time": 1_700_000_000,
        "c": 1,
    }


def test_one_log_record_for_each_device_and_report_under_one_resource() -> None:
    (payload,) = LogsEncoder(RESOURCE, {}).encode([record({"a": 1}, device=str(number)) for number in range(8)])
    assert payload.records == 8
    (of_resource,) = ExportLogsServiceRequest.FromString(payload.body).resource_logs
    assert {pair.key: plain(pair.value) for pair in of_resource.resource.attributes} == RESOURCE
    assert len(of_resource.scope_logs[0].log_records) == 8


def test_a_long_backlog_makes_requests_that_receivers_take() -> None:
    values: dict[str, int | float | str] = {f"rx_bytes.interface{number}": 2**40 for number in range(1000)}
    payloads = LogsEncoder(RESOURCE, {}).encode([record(values) for _ in range(64)])
    assert sum(payload.records for payload in payloads) == 64
    assert max(len(payload.body) for payload in payloads) < 2_000_000


def test_nothing_makes_no_request() -> None:
    assert LogsEncoder(RESOURCE, {}).encode([]) == []


@settings(deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=20), st.integers() | st.floats() | st.text(max_size=20), max_size=20)
)
def test_a_strict_receiver_has_nothing_to_say_whatever_the_record(values: dict[str, int | float | str]) -> None:
    strict = StrictLogs()
    mappings: dict[str, Naming] = {"a": Renamed("b"), "c": Collected("b", "x"), "d": Collected("sample_time", "x")}
    for payload in LogsEncoder(RESOURCE, mappings).encode([record(values)]):
        strict.look(ExportLogsServiceRequest.FromString(payload.body))
    assert strict.faults == []


@pytest.mark.parametrize("device", ["GPU-1", "²", ""])
def test_a_device_that_is_no_number_stays_a_text(device: str) -> None:
    assert attributes(one(record({}, device=device)))["device"] == device
