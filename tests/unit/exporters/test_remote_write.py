"""Remote-write requests, read back with the protobuf runtime, and sent to a real HTTP server."""

import struct
import sys

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.prometheus.remote_write_messages import RemoteWriteEncoder, varint
from dynolog.exporters.prometheus.remote_write_spec import make
from dynolog.model.errors import FlagError
from dynolog.model.metric import Catalogue, Kind, Metric, Scope
from dynolog.model.record import Record
from fakes.exporter_context import WALL_NS, exporter_context, record
from fakes.http_receiver import answer, http_receiver
from fakes.remote_write import WrittenSample, read_request

METRICS = (
    Metric(name="cpu_util", kind=Kind.RATIO, unit="%", description="share"),
    Metric(name="rx_bytes", kind=Kind.DELTA, unit="By", description="received", scope=Scope.NIC),
    Metric(name="gpu_power_draw", kind=Kind.GAUGE, unit="W", description="power", scope=Scope.GPU),
    Metric(name="boot_id", kind=Kind.LABEL, unit="1", description="which boot"),
)
HOST = {"instance": "gpu17", "job": "dynolog"}


def encoder() -> RemoteWriteEncoder:
    owners = {(metric.name, metric.scope): "network" if metric.scope is Scope.NIC else "cpu" for metric in METRICS}
    return RemoteWriteEncoder(
        Catalogue(METRICS), "gpu17", lambda data: bytes(cramjam.snappy.compress_raw(data)), owners
    )


def written(made: Record, by: RemoteWriteEncoder | None = None) -> list[WrittenSample]:
    payloads = (by or encoder()).encode([made])
    return [sample for payload in payloads for sample in read_request(payload.body)]


def test_names_units_labels_and_the_time_of_the_record() -> None:
    assert written(record({"cpu_util": 12.5, "rx_bytes.eth0": 42, "boot_id": "b-1"})) == [
        WrittenSample({"__name__": "dynolog_cpu_utilization_ratio", **HOST}, 0.125, WALL_NS // 10**6),
        WrittenSample(
            {"__name__": "dynolog_network_receive_bytes_total", "device": "eth0", **HOST}, 42, WALL_NS // 10**6
        ),
        WrittenSample({"__name__": "dynolog_boot_info", "boot_id": "b-1", **HOST}, 1, WALL_NS // 10**6),
    ]


def test_deltas_become_counters_that_grow_whatever_is_missing_between() -> None:
    by = encoder()
    records = (record({"rx_bytes.eth0": 2**53}), record({}), record({"rx_bytes.eth0": 1, "rx_bytes.eth1": 5}))
    values = [[sample.value for sample in written(made, by)] for made in records]
    assert values == [[2.0**53], [], [float(2**53 + 1), 5]]


def test_counters_go_on_after_a_reload() -> None:
    first, second = encoder(), encoder()
    written(record({"rx_bytes.eth0": 40}), first)
    second.take_over(first)
    assert [sample.value for sample in written(record({"rx_bytes.eth0": 2}), second)] == [42]


def test_a_gpu_s_series_changes_with_its_job_and_the_old_one_ends() -> None:
    """Else the power of a GPU would count twice for five minutes."""
    by = encoder()
    jobs = []
    for device, job in (("0", "1"), ("1", "1"), ("0", "2"), ("0", "2")):
        samples = written(record({"gpu_power_draw": 300.0}, source="gpu", device=device, job_id=job), by)
        jobs.append([(one.labels["device"], one.labels["job_id"], ended(one)) for one in samples])
    assert jobs == [
        [("0", "1", False)],
        [("1", "1", False)],
        [("0", "1", True), ("0", "2", False)],
        [("0", "2", False)],
    ]


def ended(sample: WrittenSample) -> bool:
    """Whether this is the NaN that ends a series, and not just any."""
    return struct.pack("<d", sample.value) == struct.pack("<Q", 0x7FF0000000000002)


def test_a_device_that_has_gone_ends_its_series_once_and_a_collector_that_was_not_read_ends_none() -> None:
    by = encoder()

    def names(values: dict[str, int | float | str], *collectors: str) -> list[str]:
        intervals = dict.fromkeys(collectors, 10**9)
        made = Record(wall_ns=WALL_NS, source="kernel", values=values, intervals_ns=intervals)
        return [one.labels.get("device", "host") + " ended" * ended(one) for one in written(made, by)]

    assert names({"cpu_util": 1.0, "rx_bytes.eth0": 1, "rx_bytes.eth1": 1}, "cpu", "network") == [
        "host",
        "eth0",
        "eth1",
    ]
    assert names({"cpu_util": 1.0}, "cpu") == ["host"]
    assert names({"cpu_util": 1.0, "rx_bytes.eth0": 1}, "cpu", "network") == ["host", "eth0", "eth1 ended"]
    assert names({"cpu_util": 1.0, "rx_bytes.eth0": 1}, "cpu", "network") == ["host", "eth0"]
    assert names({"rx_bytes.eth1": 1}, "network") == ["eth1", "eth0 ended"]


def test_what_is_no_sample_is_left_out() -> None:
    assert written(record({"cpu_util": float("nan"), "rx_bytes.eth0": -1, "cpu_util.x": "text"})) == []
    assert encoder().encode([record({})]) == []


@given(st.integers(0, 2**63))
def test_varints_are_those_of_the_runtime(number: int) -> None:
    value = 0
    data = varint(number)
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * place
    assert value == number
    assert [byte >> 7 for byte in data] == [1] * (len(data) - 1) + [0]


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8) | st.text(max_size=8).map("rx_bytes.{}".format),
        st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
        max_size=8,
    ),
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=3),
    st.text(max_size=8),
)
def test_every_request_is_one_that_a_strict_receiver_takes(
    values: dict[str, int | float | str], labels: dict[str, str], host: str
) -> None:
    by = RemoteWriteEncoder(Catalogue(METRICS), host, lambda data: bytes(cramjam.snappy.compress_raw(data)))
    for payload in by.encode([Record(wall_ns=WALL_NS, source="kernel", values=values, labels=labels)]):
        read_request(payload.body)


def test_the_headers_of_the_protocol_and_of_the_user_arrive() -> None:
    with http_receiver() as receiver:
        receiver.answers = [answer(503, Retry_After="0")]
        receiver.then = answer(204)
        exporter = make(
            exporter_context(
                metrics=METRICS,
                remote_write_url=f"http://127.0.0.1:{receiver.port}/api/v1/write",
                remote_write_headers="x-scope-orgid=team%2C1,authorization=Bearer a=b",
            )
        )
        exporter.export([record({"cpu_util": 12.5})])
        first, second = receiver.wait_for(2)
        exporter.close()
    assert first.raw == second.raw
    assert read_request(second.raw)[0].value == 0.125
    assert second.path == "/api/v1/write"
    assert {
        name: second.headers[name]
        for name in (
            "content-type",
            "content-encoding",
            "x-prometheus-remote-write-version",
            "x-scope-orgid",
            "authorization",
        )
    } == {
        "content-type": "application/x-protobuf",
        "content-encoding": "snappy",
        "x-prometheus-remote-write-version": "0.1.0",
        "x-scope-orgid": "team,1",
        "authorization": "Bearer a=b",
    }


def test_flags_that_cannot_be_used_end_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FlagError) as raised:
        make(exporter_context(remote_write_headers="Bearer-secret"))
    assert "secret" not in str(raised.value)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(FlagError, match=r"pip install 'dynolog\[remote-write\]'"):
        make(exporter_context())
