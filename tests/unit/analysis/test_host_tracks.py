"""Counter tracks of the host in a trace: on its clock, strict, once, and what was there to the letter."""

import gzip
import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.analysis.editing.host_tracks import CannotAdd, Window, add_tracks, original_sha256_of
from dynolog.analysis.reading.load import load
from dynolog.model.host_samples import SampleBlock
from fakes.host_samples import BASE_NS, MS, SHA256, block, example
from fakes.traces import operation, trace

PLAIN = trace([operation("a", 1000.0, 300_000.0)], {"baseTimeNanoseconds": BASE_NS})
BEGIN_NS = BASE_NS + 1_000_000
WINDOW = Window(begin_wall_ns=BEGIN_NS, end_wall_ns=BEGIN_NS + 300 * MS)
BLOCK = block(BEGIN_NS + 7, {"cpu_user_pct": [1.5, None, 3.0]})


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def strict(data: bytes) -> Any:
    """Parsed by a reader that takes no NaN."""

    def refuse(text: str) -> None:
        raise ValueError(text)

    return json.loads(data, parse_constant=refuse, parse_float=Decimal)


def counters(data: bytes) -> list[tuple[str, Decimal, Decimal]]:
    parsed = strict(data)
    events = parsed if isinstance(parsed, list) else parsed["traceEvents"]
    return [(one["name"], one["ts"], one["args"]["value"]) for one in events if one["ph"] == "C"]


def points(*given: tuple[int, int]) -> list[tuple[Decimal, Decimal]]:
    return [(Decimal(at), Decimal(value)) for at, value in given]


def added_to(path: Path, data: bytes, *blocks: SampleBlock, window: Window = WINDOW) -> bytes:
    path.write_bytes(data)
    add_tracks(str(path), blocks or (BLOCK,), window, sha256(data), str(path))
    return path.read_bytes()


def test_samples_stand_at_their_wall_time_in_the_traces_own_unit(tmp_path: Path) -> None:
    """A Unix time of 19 digits less the base, in µs, with every ns; a value that is not known has no event."""
    data = added_to(tmp_path / "t.json", PLAIN)
    assert counters(data) == [
        ("host cpu_user_pct", Decimal("1000.007"), Decimal("1.5")),
        ("host cpu_user_pct", Decimal("201000.007"), Decimal("3.0")),
    ]
    names = [event for event in strict(data)["traceEvents"] if event["ph"] == "M"]
    assert [(one["name"], one["pid"]) for one in names] == [
        ("process_name", 5_000_000),
        ("process_sort_index", 5_000_000),
    ]
    assert names[0]["args"]["name"] == "host counters"


@pytest.mark.parametrize(
    ("base_ns", "shift_us"), [(0, BASE_NS), (BASE_NS - 1_000_000_000, 10**9), (BASE_NS + 5_000_000, -5_000_000)]
)
def test_whatever_the_base_a_sample_is_where_an_event_of_that_moment_is(
    tmp_path: Path, base_ns: int, shift_us: int
) -> None:
    """Times from the epoch, from a base before, and from one behind (then they are negative)."""
    ns = BEGIN_NS - base_ns
    sign = "-" if ns < 0 else ""
    text = f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
    event = json.dumps(operation("a", 0, 300_000.0)).replace('"ts": 0', f'"ts": {text}')
    data = trace([event], {"baseTimeNanoseconds": base_ns} if base_ns else {})
    found = strict(added_to(tmp_path / "t.json", data, block(BEGIN_NS, {"x": [1.0]})))["traceEvents"]
    (counter,) = [one for one in found if one["ph"] == "C"]
    (operator,) = [one for one in found if one["ph"] == "X"]
    assert counter["ts"] == operator["ts"] == Decimal(text)
    assert shift_us


def test_our_own_reader_finds_them_on_the_clock_of_the_events(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    added_to(path, PLAIN)
    columns = load(str(path))
    assert [name for name, _, _ in columns.counters.series_names] == ["host cpu_user_pct"]
    assert (columns.counters.at_ns - columns.begin_ns[0]).tolist() == [7, 200 * MS + 7]
    assert columns.counters.value.tolist() == [1.5, 3.0]
    assert not columns.report.damaged


@pytest.mark.parametrize("layout", ["plain", "gzip", "list", "empty", "base first", "one line"])
def test_every_layout_keeps_what_was_there_to_the_letter(tmp_path: Path, layout: str) -> None:
    """And what it was made of can be told from it."""
    event = json.dumps(operation("a", BEGIN_NS / 1000 if layout == "list" else 1000.0, 300_000.0))
    data = {
        "plain": PLAIN,
        "gzip": gzip.compress(PLAIN),
        "list": f"\n[ {event} ]\n".encode(),
        "empty": trace([], {"baseTimeNanoseconds": BASE_NS}),
        "base first": f'{{"baseTimeNanoseconds": {BASE_NS}, "traceEvents":[{event}]}}'.encode(),
        "one line": json.dumps({"traceEvents": [json.loads(event)], "baseTimeNanoseconds": BASE_NS}).encode(),
    }[layout]
    path = tmp_path / "t.json"
    written = added_to(path, data)
    assert (written[:2] == b"\x1f\x8b") == (layout == "gzip")
    text = gzip.decompress(written) if layout == "gzip" else written
    original = gzip.decompress(data) if layout == "gzip" else data
    assert len(counters(text)) == 2
    place = text.index(b'\n{"ph":"M","name":"process_name","pid":5000000')
    after = original[place:]
    assert text.startswith(original[:place])
    assert text.endswith(after)
    assert original_sha256_of(str(path)) == sha256(data)


def test_a_second_time_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    once = added_to(path, PLAIN)
    with pytest.raises(CannotAdd, match="already"):
        add_tracks(str(path), [BLOCK], WINDOW, SHA256, str(path))
    assert path.read_bytes() == once


@pytest.mark.parametrize(
    ("data", "window", "why"),
    [
        (PLAIN, Window(begin_wall_ns=0, end_wall_ns=300 * MS), "no clock"),
        (PLAIN, Window(begin_wall_ns=BEGIN_NS - 10**12, end_wall_ns=BEGIN_NS - 10**11), "not sampled"),
        (b'{"schemaVersion": 1}', WINDOW, "list of events"),
        (b'{"args": {"traceEvents": [1]}}', WINDOW, "list of events"),
    ],
)
def test_a_trace_that_cannot_have_them_stays_as_it_is(tmp_path: Path, data: bytes, window: Window, why: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    with pytest.raises(CannotAdd, match=why):
        add_tracks(str(path), [BLOCK], window, SHA256, str(path))
    assert path.read_bytes() == data
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]


def test_only_the_samples_of_the_time_are_added_and_none_begins_before_it(tmp_path: Path) -> None:
    """Also what still held when it began: its last value, drawn from the begin on; a view is never stretched."""
    held = block(BEGIN_NS - 5000 * MS, {"gpu_power_watts.0": [1.0, 2.0, 3.0, 4.0]}, interval_ns=1700 * MS, held=True)
    sampled = block(BEGIN_NS - 950 * MS, {"cpu_user_pct": [float(number) for number in range(30)]})
    found = counters(added_to(tmp_path / "t.json", PLAIN, held, sampled))
    by_name = {
        name: [(at, value) for one, at, value in found if one == name] for name in {name for name, _, _ in found}
    }
    assert by_name["host gpu_power_watts.0"] == points((1000, 3), (101_000, 4))
    assert by_name["host cpu_user_pct"] == points((1000, 9), (51_000, 10), (151_000, 11), (251_000, 12))


def test_a_clock_that_was_set_back_and_pages_that_overlap_leave_times_strictly_rising(tmp_path: Path) -> None:
    one = block(BEGIN_NS, {"x": [1.0, 2.0]})
    found = counters(added_to(tmp_path / "t.json", PLAIN, one, one, block(BEGIN_NS + 50 * MS, {"x": [9.0]})))
    assert [at for _, at, _ in found] == [1000, 51_000, 101_000]


def test_a_file_that_was_changed_afterwards_is_not_taken_for_the_original(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    written = added_to(path, PLAIN)
    path.write_bytes(written.replace(b'"a"', b'"b"'))
    assert original_sha256_of(str(path)) == ""
    path.write_bytes(PLAIN)
    assert original_sha256_of(str(path)) == ""
    path.write_bytes(written[: len(written) // 2])
    assert original_sha256_of(str(path)) == ""


def test_a_disk_that_is_full_leaves_the_trace_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(PLAIN)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        add_tracks(str(path), [BLOCK], WINDOW, SHA256, str(path))
    assert path.read_bytes() == PLAIN
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]


def test_the_example_for_analyses_has_a_planted_cause(tmp_path: Path) -> None:
    columns = load(str(example(tmp_path / "example.json")))
    names = {name for name, _, _ in columns.counters.series_names}
    assert {"host cpu_user_pct", "host gpu_clock_mhz.0", "host gpu_throttle.0", "host disk_read_bytes_per_s"} <= names


@given(
    st.lists(
        st.tuples(st.integers(-(10**9), 10**9), st.none() | st.floats(allow_nan=True, allow_infinity=True)), max_size=20
    ),
    st.text(max_size=12),
    st.booleans(),
)
def test_whatever_was_sampled_the_trace_stays_strict_json(
    tmp_path_factory: pytest.TempPathFactory, samples: list[tuple[int, float | None]], device: str, held: bool
) -> None:
    """Any times in any order, any values, any device's name."""
    path = tmp_path_factory.getbasetemp() / "property.json"
    blocks = [block(BEGIN_NS + at_ns, {f"x.{device}": [value]}, held=held) for at_ns, value in samples]
    path.write_bytes(PLAIN)
    try:
        added = add_tracks(str(path), blocks, WINDOW, sha256(PLAIN), str(path))
    except CannotAdd:
        assert path.read_bytes() == PLAIN
        return
    found = counters(path.read_bytes())
    assert len(found) == added.samples
    at = [at for _, at, _ in found]
    assert at == sorted(set(at))
    assert original_sha256_of(str(path)) == sha256(PLAIN)
