"""GPU records through every exporter: devices, their MIG instances and the jobs on them are never taken for one another."""

import json
from pathlib import Path
from urllib.parse import parse_qs

import cramjam
import msgspec
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from dynolog.collectors.registry import COLLECTORS, declared_catalogue
from dynolog.exporters.forms.sample_json import SampleJson
from dynolog.exporters.graph.ods import OdsEncoder
from dynolog.exporters.otlp.logs import LogsEncoder
from dynolog.exporters.otlp.metrics import MetricsEncoder
from dynolog.exporters.prometheus.names import Families
from dynolog.exporters.prometheus.remote_write_messages import RemoteWriteEncoder
from dynolog.exporters.selection.rules import Rules
from dynolog.exporters.selection.selection import Selection
from dynolog.exporters.statsd_lines import StatsdLines
from dynolog.exporters.udsrelay import UdsRelayEncoder
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Catalogue, Kind, Metric, Scope
from dynolog.model.record import Record
from dynolog.pipeline.latest import LatestRecords
from fakes.prometheus import OWNERS, WALL_NS, ManualClock, Scraped
from fakes.remote_write import read_request

S = 1_000_000_000
DEVICE = {"device": "0", "gpu_name": "NVIDIA H200", "gpu_uuid": "GPU-0", "minor_id": "3"}
MIG = {**DEVICE, "gpu_uuid": "MIG-1", "gpu_instance_id": "1", "compute_instance_id": "0"}
JOB = {**DEVICE, "job_id": "90210_2"}


def record(labels: dict[str, str], subject: str, wall_ns: int = WALL_NS, **values: float) -> Record:
    keys = {key.replace("__", "."): value for key, value in values.items()}
    return Record(wall_ns=wall_ns, source="gpu", values=keys, labels=labels, intervals_ns={"gpu": S}, subject=subject)


def three(wall_ns: int = WALL_NS) -> list[Record]:
    """A device, an instance of it, and a job on it, all with the same keys."""
    return [
        record(DEVICE, "0", wall_ns, gpu_memory_used_bytes=30, xid_errors__31=1),
        record(MIG, "0-gi1-ci0", wall_ns, gpu_memory_used_bytes=20, xid_errors__31=2),
        record(JOB, "0-use-90210_2", wall_ns, gpu_memory_used_bytes=10, xid_errors__31=3),
    ]


@pytest.fixture
def catalogue() -> Catalogue:
    return declared_catalogue()


def test_the_log_has_a_line_a_device_as_the_original_writes_it() -> None:
    _, text = SampleJson().data(record(DEVICE, "0", gpu_power_draw=300.0, gpu_up=1))
    assert text == (
        '{"device":0,"gpu_name":"NVIDIA H200","gpu_power_draw":"300.000","gpu_up":1,"gpu_uuid":"GPU-0","minor_id":"3"}'
    )


def test_prometheus_keeps_them_apart_and_lets_them_go_one_by_one() -> None:
    scraped = Scraped()
    for one in three():
        scraped.store.put(one)

    def used() -> list[float]:
        return sorted(
            value for key, value in scraped.samples().items() if key.startswith("dynolog_gpu_memory_used_bytes")
        )

    assert used() == [10, 20, 30]
    for _ in range(3):
        scraped.clock.move(1)
        scraped.store.put(three()[0])
    scraped.clock.move(1)
    assert used() == [30]
    scraped.clock.move(10)
    assert used() == []
    assert scraped.samples()['dynolog_source_up{source="gpu"}'] == 0


def test_prometheus_labels_of_codes_links_and_reasons() -> None:
    scraped = Scraped()
    labels = {"device": "0"}
    values = {"xid_errors__31": 2, "nvlink_replays__4": 1, "gpu_throttle_ms__power": 1500, "nvlink_is_up__4": 1}
    scraped.store.put(record(labels, "0", **values))
    samples = scraped.samples()
    assert samples['dynolog_gpu_xid_errors_total{device="0",xid="31"}'] == 2
    assert samples['dynolog_gpu_nvlink_replays_total{device="0",link="4"}'] == 1
    assert samples['dynolog_gpu_nvlink_is_up{device="0",link="4"}'] == 1
    assert samples['dynolog_gpu_throttle_seconds_total{device="0",reason="power"}'] == 1.5


def test_no_two_gpu_metrics_share_a_name_in_prometheus(catalogue: Catalogue) -> None:
    for style in ("standard", "dynolog"):
        families = Families(catalogue, style)
        names = [families.of(metric).sample for metric in GPU_METRICS]
        assert len(set(names)) == len(names)
        assert not [name for name in names if style == "standard" and "_seconds_seconds" in name]


def test_a_metric_declared_at_run_time_has_its_family(catalogue: Catalogue) -> None:
    """DCGM describes its fields only when it runs."""
    scraped = Scraped(metrics=catalogue)
    field = Metric(name="dcgm_profiling_1099", kind=Kind.RATE, unit="By/s", description="a field", scope=Scope.GPU)
    catalogue.declare([field])
    scraped.store.put(record({"device": "0"}, "0", dcgm_profiling_1099=7.0))
    family = scraped.families()["dynolog_gpu_dcgm_profiling_1099_bytes_per_second"]
    assert family.documentation == "a field"


def test_a_renamed_catalogue_learns_what_is_declared_later(catalogue: Catalogue) -> None:
    selection = Selection(Rules(rename={"field_a": "watts"}), catalogue, {})
    renamed = selection.renamed_catalogue
    catalogue.declare([Metric(name="field_a", kind=Kind.GAUGE, unit="W", description="power", scope=Scope.GPU)])
    series = renamed.resolve("watts")
    assert series is not None
    assert series.metric.unit == "W"


def test_remote_write_has_a_series_for_each(catalogue: Catalogue) -> None:
    encoder = RemoteWriteEncoder(catalogue, "h", lambda data: bytes(cramjam.snappy.compress_raw(data)), OWNERS)
    series = [one for made in three() for one in read_request(encoder.encode([made])[0].body)]
    used = [one for one in series if one.labels["__name__"] == "dynolog_gpu_memory_used_bytes"]
    assert [one.value for one in used] == [30, 20, 10]
    assert len({tuple(sorted(one.labels.items())) for one in used}) == 3
    again = [one for made in three(WALL_NS + S) for one in read_request(encoder.encode([made])[0].body)]
    totals = [one.value for one in again if one.labels["__name__"] == "dynolog_gpu_xid_errors_total"]
    assert totals == [2, 4, 6]  # each sums up its own


@pytest.mark.parametrize("style", ["dynolog", "semconv"])
def test_otlp_counts_each_by_itself_and_names_the_device(catalogue: Catalogue, style: str) -> None:
    encoder = MetricsEncoder(catalogue, OWNERS, {}, style=style, cumulative=True)
    encoder.encode(three())
    (payload,) = encoder.encode(three(WALL_NS + S))
    request = ExportMetricsServiceRequest.FromString(payload.body)
    metrics = {one.name: one for one in request.resource_metrics[0].scope_metrics[0].metrics}
    points = metrics["xid_errors" if style == "dynolog" else "dynolog.xid_errors"].sum.data_points
    assert [point.as_int for point in points] == [2, 4, 6]
    attributes = {one.key: one.value.string_value for one in points[1].attributes}
    assert attributes["hw.id"] == "0"
    assert attributes["hw.model"] == "NVIDIA H200"
    assert attributes["gpu_instance_id"] == "1"
    assert attributes["dynolog.gpu.xid"] == "31"
    assert "minor_id" not in attributes


def test_hardware_conventions_where_they_have_the_quantity(catalogue: Catalogue) -> None:
    made = record(DEVICE, "0", gpu_device_utilization=50, gpu_energy_joules=9, ecc_corrected_errors=1)
    (payload,) = MetricsEncoder(catalogue, OWNERS, {}, style="semconv").encode([made])
    request = ExportMetricsServiceRequest.FromString(payload.body)
    metrics = {one.name: one for one in request.resource_metrics[0].scope_metrics[0].metrics}
    assert metrics["hw.gpu.utilization"].gauge.data_points[0].as_double == 0.5
    assert metrics["hw.energy"].sum.data_points[0].as_int == 9
    assert metrics["hw.errors"].unit == "{error}"


def test_plain_statsd_has_a_path_for_each(catalogue: Catalogue) -> None:
    lines = StatsdLines(catalogue, "h", "dynolog", tags=False)
    made = [line.decode() for one in three() for line in lines.lines(one)]
    assert made == [
        "dynolog.h.gpu0.gpu_memory_used_bytes:30|g",
        "dynolog.h.gpu0.xid_errors.xid31:1|c",
        "dynolog.h.gpu0-gi1-ci0.gpu_memory_used_bytes:20|g",
        "dynolog.h.gpu0-gi1-ci0.xid_errors.xid31:2|c",
        "dynolog.h.gpu0-use-90210_2.gpu_memory_used_bytes:10|g",
        "dynolog.h.gpu0-use-90210_2.xid_errors.xid31:3|c",
    ]


def test_dogstatsd_has_tags_for_each(catalogue: Catalogue) -> None:
    lines = StatsdLines(catalogue, "h", "dynolog", tags=True)
    made = [line.decode() for one in three() for line in lines.lines(one)]
    assert made[1].startswith("dynolog.xid_errors:1|c|#host:h,xid:31,device:0")
    assert "gpu_instance_id:1" in made[3]
    assert "job_id:90210_2" in made[5]


def test_ods_has_an_entity_for_each() -> None:
    entities = [
        {point["entity"] for point in json.loads(parse_qs(payload.body.decode())["datapoints"][0])}
        for payload in OdsEncoder("h", "", "1").encode(three())
    ]
    assert entities == [{"h.gpu.0"}, {"h.gpu.0-gi1-ci0"}, {"h.gpu.0-use-90210_2"}]


def test_the_relay_on_this_machine_calls_them_by_the_name_of_the_original() -> None:
    for payload in UdsRelayEncoder("h").encode(three()):
        assert payload.body.startswith(b"::dynolog_dcgm_gpu_monitor,{")


def test_log_records_of_opentelemetry_have_the_labels() -> None:
    made = LogsEncoder({}, {}).log_record(three()[1])
    attributes = {one.key: one.value for one in made.attributes}
    assert attributes["device"].int_value == 0
    assert attributes["gpu_instance_id"].string_value == "1"
    assert attributes["gpu_memory_used_bytes"].int_value == 20


def test_latest_values_are_kept_for_each(catalogue: Catalogue) -> None:
    latest = LatestRecords(catalogue, COLLECTORS, ManualClock())
    for one in three():
        latest.put(one)
    assert [one.values["gpu_memory_used_bytes"] for one in latest.latest("gpu")] == [30, 20, 10]


def test_longer_intervals_keep_them_apart(catalogue: Catalogue) -> None:
    selection = Selection(Rules(interval_s=10), catalogue, OWNERS)
    wall_ns = WALL_NS // (10 * S) * 10 * S
    out = [one for step in range(1, 22) for one in selection.apply(three(wall_ns + step * S))]
    assert {one.about: one.values["xid_errors.31"] for one in out} == {"0": 10, "0-gi1-ci0": 20, "0-use-90210_2": 30}


def test_records_travel_with_their_subject(tmp_path: Path) -> None:
    for one in three():
        assert msgspec.json.decode(msgspec.json.encode(one), type=Record).about == one.subject
