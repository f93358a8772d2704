"""Traces that could not be written are refused before anybody waits for them."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.profiling import destinations
from dynolog.profiling.destinations import Destination, check_destinations
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_view import file_view
from fakes.processes import process_with

USER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: other users' processes")


def ask(*asked: Destination, deadline_s: float = 10.0) -> list[str]:
    return asyncio.run(check_destinations(asked, deadline_s))


def own(path: object, trace_dir: str = "") -> Destination:
    return Destination(os.getpid(), 7, os.geteuid(), os.getegid(), trace_dir, str(path))


def other(pid: int, path: object, uid: int = USER, view: str = "") -> Destination:
    return Destination(pid, 7, uid, uid, "", str(path), view)


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A directory that other users can reach (pytest's own is closed to them)."""
    path = Path(tempfile.mkdtemp(prefix="dynolog-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    assert ask(own(tmp_path / "x" / "y" / "t.json")) == [""]
    assert (tmp_path / "x" / "y").is_dir()
    assert list((tmp_path / "x" / "y").iterdir()) == []


def test_each_destination_has_its_own_answer_in_order(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "t_3.json").mkdir()
    said = ask(
        own(tmp_path / "t_1.json"),
        own(tmp_path / "file" / "t.json"),
        own(tmp_path / "t_3.json"),
        own(tmp_path / "file" / "deeper" / "t.json"),
        own(tmp_path / "t_5.json"),
    )
    assert said[0] == said[4] == ""
    assert "is not a directory" in said[1]
    assert "not a regular file" in said[2]
    assert "not a directory" in said[3]


def test_a_file_system_of_the_kernels_takes_no_trace() -> None:
    """sysfs lets root pass every check of rights, and then makes no file."""
    (said,) = ask(own("/sys/t.json"))
    assert "/sys" in said
    assert "choose a" in said


def test_the_trainers_trace_directory_is_respected(tmp_path: Path) -> None:
    said = ask(
        own("/data/t.json", "/scratch/"), own("/scratch2/t.json", "/scratch"), own(tmp_path / "t.json", str(tmp_path))
    )
    assert "choose a path below /scratch/" in said[0]
    assert "KINETO_ONDEMAND_TRACE_DIR=/scratch " in said[1]
    assert said[2] == ""


def test_an_unverified_trainer_is_judged_by_text_alone() -> None:
    assert (
        ask(Destination(0, 7, 0, 0, "", "/nowhere/t.json"), Destination(0, 7, 0, 0, "/tmp", "/nowhere/t.json"))[0] == ""
    )


def test_a_process_that_has_gone_is_not_our_business_here() -> None:
    assert ask(Destination(2**22 + 1, 7, 0, 0, "", "/nowhere/t.json")) == [""]


def test_many_trainers_are_answered_by_one_probe(tmp_path: Path) -> None:
    started = time.monotonic()
    said = ask(*(own(tmp_path / f"t_{number}.json") for number in range(4000)))
    assert said == [""] * 4000
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("others", [0, 1000])
def test_what_stands_in_the_way_is_found_among_many_however_full_the_directory(tmp_path: Path, others: int) -> None:
    for index in range(others):
        (tmp_path / f"other_{index}").touch()
    (tmp_path / "t_7.json").mkdir()
    (tmp_path / "t_9.json.tmp").symlink_to("/nowhere")
    (tmp_path / "t_11.json").write_text("an earlier trace of this user")
    said = ask(*(own(tmp_path / f"t_{index}.json") for index in range(64)))
    refused = {index: sentence for index, sentence in enumerate(said) if sentence}
    assert set(refused) == {7, 9}
    assert f"{tmp_path}/t_7.json exists and is not a regular file" in refused[7]
    assert f"{tmp_path}/t_9.json.tmp exists and is not a regular file" in refused[9]


@pytest.mark.root
@needs_root
def test_a_directory_that_may_be_entered_but_not_read_is_looked_at_file_by_file(open_tmp: Path) -> None:
    (open_tmp / "t_7.json").mkdir()
    open_tmp.chmod(0o733)
    with process_with(uid=USER) as pid:
        said = ask(*(other(pid, open_tmp / f"t_{index}.json") for index in range(64)))
    assert [index for index, sentence in enumerate(said) if sentence] == [7]


def test_what_hangs_is_said_to_hang_and_holds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork in a dead NFS cannot even be killed; here one that sleeps stands for it."""
    script = tmp_path / "probe.py"
    script.write_text("import os, time\nif os.fork() == 0:\n  time.sleep(60)\nos.write(1, b'0\\t\\n')\n")
    monkeypatch.setattr(destinations, "_PROBE", str(script))
    started = time.monotonic()
    said = ask(own("/good/t.json"), own("/dead/t.json"), deadline_s=0.4)
    assert time.monotonic() - started < 30
    assert said[0] == ""
    assert said[1].startswith("/dead did not answer within 0.4 s")


def test_no_answer_from_a_broken_probe_is_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations, "_PROBE", str(tmp_path / "missing.py"))
    assert ask(own("/x/t.json")) == [""]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    ask(own(tmp_path / "t.json"))
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        ask(own(tmp_path / "t.json"))
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.root
@needs_root
def test_rights_are_those_of_the_trainer(open_tmp: Path) -> None:
    (open_tmp / "roots").mkdir(mode=0o755)
    (open_tmp / "theirs").mkdir()
    os.chown(open_tmp / "theirs", USER, USER)
    (open_tmp / "groups").mkdir()
    os.chown(open_tmp / "groups", 0, 777)
    (open_tmp / "groups").chmod(0o770)
    with process_with(uid=USER, groups="777") as pid, process_with(uid=USER, groups="778") as outsider:
        said = ask(
            other(pid, open_tmp / "roots" / "t.json"),
            other(pid, open_tmp / "theirs" / "new" / "t.json"),
            other(pid, open_tmp / "groups" / "t.json"),
            other(outsider, open_tmp / "groups" / "t.json"),
            other(pid, open_tmp / "roots" / "new" / "t.json"),
        )
    assert (
        said[0]
        == f"the trainer may not write in {open_tmp}/roots (permission denied): choose a directory that its user may write"
    )
    assert said[1] == said[2] == ""
    assert "permission denied" in said[3]
    assert "cannot make it" in said[4]
    made = (open_tmp / "theirs" / "new").stat()
    assert (made.st_uid, made.st_gid) == (USER, USER)


@pytest.mark.root
@needs_root
def test_one_speaks_for_all_of_a_user_with_the_same_view_and_for_no_other_user(open_tmp: Path) -> None:
    """The directory is open to group 777 only: what is found out for one of its members holds for those alike, by their own rights."""
    shared = open_tmp / "shared"
    shared.mkdir()
    os.chown(shared, 0, 777)
    shared.chmod(0o770)
    host = HostFiles()
    with (
        process_with(uid=USER, groups="777") as member,
        process_with(uid=USER, groups="777") as second,
        process_with(uid=USER, groups="778") as outsider,
        process_with(uid=USER + 1, groups="778") as stranger,
    ):
        views = {pid: file_view(host, pid) for pid in (member, second, outsider, stranger)}
        asked = [
            other(member, shared / "a.json", view=views[member]),
            other(outsider, shared / "b.json", view=views[outsider]),
            other(second, shared / "new" / "c.json", view=views[second]),
            # A view is a text: a user's own must not be enough to be taken for another.
            other(stranger, shared / "d.json", uid=USER + 1, view=views[member]),
        ]
        said = ask(*asked)
    assert (said[0], said[2]) == ("", "")
    assert "permission denied" in said[1]
    assert "permission denied" in said[3]
    made = (shared / "new").stat()
    assert (made.st_uid, made.st_gid) == (USER, USER)


def test_the_next_speaks_when_the_first_of_those_alike_has_gone(tmp_path: Path) -> None:
    """Its rights are read from the first that is still there."""
    (tmp_path / "file").touch()
    view = file_view(HostFiles(), os.getpid())
    gone = Destination(2**22 + 1, 7, os.geteuid(), os.getegid(), "", str(tmp_path / "file" / "t.json"), view)
    here = Destination(os.getpid(), 7, os.geteuid(), os.getegid(), "", str(tmp_path / "file" / "t.json"), view)
    said = ask(gone, here)
    assert said[0] == ""
    assert "is not a directory" in said[1]


@pytest.mark.root
@needs_root
def test_a_file_of_another_user_is_not_overwritten(open_tmp: Path) -> None:
    open_tmp.chmod(0o1777)
    (open_tmp / "t.json").write_text("")
    (open_tmp / "u.json.tmp").write_text("")
    (open_tmp / "v.json").write_text("")
    os.chown(open_tmp / "v.json", USER, USER)
    with process_with(uid=USER) as pid:
        said = ask(*(other(pid, open_tmp / name) for name in ("t.json", "u.json", "v.json")))
    assert said == [
        f"{open_tmp}/t.json exists and belongs to user 0: choose another name",
        f"{open_tmp}/u.json.tmp exists and belongs to user 0: choose another name",
        "",
    ]


@pytest.mark.root
@needs_root
def test_the_path_is_looked_up_below_the_trainers_root(open_tmp: Path) -> None:
    """The link points to the host's /etc for us, to its own for the trainer."""
    jail = open_tmp / "jail"
    (jail / "data").mkdir(parents=True)
    os.chown(jail / "data", USER, USER)
    (jail / "link").symlink_to("/data")
    with process_with(root=str(jail), uid=USER) as pid:
        assert ask(other(pid, "/link/made/t.json"), other(pid, f"{jail}/data/t.json"))[0] == ""
        assert "cannot make it" in ask(other(pid, f"{jail}/data/t.json"))[0]
    assert (jail / "data" / "made").is_dir()


@pytest.mark.root
@needs_root
@pytest.mark.parametrize(
    ("options", "flags", "says"),
    [("size=1m", 0, "KiB are free"), ("size=64m", 1, "read-only file system"), ("size=64m,mode=777", 0, "")],
)
def test_the_file_system_is_the_one_of_the_trainers_mount_namespace(
    open_tmp: Path, options: str, flags: int, says: str
) -> None:
    with process_with(uid=0, mount=f"none;{open_tmp};tmpfs;{options};{flags}") as pid:
        said = ask(other(pid, open_tmp / "t.json", uid=0))[0]
    assert says in said
    assert bool(says) == bool(said)


@pytest.mark.root
@needs_root
def test_a_daemon_that_is_not_root_speaks_for_its_own_user_only(open_tmp: Path) -> None:
    """Run as that user: its own trainer's closed directory is refused, of another's nothing is said."""
    (open_tmp / "closed").mkdir(mode=0o700)
    shutil.copy(destinations._PROBE, open_tmp / "probe.py")
    with process_with(uid=USER) as same, process_with(uid=USER + 1) as another:
        items = [
            (0, same, USER, USER, "", f"{open_tmp}/closed/t.json"),
            (1, another, USER + 1, USER + 1, "", f"{open_tmp}/closed/t.json"),
        ]
        code = (
            f"import io, marshal, os, sys; os.setresgid(*[{USER}] * 3); os.setresuid(*[{USER}] * 3)\n"
            f"sys.stdin = io.TextIOWrapper(io.BytesIO(marshal.dumps({items})))\n"
            f"exec(open({str(open_tmp / 'probe.py')!r}).read())"
        )
        done = subprocess.run([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, check=True)
    said = dict(line.split("\t") for line in done.stdout.decode().splitlines())
    assert "permission denied" in said["0"]
    assert said["1"] == ""


def test_a_dry_run_makes_no_directory_and_still_judges(tmp_path: Path) -> None:
    """A missing directory is only judged: what is there of its path would have to take it."""
    missing = tmp_path / "a" / "b"
    (tmp_path / "file").touch()
    asked = [own(missing / "t_1.json"), own(tmp_path / "file" / "b" / "t_1.json")]
    fine, refused = asyncio.run(check_destinations(asked, make_missing=False))
    assert fine == ""
    assert "is not a directory" in refused
    assert not missing.exists()
    assert ask(asked[0]) == [""]
    assert missing.is_dir()
