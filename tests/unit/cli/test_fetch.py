"""Files that are brought here: whole, checked, never over another one, and never where a name from outside leads."""

import contextlib
import gzip
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.cli.gputrace.fetch import FetchError, fetch_all, fetch_one
from dynolog.cli.gputrace.fetch_names import names_for, safe_name, with_suffix
from dynolog.model.capture import CaptureState, TraceFile
from dynolog.model.errors import RequestError
from dynolog.rpc.client import Target
from dynolog.rpc.fetch_client import FetchInterrupted
from dynolog.rpc.messages import FetchReply
from fakes.services import capture

CONTENT = b'{"traceEvents": [1, 2, 3]}' * 50


class FakeStream:
    """Gives blocks of ten bytes, and breaks where it is told to."""

    def __init__(self, content: bytes, offset: int, break_at: int | None, sha256: str = "") -> None:
        digest = sha256 or hashlib.sha256(content).hexdigest()
        self.reply = FetchReply(
            capture_id="c1", name="t.json", size_bytes=len(content), sha256=digest, offset=offset, chunk_bytes=10
        )
        self._content = content
        self._break_at = break_at

    def __iter__(self) -> Iterator[bytes]:
        for start in range(self.reply.offset, len(self._content), 10):
            if self._break_at is not None and start >= self._break_at:
                raise FetchInterrupted("t.json", start, len(self._content))
            yield self._content[start : start + 10]


class FakeDaemon:
    """Opens streams; the first ones break at these places. Remembers the offsets it was asked for."""

    def __init__(self, *breaks: int, content: bytes = CONTENT, sha256: str = "") -> None:
        self.offsets: list[int] = []
        self._breaks = list(breaks)
        self._content = content
        self._sha256 = sha256

    @contextlib.contextmanager
    def open(self, offset: int) -> Iterator[FakeStream]:
        self.offsets.append(offset)
        if offset > len(self._content):
            raise RequestError("bad_request", "the offset is beyond the end")
        yield FakeStream(self._content, offset, self._breaks.pop(0) if self._breaks else None, self._sha256)


def test_a_broken_stream_goes_on_where_it_stopped(tmp_path: Path) -> None:
    daemon = FakeDaemon(100, 500)
    fetched = fetch_one(daemon.open, "c1", str(tmp_path / "t.json"), compress=False, pause_s=0)
    assert daemon.offsets == [0, 100, 500]
    assert (tmp_path / "t.json").read_bytes() == CONTENT
    assert fetched.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_daemon_that_sends_others_traces_is_asked_again(tmp_path: Path) -> None:
    daemon, refusals = FakeDaemon(), [RequestError("busy", "8 fetches of uid 0 are going on")] * 2

    def open_stream(offset: int) -> contextlib.AbstractContextManager[FakeStream]:
        if refusals:
            raise refusals.pop()
        return daemon.open(offset)

    fetch_one(open_stream, "c1", str(tmp_path / "t.json"), compress=False, pause_s=0)
    assert (tmp_path / "t.json").read_bytes() == CONTENT


def test_what_came_is_kept_when_nothing_more_comes_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = str(tmp_path / "t.json")
    with pytest.raises(FetchInterrupted):
        fetch_one(FakeDaemon(100, 100, 100, 100).open, "c1", path, compress=False, pause_s=0)
    assert not os.path.exists(path)
    again = FakeDaemon()
    fetch_one(again.open, "c1", path, compress=False, pause_s=0)
    assert again.offsets == [100]
    assert (tmp_path / "t.json").read_bytes() == CONTENT


def test_a_wrong_checksum_keeps_nothing(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="SHA-256"):
        fetch_one(FakeDaemon(sha256="0" * 64).open, "c1", str(tmp_path / "t.json"), compress=False, pause_s=0)
    assert os.listdir(tmp_path) == []


def test_what_is_left_of_another_file_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / ".t.json.c1.part").write_bytes(b"x" * (len(CONTENT) + 1))
    daemon = FakeDaemon()
    fetch_one(daemon.open, "c1", str(tmp_path / "t.json"), compress=False, pause_s=0)
    assert daemon.offsets == [len(CONTENT) + 1, 0]
    assert (tmp_path / "t.json").read_bytes() == CONTENT


def test_another_file_of_that_name_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("mine")
    with pytest.raises(FetchError, match="nothing was overwritten"):
        fetch_one(FakeDaemon().open, "c1", str(tmp_path / "t.json"), compress=False, pause_s=0)
    assert (tmp_path / "t.json").read_text() == "mine"
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_link_in_the_way_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".t.json.c1.part").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        fetch_one(FakeDaemon().open, "c1", str(tmp_path / "t.json"), compress=False, pause_s=0)
    assert victim.read_text() == "precious"


def test_a_file_that_is_here_already_is_not_sent_again(tmp_path: Path) -> None:
    """Whole or compressed; the daemon is not asked (this target would not answer)."""
    facts = TraceFile(size_bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(), events=3)
    written = capture(1, state=CaptureState.WRITTEN, path="/tmp/t_1.json", file=facts)
    (tmp_path / "t_1.json.gz").write_bytes(gzip.compress(CONTENT))
    nowhere = Target(unix=str(tmp_path / "none.sock"))
    (fetched,) = fetch_all(nowhere, [written], str(tmp_path), compress=True)
    assert (fetched.already_here, fetched.error) == (True, "")
    (tmp_path / "t_1.json").write_text("other")
    (fetched,) = fetch_all(nowhere, [written], str(tmp_path), compress=True)
    assert "nothing was overwritten" in fetched.error


def test_gzip_packs_the_copy_and_leaves_packed_ones_alone(tmp_path: Path) -> None:
    packed = fetch_one(FakeDaemon().open, "c1", str(tmp_path / "t.json"), compress=True, pause_s=0)
    assert packed.path.endswith("/t.json.gz")
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == CONTENT
    already = gzip.compress(CONTENT)
    as_it_is = fetch_one(FakeDaemon(content=already).open, "c2", str(tmp_path / "u.json.gz"), compress=True, pause_s=0)
    assert as_it_is.path.endswith("/u.json.gz")
    assert (tmp_path / "u.json.gz").read_bytes() == already
    assert sorted(os.listdir(tmp_path)) == ["t.json.gz", "u.json.gz"]


def test_a_file_that_cannot_be_fetched_costs_only_itself(tmp_path: Path) -> None:
    written = [capture(pid, state=CaptureState.WRITTEN) for pid in (1, 2)]
    fetched = fetch_all(
        Target(unix=str(tmp_path / "none.sock"), timeout_s=1), written[:1], str(tmp_path), compress=False
    )
    assert "no daemon answers" in fetched[0].error
    assert os.listdir(tmp_path) == []


@given(st.text(st.characters(codec=None), max_size=400))
def test_a_name_never_leads_elsewhere(name: str) -> None:
    safe = safe_name(name)
    assert safe.isprintable()
    assert safe not in ("", ".", "..")
    assert "/" not in safe
    assert not safe.startswith(".")
    assert len(safe.encode()) <= 200


def test_names_of_a_path_from_outside() -> None:
    assert safe_name("/tmp/t_1.json") == "t_1.json"
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("..") == "trace.json"
    assert safe_name("/tmp/.bashrc") == "bashrc"
    assert safe_name("a\x1b[2Jb.json") == "a_x1b[2Jb.json"


def test_equal_names_of_two_containers_get_the_host_pid() -> None:
    captures = [capture(1, id=f"c{host}", host_pid=host, path="/tmp/t_1.json") for host in (70, 80)]
    assert names_for(captures) == {"c70": "t_1_host70.json", "c80": "t_1_host80.json"}
    assert with_suffix("a.json.gz", "_x") == "a_x.json.gz"
    assert with_suffix("a", "_x") == "a_x"
