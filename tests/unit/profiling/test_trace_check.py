"""Which trace files are whole, and what is said of them."""

import gzip
import hashlib
import io
import json
import tracemalloc
import zlib
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynolog.model.capture import TraceFile
from dynolog.profiling import trace_reader
from dynolog.profiling.trace_bytes import TraceUnreadable
from dynolog.profiling.trace_check import check
from fakes.traces import RECORDED, operation, trace

WHOLE = trace(
    [operation("a", 10, 5), operation("b", 20, 50, args={"l": [{"name": "x"}, {"name": "y"}]}), operation("c", 90, 1)]
)


def checked(data: bytes, block: int = 1 << 20) -> TraceFile:
    return check(partial(io.BytesIO(data).read, block))


def reason(data: bytes) -> str:
    with pytest.raises(TraceUnreadable) as caught:
        checked(data)
    return caught.value.reason


@pytest.mark.parametrize("data", [WHOLE, gzip.compress(WHOLE), gzip.compress(WHOLE[:99]) + gzip.compress(WHOLE[99:])])
def test_a_whole_trace_is_told_by_its_bytes(data: bytes) -> None:
    file = checked(data)
    assert (file.events, file.duration_us, file.warnings) == (3, 81, ())
    assert [(o.name, o.duration_us) for o in file.longest] == [("b", 50), ("a", 5), ("c", 1)]
    assert file.size_bytes == len(data)
    assert file.sha256 == hashlib.sha256(data).hexdigest()
    assert file.compressed == (data[:2] == b"\x1f\x8b")


@pytest.mark.parametrize(
    ("name", "events"), [("iter_13260", 923), ("iter_13261", 922), ("iter_13262", 924), ("iter_13263", 923)]
)
def test_recorded_traces_have_the_events_that_the_standard_library_finds(name: str, events: int) -> None:
    data = (RECORDED / f"{name}.json.gz").read_bytes()
    file = checked(data)
    assert file.events == events == len(json.loads(gzip.decompress(data))["traceEvents"])
    assert file.warnings == ()
    assert file.longest[0].name == "gloo:all_reduce"
    assert checked(gzip.decompress(data)).longest == file.longest


def test_the_launchers_trace_is_empty_and_says_why() -> None:
    file = checked((RECORDED / "iter_13238.json.gz").read_bytes())
    assert file.events == 0
    assert file.longest == ()
    assert file.warnings == (
        "the trace is empty, libkineto says: No Valid Trace Events (CPU/GPU) found. Outputting empty trace.",
    )


def test_no_events_at_all_is_empty_too() -> None:
    """G09."""
    assert checked(trace([])).warnings == ("the trace is empty",)
    assert checked(b"[]").events == 0


def test_what_only_spans_operations_is_not_among_the_longest() -> None:
    events = [
        operation("PyTorch Profiler (0)", 0, 1000, cat="Trace", pid="Spans", tid="PyTorch Profiler"),
        operation("train.py(9): main", 0, 990, cat="python_function"),
        operation("## step ##", 0, 900, cat="user_annotation"),
        operation("nccl:all_reduce", 0, 90, cat="user_annotation"),
        operation("gemm", 5, 80, cat="kernel"),
    ]
    assert [o.name for o in checked(trace(events)).longest] == ["nccl:all_reduce", "gemm"]
    assert [o.name for o in checked(trace(events[:3])).longest] == ["train.py(9): main", "## step ##"]


@pytest.mark.parametrize(
    ("bad", "kept"),
    [
        (operation("g", 1, 1, args={"bw": "X"}), True),
        ('{"ph": "X", "name": "g", "ts": 1, "dur": 0, "args": {"memory bandwidth (GB/s)": inf}}', True),  # G01
        ('{"ph": "X", "name": "g", "ts": 1, "dur": -nan, "args": {"a": [NaN, Infinity]}}', True),  # G01
        (
            '{"ph": "X", "name": "g", "ts": 1, "args": {"Comms Id": 18446744073709551615, "y": 1844674407370955161599}}',
            True,
        ),  # G06
        ('{"ph": "X", "name": "g\\x", "ts": "1", "dur": "2.5"}', True),
        ('{"ph": "X", "name": "{"device": "cpu"}(12): run", "ts": 1, "dur": 2}', False),  # G02
        ('{"ph": "X", "name": "open, "ts": 1, "dur": 2}', False),
        ('{"ph": "X", "name": "g", "ts": 1, "args": {"a": [1, 2}}', False),
        ('{"ph": "X", "name": ["g"], "ts": 1}', False),
        ('{"ph": "X", "name": "g" "ts": 1}', False),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_damaged_event_costs_at_most_itself(bad: str | dict[str, object], kept: bool, place: int) -> None:
    good: list[str | dict[str, object]] = [operation(f"op{number}", number, 2) for number in range(3)]
    file = checked(trace([*good[:place], bad, *good[place:]]))
    assert file.events == 3 + kept
    assert any("1 damaged event" in warning for warning in file.warnings) == (not kept)


def test_a_name_that_is_not_utf_8_is_read_with_the_bytes_replaced() -> None:
    """G05."""
    file = checked(WHOLE.replace(b'"b"', b'"b\xc1"'))
    assert file.events == 3
    assert file.longest[0].name == "b\ufffd"
    assert "not UTF-8" in file.warnings[0]


def test_damage_in_the_metadata_is_said_and_costs_no_event() -> None:
    file = checked(WHOLE.replace(b'"schemaVersion": 1', b'"schemaVersion": 1, "x": "a"b"'))
    assert (file.events, len(file.warnings)) == (3, 1)
    assert checked(WHOLE.replace(b'"schemaVersion": 1', b'"schemaVersion": nan')).warnings == ()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes"),
        (b" \n", "white space"),
        (b"\x80\x04pickle", "neither JSON nor gzip"),
        (b"\x1f", "neither JSON nor gzip"),
        (b'{"a": [1, 2]}', "not a trace"),
        (b'{"schemaVersion": 1, "dev', "before the first event"),
        (WHOLE + b"x", "1 bytes follow the end"),
        (WHOLE + WHOLE, "bytes follow the end"),
        (WHOLE[: WHOLE.index(b'"c"')], "after 2 whole events"),
        (WHOLE[: WHOLE.index(b'"traceName"')], "after its 3 events"),
        (b"[" + b'{"ph": "X"}', "after 1 whole events"),
        (b'[{"ph": "X"}]]', "follow"),
        (WHOLE.replace(b'"a"', b'"a' + bytes(4096) + b'"'), "zero bytes"),
        (gzip.compress(WHOLE) + b"junk", "damaged"),
        (gzip.compress(WHOLE)[:-1], "cut short"),
        (gzip.compress(WHOLE)[:-5] + b"\0\0\0\0\0", "damaged"),
        (b"[" * 100_000, "cut short"),
        (b'{"traceEvents": [' + b'{"a":' * 100_000, "cut short"),
    ],
)
def test_what_is_not_a_whole_trace_is_refused_with_the_reason(data: bytes, says: str) -> None:
    assert says in reason(data)


def test_mostly_unreadable_events_are_no_trace() -> None:
    assert "cannot be read" in reason(trace(['{"ph": "X", "name": "a"b"}'] * 5 + ['{"ph": "X", "name": "a"}']))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, len(WHOLE.rstrip()) - 1), st.sampled_from([3, 64, 1 << 20]))
@example(0, 3)
@example(
    WHOLE.index(b"}\n        ]\n    }") + 17, 3
)  # a list inside the last event has just closed, and an object after it
def test_any_cut_of_a_trace_is_never_called_whole(cut: int, block: int) -> None:
    """G17."""
    with pytest.raises(TraceUnreadable):
        checked(WHOLE[:cut], block)


_RECORDED = (RECORDED / "iter_13260.json.gz").read_bytes()
_RECORDED_TEXT = gzip.decompress(_RECORDED)


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 1, exclude_max=True))
def test_any_cut_of_a_recorded_trace_is_never_called_whole(share: float) -> None:
    for data in (_RECORDED, _RECORDED_TEXT.rstrip()):
        with pytest.raises(TraceUnreadable):
            checked(data[: int(share * len(data))])


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.integers(1, 40))
def test_any_flipped_byte_costs_few_events_or_is_refused(share: float, flip: int, length: int) -> None:
    data = bytearray(_RECORDED_TEXT)
    at = int(share * (len(data) - length))
    for index in range(at, at + length):
        data[index] ^= flip
    try:
        file = checked(bytes(data))
    except TraceUnreadable:
        return
    assert 915 <= file.events <= 930


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_answered_or_refused(data: bytes, events: bool) -> None:
    try:
        checked(b'{"traceEvents": [' + data if events else data)
    except TraceUnreadable as error:
        assert error.reason


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.text(max_size=12), min_size=1, max_size=60),
    st.integers(64, 4096),
    st.integers(1, 5000),
    st.sampled_from([None, 1]),
)
def test_batches_and_blocks_of_any_size_give_the_same(
    names: list[str], batch: int, block: int, indent: int | None
) -> None:
    """Names may hold anything that JSON can: quotes, brackets, what looks like the next event."""
    events = [
        operation(name + '"}, {"ph":"]}', at, 1, args={"n": [{"name": name}, {"ph": []}]})
        for at, name in enumerate(names)
    ]
    data = json.dumps({"traceEvents": events, "k": [{"name": 1}, {"name": 2}]}, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_reader, "BATCH_BYTES", batch)
        file = checked(data, block)
    assert (file.events, file.warnings) == (len(names), ())


def test_memory_stays_bounded_whatever_gzip_claims() -> None:
    """A megabyte of gzip that unfolds to a gigabyte of spaces is read in pieces."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = packer.compress(b"[") + b"".join(packer.compress(b" " * (1 << 20)) for _ in range(48)) + packer.flush()
    tracemalloc.start()
    try:
        assert "MiB" in reason(data)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()


def test_times_that_no_clock_says_are_not_summed_up() -> None:
    """Two of them make an infinity, which JSON cannot carry to whoever asked for the check."""
    text = (
        b'{"traceEvents":[{"ph":"X","name":"a","ts":1e308,"dur":1e308},{"ph":"X","name":"b","ts":-1e308,"dur":1e308},'
    )
    text += b'{"ph":"X","name":"c","ts":5,"dur":7}]}'
    found = checked(text)
    assert (found.events, found.duration_us, [one.name for one in found.longest]) == (3, 7, ["c"])


def test_a_file_of_damaged_events_is_given_up_before_its_end() -> None:
    """Each is tried in many ways, so a large file of them would keep a check busy for minutes."""
    read_bytes = 0
    data = io.BytesIO(b'{"traceEvents":[' + b'{"ph":"X","name":"a"b"},' * 200_000 + b"{}]}")

    def read() -> bytes:
        nonlocal read_bytes
        block = data.read(1 << 20)
        read_bytes += len(block)
        return block

    with pytest.raises(TraceUnreadable, match="cannot be read"):
        check(read)
    assert read_bytes <= 2 << 20


@pytest.mark.parametrize(
    ("head", "begin_wall_ns"),
    [
        ('"baseTimeNanoseconds": 1700000000000000000, ', 1_700_000_000_002_000_500),
        ('"baseTimeNanoseconds": "soon", ', 0),
        ("", 0),  # neither a base nor times since the epoch
    ],
)
def test_when_it_began_is_its_first_event_after_the_base(head: str, begin_wall_ns: int) -> None:
    events = '[{"ph":"X","name":"b","ts":9000.0,"dur":1},{"ph":"X","name":"a","ts":2000.5,"dur":1}]'
    data = f'{{{head}"traceEvents": {events}}}'.encode()
    assert check(io.BytesIO(data).read).begin_wall_ns == begin_wall_ns


def test_without_a_base_times_are_since_the_epoch() -> None:
    data = b'{"traceEvents": [{"ph":"X","name":"a","ts":1700000000000000.0,"dur":1}]}'
    assert check(io.BytesIO(data).read).begin_wall_ns == 1_700_000_000_000_000_000


def test_thousands_of_places_that_look_like_the_end_are_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is tried with all the text behind it: 250 kB of them took half a minute."""
    tried: list[bytes] = []
    monkeypatch.setattr("dynolog.profiling.trace_recovery.parse_tail", tried.append)
    with pytest.raises(TraceUnreadable, match="cut short"):
        check(io.BytesIO(b'[X", "}, {"ph"r0"}], "tr' * 3000).read)
    assert 0 < len(tried) <= 64
