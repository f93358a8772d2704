"""Ranks on one clock and in one file."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.analysis.editing.exporting import NotReadable
from dynolog.analysis.job.merging import merge
from dynolog.analysis.rank.collective_clock import Ends, agree, collective_ends
from dynolog.analysis.reading.load import load
from dynolog.analysis.reading.trace_folder import TraceFileHead, scan
from fakes.traces import operation, trace

BASE_NS = 1_790_857_026_000_000_000


def rank_trace(path: Path, rank: int, ahead_us: float, *, skip: int = 0, host: str = "") -> TraceFileHead:
    """Ten all-reduces that end on all ranks at once, by a clock that is ahead; the first ones may be missing."""
    uneven = [0, 130, 410, 480, 900, 1230, 1290, 1700, 2210, 2300]
    events: list[dict[str, Any]] = []
    for i, end in list(enumerate(uneven))[skip:]:
        lasts = 20 + 7 * ((i + rank) % 3)
        begin = 10_000 + end - lasts + ahead_us
        arguments = {"device": rank, "stream": 20, "correlation": i}
        events.append(
            operation("ncclDevKernel_AllReduce", begin, lasts, cat="kernel", pid=rank, tid=20, args=arguments)
        )
        events.append({"ph": "s", "id": i, "pid": 1, "tid": 1, "ts": begin, "cat": "ac2g", "name": "ac2g"})
    events.append({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}})
    events.append({"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "ts": 0, "args": {"labels": "CPU"}})
    path.write_bytes(trace(events, {"baseTimeNanoseconds": BASE_NS, "distributedInfo": {"rank": rank}}))
    return TraceFileHead(path=str(path), size_bytes=1, rank=rank, host=host)


def test_clocks_are_set_by_the_ends_of_collectives_and_the_residual_is_told(tmp_path: Path) -> None:
    heads = [rank_trace(tmp_path / "0.json", 0, 0), rank_trace(tmp_path / "1.json", 1, 750.25)]
    heads.append(rank_trace(tmp_path / "2.json", 2, -3000, skip=3))
    merged = merge(heads, str(tmp_path / "o.json"))
    assert [(clock.offset_ns, clock.residual_ns, clock.source) for clock in merged.clocks] == [
        (0, 0, "collectives"),
        (750_250, 0, "collectives"),
        (-3_000_000, 0, "collectives"),
    ]
    assert [clock.matched for clock in merged.clocks] == [10, 10, 7]
    columns = load(str(tmp_path / "o.json"))
    ends = columns.end_ns.reshape(-1)
    assert len(set(ends[:10]) ^ set(ends[10:20])) == 0
    assert set(ends[20:]) <= set(ends[:10])
    assert int(ends[0]) == BASE_NS + 10_000_000


def test_processes_and_arrows_of_ranks_do_not_meet_and_say_their_rank(tmp_path: Path) -> None:
    heads = [rank_trace(tmp_path / f"{rank}.json", rank, 0, host="node" if rank else "") for rank in (0, 3)]
    merge(heads, str(tmp_path / "o.json"), align="none")
    document = json.loads((tmp_path / "o.json").read_text(), parse_float=Decimal)
    events = document["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(processes.values()) == ["rank 0", "rank 0", "rank 3 · node", "rank 3 · node"]
    assert {event["pid"] for event in events} == set(processes)
    assert sum(event["name"] == "process_name" for event in events) == len(processes)
    ids = [event["id"] for event in events if event["ph"] == "s"]
    assert len(ids) == len(set(ids)) == 20
    assert all(isinstance(number, int) for number in ids)
    assert [event["args"]["labels"] for event in events if event["name"] == "process_labels"] == ["CPU", "CPU"]
    assert [rank["rank"] for rank in document["ranks"]] == [0, 3]


def test_a_manifests_offsets_are_used_when_it_has_them_for_all(tmp_path: Path) -> None:
    heads = [rank_trace(tmp_path / f"{rank}.json", rank, 500.0 * rank) for rank in (0, 1)]
    heads = [msgspec.structs.replace(head, offset_ns=500_000 * rank) for rank, head in enumerate(heads)]
    merged = merge(heads, str(tmp_path / "o.json"))
    assert [(clock.offset_ns, clock.source) for clock in merged.clocks] == [(0, "manifest"), (500_000, "manifest")]
    columns = load(str(tmp_path / "o.json"))
    assert columns.end_ns[:10].tolist() == columns.end_ns[10:].tolist()


def test_ranks_of_one_host_share_a_clock(tmp_path: Path) -> None:
    heads = [rank_trace(tmp_path / f"{rank}.json", rank, 500.0 * rank, host="n1") for rank in (0, 1)]
    assert [clock.source for clock in merge(heads, str(tmp_path / "o.json")).clocks] == ["same host"] * 2


def test_without_collectives_it_is_said_that_nothing_tells_the_clock(tmp_path: Path) -> None:
    heads = []
    for rank in (0, 1):
        (tmp_path / f"{rank}.json").write_bytes(trace([operation("a", 5, 1)]))
        heads.append(TraceFileHead(path=str(tmp_path / f"{rank}.json"), size_bytes=1, rank=rank))
    merged = merge(heads, str(tmp_path / "o.json"))
    assert [clock.source for clock in merged.clocks] == ["none", "none"]
    assert any("nothing tells how far its clock is off" in note for note in merged.exported.notes)


def test_an_offset_that_no_clock_has_is_doubted(tmp_path: Path) -> None:
    heads = [rank_trace(tmp_path / "0.json", 0, 0), rank_trace(tmp_path / "1.json", 1, 300_000)]
    assert any("+300.0 ms off" in note for note in merge(heads, str(tmp_path / "o.json")).exported.notes)


def test_sequence_numbers_match_collectives_whatever_was_recorded_of_them() -> None:
    ours = Ends(np.array([100, 200, 300, 400, 500]), np.array([1, 2, 3, 4, 5]))
    theirs = Ends(np.array([1300, 1400, 1500, 1600]), np.array([3, 4, 5, 6]))
    agreement = agree({"a": ours}, {"a": theirs})
    assert agreement is not None
    assert (agreement.offset_ns, agreement.residual_ns, agreement.matched) == (1000, 0, 3)
    assert agree({"a": ours}, {"b": theirs}) is None


def test_unlike_collectives_tell_no_clock() -> None:
    """Ends that have nothing to do with each other always have some shift at which they miss each other least."""
    random = np.random.default_rng(3)
    ours, theirs = (np.cumsum(random.integers(1_000_000, 9_000_000, 30)) + 10**12 for _ in range(2))
    assert agree({"k": Ends(ours, None)}, {"k": Ends(theirs, None)}) is None


def test_where_iterations_last_alike_the_clocks_decide_which_are_the_same() -> None:
    """The second recording begins an iteration later; by the order of collectives its clock would be 10 ms ahead."""
    ours = np.arange(20) * 10_000_000 + 10**12
    theirs = ours[1:] + 40_000
    found = agree({"k": Ends(ours, None)}, {"k": Ends(theirs, None)})
    assert found is not None
    assert (found.offset_ns, found.residual_ns, found.matched) == (40_000, 0, 19)
    by_manifest = agree({"k": Ends(ours, None)}, {"k": Ends(theirs + 20_000_000, None)}, 19_000_000)
    assert by_manifest is not None
    assert by_manifest.offset_ns == 20_040_000


def test_by_order_alone_no_clock_is_a_day_off() -> None:
    ours = np.cumsum(np.arange(1, 30) % 7 * 1_000_000 + 1_000_000) + 10**12
    day_ns = 86_400 * 10**9
    assert agree({"k": Ends(ours, None)}, {"k": Ends(ours + day_ns, None)}) is None
    numbers = np.arange(len(ours))
    found = agree({"k": Ends(ours, numbers)}, {"k": Ends(ours + day_ns, numbers)})
    assert found is not None
    assert found.offset_ns == day_ns


@given(
    st.integers(-(10**9), 10**9),
    st.lists(st.integers(1, 10**6), min_size=12, max_size=40, unique=True),
    st.integers(0, 4),
)
def test_a_constant_offset_is_found_exactly(offset_ns: int, gaps: list[int], missing: int) -> None:
    ends = np.cumsum(np.array(gaps, np.int64)) + 10**10
    agreement = agree({"k": Ends(ends, None)}, {"k": Ends(ends[missing:] + offset_ns, None)})
    assert agreement is not None
    assert agreement.residual_ns == 0
    assert agreement.offset_ns == offset_ns


def test_a_folder_is_merged_and_a_broken_file_is_named(tmp_path: Path) -> None:
    rank_trace(tmp_path / "a_rank0.json", 0, 0)
    rank_trace(tmp_path / "b_rank1.json", 1, 10)
    heads = scan([str(tmp_path)]).traces
    (tmp_path / "b_rank1.json").write_bytes(b"{}")
    with pytest.raises(NotReadable, match=r"b_rank1\.json: "):
        merge(heads, str(tmp_path / "o.json"))
    assert not (tmp_path / "o.json").exists()


def test_gloo_annotations_end_with_their_collective(tmp_path: Path) -> None:
    events = [operation("gloo:all_reduce", 10 * i, 5, cat="user_annotation") for i in range(3)]
    events += [operation("nccl:all_reduce", 10 * i, 5, cat="user_annotation") for i in range(3)]
    (tmp_path / "t.json").write_bytes(trace(events))
    ends = collective_ends(load(str(tmp_path / "t.json")))
    assert {name: found.at_ns.tolist() for name, found in ends.items()} == {"gloo:all_reduce|": [5000, 15000, 25000]}


def test_jitter_of_the_ends_does_not_make_another_collective_the_same() -> None:
    ends = np.array([0, 130, 410, 480, 900, 1230, 1290, 1700, 2210, 2300]) * 1000
    jitter = np.array([3, -2, 0, 5, -4, 1, 2, -3, 4, 0])
    agreement = agree({"k": Ends(ends, None)}, {"k": Ends(ends + 777 + jitter, None)})
    assert agreement is not None
    assert (agreement.offset_ns, agreement.residual_ns, agreement.matched) == (777, 2, 10)


def test_begin_and_end_events_are_merged_as_they_are_and_that_is_said(tmp_path: Path) -> None:
    heads = []
    for rank in (0, 1):
        pair = [{"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 1}, {"ph": "E", "pid": 1, "tid": 1, "ts": 50}]
        (tmp_path / f"{rank}.json").write_bytes(trace([operation("a", 2, 5), operation("c", 5, 9), *pair]))
        heads.append(TraceFileHead(path=str(tmp_path / f"{rank}.json"), size_bytes=1, rank=rank))
    merged = merge(heads, str(tmp_path / "o.json"), align="none")
    assert sum("begin and end events" in note for note in merged.exported.notes) == 2
    assert sorted(load(str(tmp_path / "o.json")).duration_ns.tolist()) == [5_000] * 2 + [9_000] * 2 + [49_000] * 2
