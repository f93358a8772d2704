"""Records in the log: in the public Dynolog's form, as JSON, and as logfmt."""

import json
import os
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.forms.json_line import HEAD, JsonLines
from dynolog.exporters.forms.sample_json import SampleJson
from dynolog.exporters.forms.stamps import Stamps
from dynolog.exporters.log import LineLogExporter, LogExporter, make
from fakes.exporter_context import WALL_NS, LogLinesKept, exporter_context, record

VALUES = st.dictionaries(st.text(max_size=20), st.integers() | st.floats() | st.text(max_size=20), max_size=20)


def data(**fields: object) -> dict[str, object]:
    """The object that a strict reader gets for these arguments of `record`."""
    text = SampleJson().data(record(**fields))[1]  # type: ignore[arg-type] # as record() takes them
    parsed: dict[str, object] = json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} in JSON"))
    return parsed


def test_the_two_lines_are_those_of_the_original() -> None:
    log = LogLinesKept()
    LogExporter(exporter_context(log)).export(
        [record({"uptime": 86400, "cpu_i": 71.3424, "cpu_u_ms": 0, "rx_bytes.eth0": 5})]
    )
    assert log.logged == [
        ("log.py", 37, "Logging : 4 values"),
        (
            "log.py",
            38,
            'time = 2022-07-21T23:42:34.141Z data = {"cpu_i":"71.342","cpu_u_ms":0,"rx_bytes.eth0":5,"uptime":86400}',
        ),
    ]
    assert log.lines == []


def test_a_gpu_record_carries_its_device_as_a_number_and_its_labels_as_text() -> None:
    assert data(values={"sm_active_ratio": 0.5, "gpu_power_draw": 300.0}, device="3", job_id="90210_2") == {
        "device": 3,
        "gpu_power_draw": "300.000",
        "job_id": "90210_2",
        "sm_active_ratio": "0.500",
    }


def test_a_device_that_is_no_plain_number_is_text() -> None:
    assert data(values={}, device="0.1")["device"] == "0.1"
    assert data(values={}, device="\u0663")["device"] == "\u0663"  # an Arabic three is a digit, but no JSON


def test_text_values_are_strings() -> None:
    assert data(values={"boot_id": 'a"b\\c\nd'}) == {"boot_id": 'a"b\\c\nd'}


def test_a_value_that_is_not_finite_is_left_out_and_not_counted() -> None:
    count, text = SampleJson().data(record({"a": float("nan"), "b": float("inf"), "c": 1.0}))
    assert (count, text) == (1, '{"c":"1.000"}')


def test_keys_can_be_added_and_left_out() -> None:
    count, text = SampleJson().data(record({"a": 1}, device="3"), {"host": "h"}, without=("device",))
    assert (count, text) == (2, '{"a":1,"host":"h"}')


def test_names_from_outside_cannot_break_the_line() -> None:
    """A mount point may hold anything: quotes, newlines, bytes that are no UTF-8."""
    key = 'fs_free_bytes./mnt/"x"\n\udcff'
    assert data(values={key: 1}) == {'fs_free_bytes./mnt/"x"\n\ufffd': 1}
    assert "\n" not in SampleJson().data(record({key: 1}))[1]


@given(st.integers(min_value=0, max_value=4 * 10**18))
def test_stamps_are_utc_whatever_the_zone_of_the_machine(wall_ns: int) -> None:
    expected = datetime.fromtimestamp(wall_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert Stamps().millis(wall_ns) == f"{expected}.{wall_ns // 10**6 % 1000:03d}Z"
    assert Stamps().nanos(wall_ns) == f"{expected}.{wall_ns % 10**9:09d}Z"


def test_the_second_is_not_kept_for_a_stamp_of_another_second() -> None:
    stamps = Stamps()
    assert stamps.millis(WALL_NS) == "2022-07-21T23:42:34.141Z"
    assert stamps.millis(WALL_NS + 10**9) == "2022-07-21T23:42:35.141Z"
    assert stamps.millis(WALL_NS) == "2022-07-21T23:42:34.141Z"


@given(VALUES)
def test_every_record_is_valid_json_with_sorted_keys_and_a_true_count(values: dict[str, int | float | str]) -> None:
    values.pop("device", None)
    count, text = SampleJson().data(record(values))
    pairs = json.loads(text, object_pairs_hook=list)
    assert len(pairs) == count
    assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
    for key, value in pairs:
        given_value = values[key]
        if isinstance(given_value, float):
            assert float(value) == pytest.approx(given_value, abs=0.00051)
        else:
            assert value == given_value


def test_json_is_one_whole_line_with_numbers_as_numbers() -> None:
    log = LogLinesKept()
    exporter = make(exporter_context(log, log_format="json"))
    exporter.export([record({"cpu_i": 71.3424, "uptime": 86400, "boot_id": "x"}, job_id="90210_2")])
    exporter.close()
    assert isinstance(exporter, LineLogExporter)
    (line,) = log.lines
    assert line == (
        b'{"time":"2022-07-21T23:42:34.141104000Z","host":"gpu17","source":"kernel","job_id":"90210_2",'
        b'"cpu_i":71.3424,"uptime":86400,"boot_id":"x"}'
    )
    assert log.logged == []


def test_logfmt_is_one_whole_line() -> None:
    log = LogLinesKept()
    make(exporter_context(log, log_format="logfmt")).export(
        [record({"cpu_i": 71.3424, "uptime": 86400}, gpu_name="NVIDIA H200")]
    )
    assert log.lines == [
        b'time=2022-07-21T23:42:34.141104000Z host=gpu17 source=kernel gpu_name="NVIDIA H200" cpu_i=71.3424 uptime=86400'
    ]


def test_a_label_that_a_user_called_host_does_not_hide_the_host() -> None:
    fields = json.loads(JsonLines("gpu17").line(record({}, host="other", time="now")))
    assert (fields["host"], fields["label.host"], fields["label.time"]) == ("gpu17", "other", "now")


def test_two_names_that_are_no_utf8_stay_two() -> None:
    values: dict[str, int | float | str] = {"a." + os.fsdecode(b"\xff"): 1, "a." + os.fsdecode(b"\xfe"): 2}
    fields = json.loads(JsonLines("h").line(record(values)))
    assert (fields["a.\\udcff"], fields["a.\\udcfe"]) == (1, 2)


@given(VALUES, st.text(max_size=5))
def test_every_json_line_is_one_line_that_gives_the_values_back(
    values: dict[str, int | float | str], host: str
) -> None:
    values = {key: value for key, value in values.items() if key not in HEAD}
    line = JsonLines(host).line(record(values))
    assert b"\n" not in line
    fields = json.loads(line, parse_constant=lambda token: pytest.fail(f"{token} in JSON"))
    assert (fields.pop("time"), fields.pop("host"), fields.pop("source")) == (
        "2022-07-21T23:42:34.141104000Z",
        host,
        "kernel",
    )
    assert fields == {key: value for key, value in values.items() if not isinstance(value, float) or value - value == 0}
