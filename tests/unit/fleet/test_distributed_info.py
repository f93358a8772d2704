"""Adding rank and world size to traces."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.fleet.distributed_info import DistributedInfo, add_info, sha256_before, sha256_of

INFO = DistributedInfo(rank=3, world_size=16)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_it_is_added_once_and_everything_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [{"name": "a"}]}')
    before = path.read_bytes()
    assert add_info(str(path), INFO)
    trace = json.loads(path.read_bytes())
    assert trace == {"distributedInfo": {"rank": 3, "world_size": 16}} | json.loads(before)
    after = path.read_bytes()
    assert not add_info(str(path), INFO)
    assert path.read_bytes() == after
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.json"]


def test_the_digest_of_what_was_written_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": []}')
    before = sha256(path.read_bytes())
    assert sha256_before(str(path)) == sha256_of(str(path)) == before
    add_info(str(path), INFO)
    assert sha256_before(str(path)) == before
    assert sha256_of(str(path)) == sha256(path.read_bytes()) != before


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"\x1f\x8b\x08", b'{"a": 1, "distributedInfo": {"rank": 0}}', b"\x80\x04pickle"]
)
def test_a_trace_that_has_it_and_what_is_no_plain_object_stay_as_they_are(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    assert not add_info(str(path), INFO)
    assert path.read_bytes() == data


@pytest.mark.parametrize("distance", range(-20, 3))
def test_a_key_across_two_blocks_is_found(tmp_path: Path, distance: int) -> None:
    """Blocks have 1 MiB."""
    path = tmp_path / "t.json"
    head = b'{"a": "'
    path.write_bytes(head + b"x" * ((1 << 20) + distance - len(head) - 3) + b'", "distributedInfo": {}}')
    assert not add_info(str(path), INFO)


def trace_with(*names: str) -> str:
    """As PyTorch writes it: a blank first, and a blank behind each colon."""
    return " " + json.dumps(
        {"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": name} for name in names]}, indent=2
    )


@pytest.mark.parametrize(
    ("names", "backend"),
    [
        (["aten::mm", "gloo:all_reduce", "gloo:broadcast"], "gloo"),
        (["nccl:all_reduce"], "nccl"),
        (["nccl:all_reduce", "gloo:broadcast"], ""),  # which is the job's is not known
        (["aten::mm", 'x "name": "gloo:all_reduce"'], ""),
        ([], ""),
    ],
)
def test_the_backend_is_that_of_the_collectives_in_the_trace_when_it_is_one(
    tmp_path: Path, names: list[str], backend: str
) -> None:
    path = tmp_path / "t.json"
    path.write_text(trace_with(*names))
    before = sha256(path.read_bytes())
    assert add_info(str(path), INFO)
    info = json.loads(path.read_bytes())["distributedInfo"]
    assert info == {"rank": 3, "world_size": 16} | ({"backend": backend} if backend else {})
    assert sha256_before(str(path)) == before


@pytest.mark.parametrize("distance", range(-30, 3))
def test_a_collective_across_two_blocks_is_found(tmp_path: Path, distance: int) -> None:
    """Blocks have 1 MiB."""
    path = tmp_path / "t.json"
    head = b'{"a": "'
    padding = b"x" * ((1 << 20) + distance - len(head) - 3)
    path.write_bytes(head + padding + b'", "traceEvents": [{"name": "nccl:all_gather"}]}')
    assert add_info(str(path), INFO)
    assert json.loads(path.read_bytes())["distributedInfo"]["backend"] == "nccl"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_any_object_keeps_its_content(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content))
    before = sha256(path.read_bytes())
    added = add_info(str(path), INFO)
    trace = json.loads(path.read_bytes())
    if added:
        assert trace.pop("distributedInfo") == {"rank": 3, "world_size": 16}
        assert trace == content
    else:
        assert b'"distributedInfo"' in path.read_bytes()
    assert content == {} or sha256_before(str(path)) == before
