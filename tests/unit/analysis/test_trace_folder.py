"""Which traces a folder holds, and of which rank each is."""

import errno
import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest

from dynolog.analysis.job.merging import merge
from dynolog.analysis.many import map_files
from dynolog.analysis.reading import trace_folder
from dynolog.analysis.reading.derived_names import derived
from dynolog.analysis.reading.trace_folder import RanksUnclear, rank_in_name, scan
from dynolog.fleet.manifest import HostEntry, Manifest, ProcessEntry
from fakes.traces import RECORDED, operation, trace


def put(path: Path, rank: int | None = None, **members: object) -> None:
    document: dict[str, object] = {"schemaVersion": 1, **members}
    if rank is not None:
        document["distributedInfo"] = {
            "backend": "nccl",
            "rank": rank,
            "world_size": 8,
            "pg_config": [{"pg_size": 8, "ranks": [0, 1]}],
        }
    document["traceEvents"] = [operation("a", 1, 1)]
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank12.json", 12),
        ("rank_12.json.gz", 12),
        ("node-r3_rank12_4711.json", 12),
        ("x_r3_.json", 3),
        ("host1_rank0_99.json", 0),
        ("trace_RANK-7.pt.trace.json", 7),
        ("iter_13260.json", None),
        ("frank12.json", None),
        ("rank1_rank2.json", None),
        ("server3.json", None),
    ],
)
def test_a_rank_is_read_from_a_name_only_where_it_says_rank(name: str, rank: int | None) -> None:
    assert rank_in_name(f"/rank5/{name}") == rank


def test_g19_only_heads_are_read_and_other_files_are_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(8):
        put(tmp_path / f"t{rank}.json{'.gz' if rank % 2 else ''}", rank=7 - rank)
    (tmp_path / "settings.json").write_text('{"a": [1, 2]}')
    (tmp_path / "notes.txt").write_text("no trace")
    (tmp_path / "broken.json.gz").write_bytes(b"\x1f\x8bnothing")
    folder = scan([str(tmp_path)])
    assert [head.rank for head in folder.traces] == list(range(8))
    assert {head.rank_from for head in folder.traces} == {"file"}
    assert {head.world_size for head in folder.traces} == {8}
    assert [os.path.basename(path) for path in folder.others] == ["broken.json.gz", "settings.json"]


@pytest.mark.parametrize(
    ("names", "made"),
    [
        (["t.json", "t.slice.json.gz"], ["t.slice.json.gz"]),
        (["t.pt.trace.json.gz", "t.small.json.gz", "t.strict.json"], ["t.small.json.gz", "t.strict.json"]),
        (["t.json", "t.slice.small.json.gz"], ["t.slice.small.json.gz"]),
        (["t.slice.json.gz", "t.slice.strict.json.gz"], ["t.slice.strict.json.gz"]),
        (["t.slice.json.gz", "u.json"], []),
        (["t.json", "tslice.json", "t.slices.json", "slice.json", "t.json.gz"], []),
        (["a/t.json", "b/t.slice.json.gz"], []),
    ],
)
def test_by_its_name_a_trace_was_made_of_another_only_when_that_one_is_there(names: list[str], made: list[str]) -> None:
    assert derived(names) == made


def test_what_was_made_of_a_folders_traces_is_no_other_rank(tmp_path: Path) -> None:
    for name, rank in (
        ("a.json", 0),
        ("b.json", 1),
        ("a.slice.json.gz", 0),
        ("b.small.json.gz", 1),
        ("c.strict.json", 2),
    ):
        put(tmp_path / name, rank=rank)
    merge(scan([str(tmp_path / "a.json"), str(tmp_path / "b.json")]).traces, str(tmp_path / "job.json.gz"))
    folder = scan([str(tmp_path)])
    assert [os.path.basename(head.path) for head in folder.traces] == ["a.json", "b.json", "c.strict.json"]
    assert folder.notes == [
        "3 left out that dyno trace made of other traces there, such as a.slice.json.gz: name a file to have it read"
    ]
    for name in ("a.slice.json.gz", "job.json.gz"):
        named = scan([str(tmp_path / name)])
        assert [os.path.basename(head.path) for head in named.traces] == [name]
    with pytest.raises(RanksUnclear, match="both of rank 0"):
        scan([str(tmp_path), str(tmp_path / "a.slice.json.gz")])


def test_a_folder_of_one_made_trace_alone_has_that_one(tmp_path: Path) -> None:
    put(tmp_path / "t.json", rank=0)
    merge(scan([str(tmp_path / "t.json")]).traces, str(tmp_path / "job.json"))
    (tmp_path / "t.json").unlink()
    assert len(scan([str(tmp_path)]).traces) == 1


def test_g07_one_trace_without_a_rank_is_rank_0_and_that_is_said(tmp_path: Path) -> None:
    put(tmp_path / "t.json")
    folder = scan([str(tmp_path)])
    assert folder.traces[0].rank == 0
    assert "taken for rank 0" in folder.notes[0]


def test_g07_of_many_without_a_rank_in_the_file_the_name_tells_it_or_they_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a_rank1_5.json")
    put(tmp_path / "b_rank0_6.json")
    assert [(head.rank, head.rank_from) for head in scan([str(tmp_path)]).traces] == [(0, "name"), (1, "name")]
    put(tmp_path / "c.json")
    with pytest.raises(RanksUnclear, match=r"1 of 3 traces have no rank.*c\.json"):
        scan([str(tmp_path)])
    put(tmp_path / "c.json", rank=1)
    with pytest.raises(RanksUnclear, match="both of rank 1"):
        scan([str(tmp_path)])


def test_traces_of_two_jobs_in_one_folder_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a.json", rank=0)
    put(tmp_path / "b.json", rank=1)
    assert len(scan([str(tmp_path)]).traces) == 2
    text = (tmp_path / "b.json").read_text()
    (tmp_path / "b.json").write_text(text.replace('"world_size": 8', '"world_size": 2'))
    with pytest.raises(RanksUnclear, match=r"b\.json is of a job of 2 ranks, .*a\.json of one of 8"):
        scan([str(tmp_path)])


def test_ranks_that_are_given_win_and_must_be_as_many(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        put(tmp_path / name, rank=5)
    paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert [(head.path, head.rank) for head in scan(paths, [1, 0]).traces] == [(paths[1], 0), (paths[0], 1)]
    with pytest.raises(RanksUnclear, match="1 ranks are given for 2 traces"):
        scan(paths, [1])


def test_a_named_file_must_be_a_trace(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RanksUnclear, match="is no trace"):
        scan([str(tmp_path / "x.json")])


def test_a_manifest_tells_rank_host_and_clock(tmp_path: Path) -> None:
    put(tmp_path / "one.json")
    put(tmp_path / "two.json", rank=6)
    manifest = Manifest(
        group_id="g",
        hosts=[HostEntry(host="n1", clock_offset_ns=5_000), HostEntry(host="n2", clock_offset_ns=None)],
        processes=[
            ProcessEntry(host="n1", pid=1, host_pid=1, rank=3, fetched="/elsewhere/one.json"),
            ProcessEntry(host="n2", pid=1, host_pid=1, rank=9, path="/tmp/two.json"),
        ],
    )
    (tmp_path / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    one, two = scan([str(tmp_path)]).traces
    assert (one.rank, one.rank_from, one.host, one.offset_ns) == (3, "manifest", "n1", 5_000)
    assert (two.rank, two.rank_from, two.host, two.offset_ns) == (6, "file", "n2", None)


def test_a_head_longer_than_what_is_read_is_still_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_folder, "_HEAD_BYTES", 400)
    put(tmp_path / "t.json", rank=2, deviceProperties=["x" * 100] * 9)
    assert len(scan([str(tmp_path)]).traces) == 1


def test_bare_lists_are_traces_and_other_lists_are_not(tmp_path: Path) -> None:
    (tmp_path / "a_rank0.json").write_text(json.dumps([operation("a", 1, 1)]))
    (tmp_path / "b.json").write_text("[1, 2]")
    folder = scan([str(tmp_path)])
    assert len(folder.traces) == len(folder.others) == 1


def test_many_files_are_worked_on_in_processes_and_come_in_their_order() -> None:
    paths = [str(path) for path in sorted(RECORDED.glob("*.json.gz"))]
    found = list(map_files(os.path.getsize, paths, processes=2))
    assert found == [(path, os.path.getsize(path)) for path in paths]
    assert list(map_files(len, ["ab", "c"], memory_bytes=1)) == [("ab", 2), ("c", 1)]


def test_a_file_of_a_folder_that_cannot_be_read_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a.json", rank=0)
    put(tmp_path / "b.json", rank=1)
    read = trace_folder.read_head

    def refused(path: str) -> trace_folder.TraceFileHead | None:
        if path.endswith("b.json"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return read(path)

    monkeypatch.setattr(trace_folder, "read_head", refused)
    folder = scan([str(tmp_path)])
    assert [head.rank for head in folder.traces] == [0]
    assert folder.notes == [f"{tmp_path / 'b.json'} was left out: Permission denied"]
    with pytest.raises(PermissionError):
        scan([str(tmp_path / "b.json")])


def test_what_is_a_trace_for_the_head_is_one_for_the_reader() -> None:
    for path in RECORDED.rglob("*.json.gz"):
        assert trace_folder.read_head(str(path)) is not None
    assert trace([]).startswith(b"{")
