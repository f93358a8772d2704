"""What is written stays within what viewers can hold; tests/integration/test_perfetto.py asks a real one."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.analysis.editing.exporting import LOSES_DIGITS, export, survey
from dynolog.analysis.editing.host_tracks import PID, Window, add_tracks
from dynolog.analysis.editing.validating import validate
from dynolog.analysis.editing.viewer_limits import lose_digits, viewer_number
from dynolog.analysis.job.merging import merge
from dynolog.analysis.reading.trace_folder import TraceFileHead
from fakes.host_samples import BASE_NS, block
from fakes.traces import operation, trace


def written(tmp_path: Path, *events: dict[str, Any] | str, tail: dict[str, object] | None = None) -> dict[str, Any]:
    """What `dyno trace convert` makes of some events."""
    source, output = tmp_path / "t.json", tmp_path / "o.json"
    source.write_bytes(trace(events, tail))
    done = export(str(source), str(output), columns=survey(str(source)))
    document: dict[str, Any] = json.loads(output.read_bytes(), parse_float=Decimal)
    return document | {"notes": done.notes}


def complete(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == "X"]


@pytest.mark.parametrize(
    ("number", "within"),
    [
        (0, 0),
        (4_194_304, 4_194_304),
        (2**32 - 1, 2**32 - 1),
        (-1_029_147_072, 3_265_820_224),  # the same 32 bits
        (-1, 2**32 - 1),
        (2**32, "4294967296"),
        (-(2**31) - 1, "-2147483649"),
        ("stream 7", "stream 7"),
        ("-3", "-3"),
        (None, None),
    ],
)
def test_numbers_of_tracks_fit_into_32_bits_or_are_texts(number: object, within: object) -> None:
    assert viewer_number(number) == within


@given(st.integers(-(2**31), 2**32 - 1))
def test_a_number_of_32_bits_keeps_them(number: int) -> None:
    assert viewer_number(number) == number % 2**32


def test_a_thread_with_a_negative_number_keeps_its_name_and_its_lanes(tmp_path: Path) -> None:
    """Three that overlap: one stays, two get lanes, all on numbers that viewers know, with the thread's name."""
    names = {"ph": "M", "name": "thread_name", "pid": 1, "tid": -5, "args": {"name": "runtime"}}
    document = written(tmp_path, names, *(operation(f"k{i}", 10 + i * 2, 20, tid=-5) for i in range(3)))
    threads = [event["tid"] for event in complete(document)]
    assert len(set(threads)) == 3
    assert all(0 <= tid < 2**32 for tid in threads)
    assert threads[0] == 2**32 - 5
    said = {event["tid"]: event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"}
    assert [said[tid] for tid in threads] == ["runtime", "runtime (lane 2)", "runtime (lane 3)"]


@pytest.mark.parametrize("duration", ["inf", "nan", "null", '"long"', "true", "[1]", "-5", "1e300"])
def test_a_duration_that_viewers_refuse_is_written_as_0_and_said(tmp_path: Path, duration: str) -> None:
    text = f'{{"ph":"X","cat":"k","name":"odd","pid":1,"tid":1,"ts":5,"dur":{duration}}}'
    document = written(tmp_path, operation("a", 1, 1), text)
    assert [(event["name"], event["dur"]) for event in complete(document)] == [("a", 1), ("odd", 0)]
    assert "1 events have no usable duration: written with 0" in document["notes"]


def test_an_event_without_a_duration_gets_one_and_other_kinds_get_none(tmp_path: Path) -> None:
    document = written(
        tmp_path,
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "i", "name": "odd mark", "pid": 1, "tid": 1, "ts": 3, "dur": None},
    )
    assert [event.get("dur") for event in document["traceEvents"]] == [0, None, None]
    assert all("dur" not in event for event in document["traceEvents"][1:])


@pytest.mark.parametrize("time", ["null", "inf", '"soon"', "{}"])
def test_an_event_without_a_time_is_left_out_and_counted_but_names_stay(tmp_path: Path, time: str) -> None:
    text = f'{{"ph":"X","name":"never","pid":1,"tid":1,"ts":{time},"dur":1}}'
    name = f'{{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":{time},"args":{{"name":"python"}}}}'
    document = written(tmp_path, operation("a", 1, 1), text, name)
    assert [(event["name"], event["ts"]) for event in document["traceEvents"]] == [("a", 1), ("process_name", 0)]
    assert "1 events have no usable time and were left out" in document["notes"]


def test_thread_clocks_and_units_that_viewers_refuse_are_gone(tmp_path: Path) -> None:
    document = written(tmp_path, operation("a", 1, 1, tts=None, tdur="x"), tail={"displayTimeUnit": None})
    assert complete(document)[0].keys() == operation("a", 1, 1).keys()
    assert "displayTimeUnit" not in document
    assert written(tmp_path, operation("a", 1, 1), tail={"displayTimeUnit": "ns"})["displayTimeUnit"] == "ns"


def test_large_times_with_decimals_get_a_base_and_lose_nothing(tmp_path: Path) -> None:
    """As PyTorch 2.2 wrote them; in whole µs they are exact as they are."""
    document = written(tmp_path, '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1712195495505582.988,"dur":4.928}')
    (event,) = complete(document)
    assert event["ts"] < 2**42
    assert document["baseTimeNanoseconds"] + int(event["ts"] * 1000) == 1712195495505582988
    assert "baseTimeNanoseconds" not in written(tmp_path, operation("a", 1712195495505582, 4))


def test_no_time_is_negative_not_even_of_what_is_no_complete_event(tmp_path: Path) -> None:
    mark = '{"ph":"i","name":"begin","pid":1,"tid":1,"ts":1712195495000000.5}'
    document = written(tmp_path, mark, '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1712195501505582.988,"dur":4.928}')
    assert all(event["ts"] >= 0 for event in document["traceEvents"])


def test_what_is_read_once_gets_a_base_too_and_what_must_be_absolute_a_note(tmp_path: Path) -> None:
    source, output = tmp_path / "t.json", tmp_path / "o.json"
    source.write_bytes(trace(['{"ph":"X","name":"a","pid":1,"tid":1,"ts":1712195495505582.988,"dur":4.928}']))
    export(str(source), str(output))
    document = json.loads(output.read_bytes(), parse_float=Decimal)
    assert document["baseTimeNanoseconds"] + int(complete(document)[0]["ts"] * 1000) == 1712195495505582988
    assert LOSES_DIGITS in export(str(source), str(output), columns=survey(str(source)), bare_list=True).notes


def test_only_times_that_viewers_round_or_drop_lose_digits() -> None:
    """Up to 2^42 µs, 50 days, every ns is read as it is, and larger ones in whole µs are."""
    last = np.array([(1 << 42) * 1000 - 1])
    assert not lose_digits(last, np.array([1]))
    assert lose_digits(last + 2, np.array([1000]))
    assert not lose_digits(last + 1, np.array([1000]))
    assert lose_digits(last + 1, np.array([1001]))
    assert lose_digits(np.array([-1]), np.array([1]))


def test_stream_0_is_not_the_stream_with_the_number_of_its_gpu(tmp_path: Path) -> None:
    """Its name goes with it, those of the process stay."""
    names = [
        {"ph": "M", "name": f"{what}_name", "pid": 7, "tid": 0, "args": {"name": f"the {what}"}}
        for what in ("thread", "process")
    ]
    kernels = [operation(f"k{tid}", 10, 20, pid=7, tid=tid) for tid in (0, 7)]
    over = operation("over", 15, 20, pid=7, tid=0)
    counter = {"ph": "C", "name": "c", "pid": 7, "tid": 0, "ts": 1, "args": {"value": 1}}
    events = written(tmp_path, *names, *kernels, over, counter)["traceEvents"]
    tids = {event["name"]: event["tid"] for event in events if event["name"] != "thread_name"}
    assert tids["process_name"] == tids["c"] == 0
    assert tids["k7"] == 7
    assert len({0, tids["k0"], tids["k7"], tids["over"]}) == 4
    said = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert said == {tids["k0"]: "the thread", tids["over"]: "the thread (lane 2)"}


def test_an_arrow_goes_with_the_event_that_it_ends_at(tmp_path: Path) -> None:
    """The second kernel overlaps the first and moves; the arrow from its launch ends where it begins."""
    launch = {"cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7}
    document = written(
        tmp_path,
        *(operation(name, ts, 50, pid=0, tid=7, cat="kernel") for name, ts in (("A", 100), ("B", 140), ("C", 200))),
        *({"ph": "f", "bp": "e", "id": number, "ts": ts} | launch for number, ts in ((1, 100), (2, 140), (3, 200))),
    )
    lanes = {event["ts"]: event["tid"] for event in complete(document)}
    assert lanes[100] == lanes[200] == 7 != lanes[140]
    assert {event["ts"]: event["tid"] for event in document["traceEvents"] if event["ph"] == "f"} == lanes


def test_an_arrow_stays_where_an_event_that_stays_begins_with_it(tmp_path: Path) -> None:
    outer, inner, over = (
        operation(name, ts, lasts, pid=0, tid=7) for name, ts, lasts in (("a", 100, 60), ("b", 120, 30), ("c", 120, 70))
    )
    arrow = {"ph": "s", "id": 1, "cat": "c", "name": "arrow", "pid": 0, "tid": 7, "ts": 120}
    tids = {event["name"]: event["tid"] for event in written(tmp_path, outer, over, inner, arrow)["traceEvents"]}
    assert tids["c"] != 7
    assert tids["a"] == tids["b"] == tids["arrow"] == 7


def test_validate_says_what_viewers_would_lose(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(trace(['{"ph":"X","name":"a","pid":1,"tid":-7,"ts":1712195495505582.988,"dur":4.928}']))
    verdict = validate(str(path))
    assert verdict.valid
    assert any("viewers round times this large" in note for note in verdict.notes)
    assert any("1 processes or threads have negative numbers" in note for note in verdict.notes)


def test_hosts_of_merged_ranks_have_one_process_each_and_each_sample_once(tmp_path: Path) -> None:
    """Ranks 0 and 1 are of one host, which was sampled once for both; rank 2 is of another."""
    heads = []
    for rank, host in enumerate(("n1", "n1", "n2")):
        path = tmp_path / f"r{rank}.json"
        path.write_bytes(trace([operation("a", 1000, 300_000)], {"baseTimeNanoseconds": BASE_NS}))
        window = Window(begin_wall_ns=BASE_NS + 1_000_000, end_wall_ns=BASE_NS + 301_000_000)
        samples = block(BASE_NS + 1_000_007, {"cpu_user_pct": [1.5, 2.0 + (host == "n2"), 3.0]})
        add_tracks(str(path), [samples], window, "0" * 64, str(path))
        heads.append(TraceFileHead(path=str(path), size_bytes=1, rank=rank, host=host))
    merge(heads, str(tmp_path / "o.json"), align="none")
    events = json.loads((tmp_path / "o.json").read_bytes())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    counters = {name: [] for name in names.values()}  # type: dict[str, list[float]]
    for event in events:
        if event["ph"] == "C":
            counters[names[event["pid"]]].append(event["args"]["value"])
    assert counters == {
        "rank 0 · n1": [],
        "rank 1 · n1": [],
        "rank 2 · n2": [],
        "host counters · n1": [1.5, 2.0, 3.0],
        "host counters · n2": [1.5, 3.0, 3.0],
    }
    assert PID not in names
