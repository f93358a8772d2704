"""Slices, shrunk and converted traces: strict JSON, nothing changed but what was asked for, and never half a file."""

import gzip
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.analysis.editing.edits import DropArguments, drop_events, keep_time
from dynolog.analysis.editing.exporting import Exported, export, survey
from dynolog.analysis.editing.trace_writer import CannotWrite
from dynolog.analysis.reading.categories import Category
from dynolog.profiling import trace_reader
from fakes.traces import RECORDED, operation, trace

PUBLIC = sorted((RECORDED / "public").glob("*.json.gz"))


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not strict JSON")


def strict(path: Path | str) -> Any:
    data = Path(path).read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return json.loads(text.decode(), parse_float=Decimal, parse_constant=refuse)


def kernel(name: str, ts: float, dur: float) -> dict[str, object]:
    return operation(name, ts, dur, cat="kernel", pid=0, tid=7)


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_a_trace_without_overlaps_is_passed_on_to_the_letter(tmp_path: Path, path: Path) -> None:
    output = str(tmp_path / "o.json.gz")
    columns = survey(str(path))
    done = export(str(path), output, columns=columns, absolute=not columns.head.base_ns)
    before, after = strict(path), strict(output)
    # Only stream 0 is named anew: see viewer_limits.
    after["traceEvents"] = [
        event | {"tid": 0} if event["tid"] == 4_000_000_000 else event for event in after["traceEvents"]
    ]
    assert after == before
    assert (done.events_before, done.events_after, done.moved) == (len(before["traceEvents"]),) * 2 + (0,)


def test_a_slice_holds_what_reaches_into_the_time_and_the_names_of_tracks(tmp_path: Path) -> None:
    events = [operation("before", 1, 2), operation("into", 5, 6), operation("in", 12, 1), operation("after", 30, 1)]
    events += [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}},
        operation("all", 0, 99, cat="Trace"),
    ]
    events += [
        {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 11, "cat": "ac2g"},
        {"ph": "f", "id": 1, "pid": 1, "tid": 1, "ts": 31},
    ]
    source, output = tmp_path / "t.json", str(tmp_path / "o.json")
    source.write_bytes(trace(events))
    export(str(source), output, filters=[keep_time(10_000, 20_000)])
    assert [event.get("name", event["ph"]) for event in strict(output)["traceEvents"]] == [
        "into",
        "in",
        "process_name",
        "s",
    ]


def test_what_is_dropped_is_gone_and_all_else_is_as_it_was(tmp_path: Path) -> None:
    events = [
        operation("op", 1, 5, args={"Call stack": "a;b", "Input Dims": [[1, 2], []], "External id": 7}),
        operation("frame", 1, 5, cat="python_function"),
        operation("short", 2, 0.4),
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Call stack"}},
    ]
    source, output = tmp_path / "t.json", str(tmp_path / "o.json")
    source.write_bytes(trace(events))
    drop = drop_events([Category.PYTHON_FUNCTION], shorter_than_ns=500)
    export(str(source), output, filters=[drop], changes=[DropArguments(["Call stack", "Input Dims"])])
    expected = [events[0] | {"args": {"External id": 7}}, events[3]]
    assert strict(output)["traceEvents"] == json.loads(json.dumps(expected), parse_float=Decimal)
    export(str(source), output, changes=[DropArguments(None)])
    assert "args" not in strict(output)["traceEvents"][0]
    assert strict(output)["traceEvents"][3]["args"] == {"name": "Call stack"}


def test_g11_overlapping_events_get_named_lanes_and_none_is_dropped(tmp_path: Path) -> None:
    name = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}}
    source, output = tmp_path / "t.json", str(tmp_path / "o.json")
    source.write_bytes(trace([name, kernel("A", 100, 50), kernel("B", 140.5, 40), kernel("C", 200, 1)]))
    done = export(str(source), output, columns=survey(str(source)))
    events = strict(output)["traceEvents"]
    lanes = {event["name"]: event["tid"] for event in events if event["ph"] == "X"}
    assert lanes["A"] == lanes["C"] == 7
    assert lanes["B"] not in (7, None)
    named = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert named[lanes["B"]] == "stream 7 (lane 2)"
    assert done.moved == 1
    assert [event["dur"] for event in events if event["name"] == "B"] == [40]


def test_whatever_was_mended_is_strict_json_afterwards(tmp_path: Path) -> None:
    bad = '{"ph":"X","cat":"k","name":"{"device": "cpu"}","pid":1,"tid":1,"ts":5,"dur":0,"args":{"bw":inf,"n":nan}}'
    source, output = tmp_path / "t.json", str(tmp_path / "o.json.gz")
    last = operation("MARK", 7, 1, args={"note": "MARK"})
    source.write_bytes(trace([operation("a", 1, 1), bad, last]).replace(b"MARK", b"\xc1"))
    done = export(str(source), output, columns=survey(str(source)))
    events = strict(output)["traceEvents"]
    assert [event["name"] for event in events] == ["a", '{"device": "cpu"}', "�"]
    assert events[1]["args"] == {"bw": None, "n": None}
    assert events[2]["args"] == {"note": "�"}
    assert any("2 events were read after a repair" in note for note in done.notes)


@pytest.mark.parametrize("batch", [1, 1 << 20])
def test_bytes_that_are_not_utf8_in_arguments_do_not_reach_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(trace_reader, "BATCH_BYTES", batch)
    events = [operation("a", 1, 1, args={"note": "MARK"}), operation("b", 2, 1)]
    source, output = tmp_path / "t.json", str(tmp_path / "o.json")
    source.write_bytes(trace(events).replace(b"MARK", b"\xc1"))
    export(str(source), output)
    assert strict(output)["traceEvents"][0]["args"] == {"note": "�"}


def test_a_base_comes_and_goes_without_a_digit_lost(tmp_path: Path) -> None:
    source = tmp_path / "t.json"
    source.write_text('{"traceEvents":[{"ph":"X","name":"a","ts":1712195495505582.988,"dur":4.928}]}')
    relative, absolute = str(tmp_path / "r.json"), str(tmp_path / "a.json")
    export(str(source), relative, columns=survey(str(source)), absolute=False)
    document = strict(relative)
    (event,) = document["traceEvents"]
    assert document["baseTimeNanoseconds"] == 1712195495000000000 - 3600 * 10**9
    assert event["ts"] == Decimal("3600505582.988")
    export(relative, absolute, columns=survey(relative), absolute=True)
    assert strict(absolute) == strict(source)
    listed = str(tmp_path / "l.json")
    export(relative, listed, columns=survey(relative), bare_list=True)
    assert strict(listed) == strict(source)["traceEvents"]


@given(cut=st.integers(60, 2000))
def test_g17_of_a_cut_file_the_whole_events_are_written_whole(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    place = tmp_path_factory.getbasetemp()
    data = trace([operation(f"op{i}", i, 1) for i in range(15)])
    source, output = place / "cut.json", str(place / "cut_out.json")
    source.write_bytes(data[: min(cut, len(data) - 3)])
    done = export(str(source), output, columns=survey(str(source)))
    names = [event["name"] for event in strict(output)["traceEvents"]]
    assert names == [f"op{i}" for i in range(len(names))]
    assert any("the file is not whole" in note for note in done.notes)


def test_an_output_is_never_the_input_nor_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "t.json"
    source.write_bytes(trace([operation("a", 1, 1)]))
    os.link(source, tmp_path / "same.json")
    for name in ("t.json", "same.json"):
        with pytest.raises(CannotWrite, match="is what is read"):
            export(str(source), str(tmp_path / name))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CannotWrite, match="no ordinary file"):
        export(str(source), str(tmp_path / "fifo"))
    with pytest.raises(CannotWrite, match="No such file"):
        export(str(source), str(tmp_path / "none" / "o.json"))

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWrite, match="No space left on device; nothing is left of it"):
        export(str(source), str(tmp_path / "o.json"))
    assert sorted(os.listdir(tmp_path)) == ["fifo", "same.json", "t.json"]


@pytest.mark.parametrize("batch", [1, 300])
def test_lanes_fit_their_events_whatever_the_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    source = tmp_path / "t.json"
    source.write_bytes(
        trace([kernel(f"k{i}", 10 * i + 0.5, 15) for i in range(9)] + [operation("no time", 0, 1) | {"ts": None}])
    )
    columns = survey(str(source))
    monkeypatch.setattr(trace_reader, "BATCH_BYTES", batch)
    done: Exported = export(str(source), str(tmp_path / "o.json"), columns=columns)
    assert done.moved == 4
    events = strict(tmp_path / "o.json")["traceEvents"]
    assert [event["tid"] != 7 for event in events if str(event["name"]).startswith("k")] == [False, True] * 4 + [False]
