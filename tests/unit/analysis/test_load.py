"""What a trace becomes in memory, and what is said of one that is not as it should be."""

import gzip
import json
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import NONE, TraceColumns
from dynolog.analysis.reading.load import LoadOptions, load
from dynolog.analysis.reading.trace_folder import read_head
from dynolog.profiling import trace_reader
from dynolog.profiling.trace_bytes import NotATrace
from fakes.traces import RECORDED, operation, trace

PUBLIC = sorted((RECORDED / "public").glob("*.json.gz"))
OWN = sorted(RECORDED.glob("*.json.gz"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces") / "t.json"


def loaded(place: Path, data: bytes, options: LoadOptions | None = None) -> TraceColumns:
    place.write_bytes(data)
    return load(str(place), options)


def kernel(name: str, ts: object, dur: object, **arguments: object) -> dict[str, object]:
    event = operation(name, 0, 0, cat="kernel", pid=0, tid=7, args={"stream": 7, "device": 0} | arguments)
    return event | {"ts": ts, "dur": dur}


def names(columns: TraceColumns) -> list[str]:
    return [columns.names[number] for number in columns.name]


def plain(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The same file by the standard library, numbers exact."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    return [event for event in document["traceEvents"] if event.get("ph") == "X"], document


@pytest.mark.parametrize("path", [*PUBLIC, *OWN], ids=lambda path: path.name)
def test_every_complete_event_is_a_row_with_the_values_that_the_standard_library_reads(path: Path) -> None:
    columns = load(str(path), LoadOptions(python_frames=True))
    events, document = plain(path)
    base_ns = document.get("baseTimeNanoseconds", 0)
    assert len(columns) == len(events)
    assert columns.report.events == len(document["traceEvents"])
    assert columns.begin_ns.tolist() == [int(event["ts"] * 1000) + base_ns for event in events]
    assert columns.duration_ns.tolist() == [int(event["dur"] * 1000) for event in events]
    assert names(columns) == [event["name"] for event in events]
    assert [columns.processes[i] for i in columns.process] == [event["pid"] for event in events]
    assert [columns.threads[i] for i in columns.thread] == [event["tid"] for event in events]
    assert [columns.raw_categories[i] for i in columns.raw_category] == [event["cat"] for event in events]
    arguments = [event.get("args", {}) for event in events]
    assert columns.external_id.tolist() == [entry.get("External id", NONE) for entry in arguments]
    on_device = columns.rows_of(Category.KERNEL, Category.MEMCPY, Category.MEMSET)
    assert columns.stream[on_device].tolist() == [arguments[row].get("stream", NONE) for row in on_device]
    launches = columns.rows_of(Category.KERNEL, Category.RUNTIME, Category.DRIVER)
    assert columns.correlation[launches].tolist() == [arguments[row].get("correlation", NONE) for row in launches]
    sizes, known = columns.argument("bytes").at(np.arange(len(events)))
    assert sizes[known].tolist() == [entry["bytes"] for entry in arguments if "bytes" in entry]
    flows = [event for event in document["traceEvents"] if event["ph"] in "sf"]
    assert sorted(columns.flows.id.tolist()) == sorted(event["id"] for event in flows)
    assert list(columns.report.sentences()) == []


def test_a_rank_and_its_world_are_those_of_the_file() -> None:
    head = load(str(RECORDED / "public" / "gloo_cpu_rank34_of_300.json.gz")).head
    assert (head.rank, head.world_size, head.backend) == (34, 300, "gloo")
    assert load(str(OWN[1])).head.rank is None


def test_tracks_have_the_names_that_metadata_events_give_them() -> None:
    columns = load(str(RECORDED / "public" / "mi250_rocm62.json.gz"))
    assert columns.process_names[2].labels == "GPU 2"
    assert columns.thread_names[2, 0].name == "stream 0 "


@pytest.mark.parametrize("spelling", ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity"])
def test_g01_a_bare_number_that_is_none_costs_only_the_value(place: Path, spelling: str) -> None:
    bad = '{"ph":"X","cat":"gpu_memset","name":"m","pid":0,"tid":7,"ts":5,"dur":0,"args":{"bytes":512,"memory bandwidth (GB/s)":%s}}'
    columns = loaded(place, trace([operation("a", 1, 1), bad % spelling, operation("b", 9, 1)]))
    assert names(columns) == ["a", "m", "b"]
    assert columns.argument("bytes").values.tolist() == [512]
    assert not columns.argument("bandwidth_gb_per_s").at(np.array([1]))[1].any()
    assert columns.report.mended == 1
    assert columns.report.problems[0].line == place.read_bytes().split(b"gpu_memset")[0].count(b"\n") + 1


def test_g02_unescaped_quotes_in_a_name_are_recovered_with_their_line(place: Path) -> None:
    bad = '{"ph": "X", "cat": "cpu_op", "name": "{"device": "cpu"}(12): run", "pid": 1, "tid": 1, "ts": 5, "dur": 2}'
    columns = loaded(place, trace([operation("a", 1, 1), bad, operation("b", 9, 1)]))
    assert names(columns) == ["a", '{"device": "cpu"}(12): run', "b"]
    problem = columns.report.problems[0]
    text = place.read_bytes()
    assert text[problem.offset_bytes :].startswith(bad.encode())
    assert problem.line == text[: problem.offset_bytes].count(b"\n") + 1


def test_an_event_beyond_repair_costs_only_itself_and_is_said_with_its_place(place: Path) -> None:
    bad = '{"ph": "X", "cat": "cpu_op", "name": oops, "pid": 1, "tid": 1, "ts": 5, "dur": 2}'
    columns = loaded(place, trace([operation("a", 1, 1), bad, operation("b", 9, 1)]))
    assert names(columns) == ["a", "b"]
    assert columns.report.damaged == 1
    (sentence,) = columns.report.sentences()
    assert sentence.startswith("1 of 3 events could not be read and were dropped (first at byte ")


def test_an_event_whose_phase_is_an_object_is_skipped_where_others_are_damaged(place: Path) -> None:
    odd = '{"ph": {"v": 1}, "name": "x", "ts": 3}'
    bad = '{"ph": "X", "cat": "cpu_op", "name": oops, "pid": 1, "tid": 1, "ts": 5, "dur": 2}'
    columns = loaded(place, trace([operation("a", 1, 1), odd, bad, operation("b", 9, 1)]))
    assert names(columns) == ["a", "b"]
    assert columns.report.damaged == 1


def test_g05_bytes_that_are_not_utf8_are_replaced(place: Path) -> None:
    data = trace([operation("a", 1, 1), operation("x_MARK_y", 5, 1), operation("b", 9, 1)]).replace(b"MARK", b"\xc1")
    columns = loaded(place, data)
    assert names(columns) == ["a", "x_�_y", "b"]
    assert columns.report.mended == 1


def test_g06_numbers_beyond_int64_are_kept_as_text_or_left_out(place: Path) -> None:
    big = 18446744073709551615
    event = operation(
        "c", 1, 1, args={"Collective name": "all_reduce", "Comms Id": big, "External id": big, "In msg nelems": big}
    )
    columns = loaded(place, trace([event]))
    assert columns.argument("communicator").label(0) == str(big)
    assert columns.argument("collective").label(0) == "all_reduce"
    assert columns.external_id[0] == NONE
    assert not len(columns.argument("in_elements").rows)
    assert columns.report.damaged == 0


@pytest.mark.parametrize("data", [trace([]), b"[]", b'{"traceEvents": []}'])
def test_g09_a_trace_without_events_is_an_empty_result(place: Path, data: bytes) -> None:
    columns = loaded(place, data)
    assert len(columns) == 0
    assert columns.span_ns is None
    assert len(columns.rows_of(Category.KERNEL)) == 0
    assert columns.count_by_raw_category() == {}


def test_g11_g12_overlapping_and_overrunning_events_are_all_kept(place: Path) -> None:
    columns = loaded(
        place, trace([kernel("A", 100, 50), kernel("B", 140, 40), kernel("C", 200, 1600000), kernel("D", 220, 1)])
    )
    assert columns.duration_ns.tolist() == [50_000, 40_000, 1_600_000_000, 1_000]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b" \n ", "white space"),
        (b"PK\x03\x04", "neither JSON nor gzip"),
        (b'{"a": 1}', "no traceEvents"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(place: Path, data: bytes, why: str) -> None:
    with pytest.raises(NotATrace, match=why):
        loaded(place, data)


def test_a_list_at_the_top_is_a_trace(place: Path) -> None:
    columns = loaded(place, json.dumps([operation("a", 1.5, 2)]).encode())
    assert (names(columns), columns.begin_ns.tolist()) == (["a"], [1500])


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.pt.trace"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_is_told_by_its_bytes_and_not_by_its_name(tmp_path: Path, name: str, compressed: bool) -> None:
    data = trace([operation("a", 1, 1)])
    columns = loaded(tmp_path / name, gzip.compress(data[:40]) + gzip.compress(data[40:]) if compressed else data)
    assert names(columns) == ["a"]
    assert (columns.report.compressed, columns.report.text_bytes) == (compressed, len(data))


WHOLE = trace([operation(f"op{i}", 10 * i, 5, args={"l": [{"name": "x"}, {"ph": "X"}]}) for i in range(12)])
WHOLE_NAMES = [f"op{i}" for i in range(12)]
WHOLE_ENDS = [WHOLE.index(b"\n},\n  {", WHOLE.index(b'"op%d"' % i)) + 2 for i in range(11)]
WHOLE_ENDS.append(WHOLE.index(b"\n}\n  ]") + 2)


@settings(deadline=None)
@given(cut=st.integers(0, len(WHOLE) - 1), batch=st.integers(1, 400), block=st.integers(1, 200))
@example(cut=len(WHOLE) - 3, batch=1 << 20, block=1 << 20)
@example(cut=WHOLE.index(b'"op5"'), batch=1 << 20, block=1 << 20)
@example(cut=WHOLE.index(b"\n},\n  {") + 9, batch=1 << 20, block=1 << 20)
def test_g17_a_file_cut_anywhere_gives_the_whole_events_before_the_cut(
    place: Path, cut: int, batch: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_reader, "BATCH_BYTES", batch)
        patch.setattr("dynolog.analysis.reading.load.BLOCK_BYTES", block)
        try:
            columns = loaded(place, WHOLE[:cut])
        except NotATrace:
            assert not WHOLE[:cut].strip()
            return
    found = names(columns)
    assert found == WHOLE_NAMES[: len(found)]
    # Every event whose closing brace is there, however little of the next one follows.
    assert len(found) == sum(end <= cut for end in WHOLE_ENDS)
    assert bool(columns.report.truncated) == (WHOLE[cut:].strip() != b"")


def test_zeros_that_a_crash_left_cost_only_what_was_never_written(place: Path) -> None:
    """A file system that lost power has the size of the file but not its last blocks."""
    columns = loaded(place, WHOLE[: WHOLE.index(b'"op5"')] + bytes(4096))
    assert names(columns) == WHOLE_NAMES[:5]
    assert "zero bytes" in columns.report.truncated


@pytest.mark.parametrize(
    ("right", "wrong"), [(b"},\n  {", b"}\n  {"), (b"},\n  {", b"},,\n  {"), (b"}\n  ]", b"},\n  ]")]
)
def test_commas_that_are_missing_or_too_many_cost_no_event_and_are_said(
    place: Path, right: bytes, wrong: bytes
) -> None:
    columns = loaded(place, WHOLE.replace(right, wrong, 2))
    assert names(columns) == WHOLE_NAMES
    assert (columns.report.damaged, columns.report.truncated) == (0, "")
    assert columns.report.mended == (1 if right.endswith(b"]") else 2)


def test_a_byte_order_mark_is_no_damage(place: Path) -> None:
    columns = loaded(place, b"\xef\xbb\xbf" + WHOLE)
    assert columns.head.members["schemaVersion"] == 1
    assert list(columns.report.sentences()) == []


def test_a_complete_event_without_a_duration_lasts_0_and_is_counted(place: Path) -> None:
    event = {key: value for key, value in operation("a", 1, 1).items() if key != "dur"}
    columns = loaded(place, trace([event, operation("b", 2, 5)]))
    assert columns.duration_ns.tolist() == [0, 5000]
    assert list(columns.report.sentences()) == ["1 events have no usable duration; it is taken as 0"]


@settings(max_examples=60)
@given(cut=st.integers(1, len(gzip.compress(WHOLE, mtime=0)) - 1))
def test_g17_a_cut_gzip_file_gives_a_prefix_of_the_events(place: Path, cut: int) -> None:
    try:
        columns = loaded(place, gzip.compress(WHOLE, mtime=0)[:cut])
    except NotATrace:
        assert cut < 2  # not even the mark of gzip
        return
    found = names(columns)
    assert found == WHOLE_NAMES[: len(found)]
    assert columns.report.truncated


def test_g17_of_a_damaged_gzip_file_all_that_comes_before_the_damage_is_read(place: Path) -> None:
    """A file this small is one block, and zlib gives nothing of a call that fails."""
    events = [operation(f"op{number * 7919 % 1000}", number, 1) for number in range(1000)]
    data = bytearray(gzip.compress(trace(events), mtime=0))
    at = len(data) * 3 // 4
    whole = zlib.decompressobj(wbits=31).decompress(data[:at]).count(b'"ph"')
    data[at : at + 64] = b"\xff" * 64
    columns = loaded(place, bytes(data))
    assert columns.report.truncated
    assert "damaged" in " ".join(columns.report.sentences())
    assert 700 < whole - 20 <= len(columns)
    assert names(columns)[: whole - 20] == [event["name"] for event in events[: whole - 20]]
    assert read_head(str(place)) is not None, "it is found in a folder, too"


@settings(max_examples=150)
@given(at=st.integers(0, len(WHOLE) - 1), junk=st.binary(min_size=1, max_size=12), replaced=st.integers(0, 12))
def test_any_damage_is_survived_and_nothing_is_lost_in_silence(
    place: Path, at: int, junk: bytes, replaced: int
) -> None:
    data = WHOLE[:at] + junk + WHOLE[at + replaced :]
    try:
        columns = loaded(place, data)
    except NotATrace:
        return
    report = columns.report
    assert len(columns) == report.kept
    if len(columns) < 12:
        assert list(report.sentences()) or sum(report.phases.values()) > report.kept


@given(
    st.lists(
        st.decimals(min_value=-(10**9), max_value=Decimal(4 * 10**15 - 1), places=3, allow_nan=False),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([0, 1719853884000000000]),
)
@example([Decimal("1712195495505582.988"), Decimal("1712195495505583")], 0)
def test_no_digit_of_a_time_is_lost(place: Path, times: list[Decimal], base_ns: int) -> None:
    events = ",".join(f'{{"ph":"X","name":"a","ts":{time:f},"dur":1}}' for time in times)
    columns = loaded(place, f'{{"traceEvents":[{events}],"baseTimeNanoseconds":{base_ns}}}'.encode())
    assert columns.begin_ns.tolist() == [int(time * 1000) + base_ns for time in times]


@pytest.mark.parametrize(
    "ts", ["null", '"soon"', "[1,2]", "1e400", "1e999999999", "9" * 40, "{}", "5000000000000000.000"]
)
def test_an_event_without_a_usable_time_is_counted_and_left_out(place: Path, ts: str) -> None:
    bad = f'{{"ph":"X","cat":"cpu_op","name":"bad","pid":1,"tid":1,"ts":{ts},"dur":1}}'
    columns = loaded(place, trace([operation("a", 1, 1), bad]))
    assert names(columns) == ["a"]
    assert columns.report.skipped == {"no time": 1}


def test_odd_durations_and_ids_cost_only_themselves(place: Path) -> None:
    events = [
        operation("neg", 1, -5),
        operation("none", 2, 1) | {"dur": None},
        operation("text", 3, 1) | {"dur": "7.5"},
        operation("huge", 4, 1e300),
    ]
    events += [
        operation("ids", 5, 1, args={"External id": "12", "correlation": 3.5}),
        operation("list", 6, 1, args=[1]),
    ]
    events += [
        operation("process", 7, 1, pid="Spans", tid=1.0),
        {"ph": "X", "ts": 8},
        operation("x", 9, 1) | {"name": 5},
    ]
    columns = loaded(place, trace(events))
    assert columns.duration_ns.tolist() == [-5000, 0, 7500, 0, 1000, 1000, 1000, 0, 1000]
    assert columns.external_id[4] == 12
    assert columns.processes[columns.process[6]] == "Spans"
    assert columns.threads[columns.thread[6]] == 1
    assert names(columns)[7:] == ["", "5"]
    assert sorted(columns.report.warnings) == [
        "1 events have a negative duration",
        "3 events have no usable duration; it is taken as 0",
    ]


def test_begin_and_end_events_become_complete_ones_and_strays_are_counted(place: Path) -> None:
    events = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
    ]
    events += [
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "E", "pid": 2, "tid": 1, "ts": 9},
    ]
    columns = loaded(place, trace(events))
    assert list(zip(names(columns), columns.duration_ns.tolist(), strict=True)) == [("inner", 3000), ("outer", 8000)]
    assert columns.report.skipped == {"begin or end without its other": 1}


def test_counters_keep_every_series(place: Path) -> None:
    events = [
        {"ph": "C", "name": "cpu", "pid": 1, "ts": i, "args": {"user": i, "idle": 0.5, "note": "x"}} for i in range(3)
    ]
    for batch in (1, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trace_reader, "BATCH_BYTES", batch)
            counters = loaded(place, trace([operation("a", 1, 1), *events, operation("b", 1, 1)])).counters
        assert counters.series_names == [("cpu", "user", 1), ("cpu", "idle", 1)]
        assert counters.value[counters.series == 0].tolist() == [0, 1, 2]
        assert counters.at_ns.tolist() == [0, 0, 1000, 1000, 2000, 2000]


def test_python_frames_are_read_only_when_asked_for_and_counted_otherwise(place: Path) -> None:
    data = trace(
        [
            operation("a", 1, 1),
            operation("f", 1, 1, cat="python_function", args={"Python id": 1, "Python parent id": None}),
        ]
    )
    columns = loaded(place, data)
    assert names(columns) == ["a"]
    assert columns.report.skipped == {"Python frames (not asked for)": 1}
    columns = loaded(place, data, LoadOptions(python_frames=True))
    assert columns.argument("python_id").values.tolist() == [1]
    assert not len(columns.argument("python_parent").rows)


def test_a_window_and_a_choice_of_kinds_read_what_was_asked_for(place: Path) -> None:
    data = trace(
        [operation("before", 1, 2), operation("into", 5, 6), kernel("k", 12, 1), operation("after", 30, 1)],
        {"baseTimeNanoseconds": 10**18},
    )
    for compress in (lambda data: data, gzip.compress):
        columns = loaded(place, compress(data), LoadOptions(from_ns=10**18 + 10_000, to_ns=10**18 + 20_000))
        assert names(columns) == ["into", "k"]
        assert columns.report.skipped == {"outside the time window": 2}
    columns = loaded(place, data, LoadOptions(categories=frozenset({Category.KERNEL})))
    assert names(columns) == ["k"]
    assert columns.stream.tolist() == [7]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("Kernel", Category.KERNEL),
        ("Memcpy", Category.MEMCPY),
        ("Runtime", Category.RUNTIME),
        ("Operator", Category.CPU_OP),
        ("xpu_driver", Category.DRIVER),
        ("mtia_ccp_events", Category.KERNEL),
        ("something new", Category.OTHER),
    ],
)
def test_old_new_and_vendors_names_of_categories_lead_to_the_same_kinds(place: Path, raw: str, kind: Category) -> None:
    assert loaded(place, trace([operation("a", 1, 1, cat=raw)])).category.tolist() == [kind]


@pytest.mark.parametrize("compressed", [False, True])
def test_progress_tells_the_bytes_read(place: Path, compressed: bool) -> None:
    content = gzip.compress(WHOLE) if compressed else WHOLE
    place.write_bytes(content)
    said: list[int] = []
    load(str(place), progress=said.append)
    assert sum(said) == len(content)
    assert min(said) > 0
