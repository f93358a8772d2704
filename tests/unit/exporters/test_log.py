"""Records in the log, in the public Dynolog's form."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.log import USE_JSON, LogExporter
from dynolog.exporters.spec import ExporterContext
from dynolog.model.flag import Flag, Settings
from dynolog.model.metric import Catalogue
from dynolog.model.record import Record

WALL_NS = 1_658_446_954_141_104_000  # 2022-07-21T23:42:34.141104Z


class Log:
    """The lines that an exporter wrote."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, str]] = []
        settings = Settings((USE_JSON, Flag(name="log_file", default="", help="")))
        self.exporter = LogExporter(
            ExporterContext(
                settings=settings,
                catalogue=Catalogue(()),
                hostname="host",
                write_log=lambda file, line, text: self.lines.append((file, line, text)),
            )
        )

    def data(self, record: Record) -> dict[str, object]:
        """The object that a strict reader gets."""
        text = self.exporter.data(record)[1]
        parsed: dict[str, object] = json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} in JSON"))
        return parsed


@pytest.fixture(scope="module")
def log() -> Log:
    return Log()


def record(values: dict[str, int | float | str], **labels: str) -> Record:
    return Record(wall_ns=WALL_NS, source="kernel", values=values, labels=labels)


def test_the_two_lines_are_those_of_the_original() -> None:
    log = Log()
    log.exporter.export([record({"uptime": 86400, "cpu_i": 71.3424, "cpu_u_ms": 0, "rx_bytes.eth0": 5})])
    assert log.lines == [
        ("log.py", 37, "Logging : 4 values"),
        (
            "log.py",
            38,
            'time = 2022-07-21T23:42:34.141Z data = {"cpu_i":"71.342","cpu_u_ms":0,"rx_bytes.eth0":5,"uptime":86400}',
        ),
    ]


def test_a_gpu_record_carries_its_device_as_a_number_and_its_labels_as_text(log: Log) -> None:
    assert log.data(record({"sm_active_ratio": 0.5, "gpu_power_draw": 300.0}, device="3", job_id="90210_2")) == {
        "device": 3,
        "gpu_power_draw": "300.000",
        "job_id": "90210_2",
        "sm_active_ratio": "0.500",
    }


def test_text_values_are_strings(log: Log) -> None:
    assert log.data(record({"boot_id": 'a"b\\c\nd'})) == {"boot_id": 'a"b\\c\nd'}


def test_a_value_that_is_not_finite_is_left_out_and_not_counted(log: Log) -> None:
    count, text = log.exporter.data(record({"a": float("nan"), "b": float("inf"), "c": 1.0}))
    assert (count, text) == (1, '{"c":"1.000"}')


def test_names_from_outside_cannot_break_the_line(log: Log) -> None:
    """A mount point may hold anything: quotes, newlines, bytes that are no UTF-8."""
    key = 'fs_free_bytes./mnt/"x"\n\udcff'
    assert log.data(record({key: 1})) == {'fs_free_bytes./mnt/"x"\n\ufffd': 1}
    assert "\n" not in log.exporter.data(record({key: 1}))[1]


@given(st.integers(min_value=0, max_value=4 * 10**18))
def test_the_stamp_is_utc_whatever_the_zone_of_the_machine(wall_ns: int) -> None:
    expected = datetime.fromtimestamp(wall_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert Log().exporter.stamp(wall_ns) == f"{expected}.{wall_ns // 10**6 % 1000:03d}Z"


@given(st.dictionaries(st.text(max_size=20), st.integers() | st.floats() | st.text(max_size=20), max_size=20))
def test_every_record_is_valid_json_with_sorted_keys_and_a_true_count(values: dict[str, int | float | str]) -> None:
    values.pop("device", None)
    count, text = Log().exporter.data(record(values))
    pairs = json.loads(text, object_pairs_hook=list)
    assert len(pairs) == count
    assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
    for key, value in pairs:
        given_value = values[key]
        if isinstance(given_value, float):
            assert float(value) == pytest.approx(given_value, abs=0.00051)
        else:
            assert value == given_value


def test_the_second_is_not_kept_for_a_stamp_of_another_second() -> None:
    log = Log()
    assert log.exporter.stamp(WALL_NS) == "2022-07-21T23:42:34.141Z"
    assert log.exporter.stamp(WALL_NS + 10**9) == "2022-07-21T23:42:35.141Z"
    assert log.exporter.stamp(WALL_NS) == "2022-07-21T23:42:34.141Z"
