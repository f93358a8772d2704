"""From the first temporary file to the checked final one, in real directories, with real child processes."""

import asyncio
import errno
import gzip
import hashlib
import os
import pickle
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from dynolog.model.capture import TraceFile
from dynolog.profiling import trace_watch
from dynolog.profiling.check_process import CheckProcess
from dynolog.profiling.observations import Checked, FinalSeen, Invalid, NothingThere, Observation, TemporarySeen, Unseen
from dynolog.profiling.pinned_roots import PinnedRoot, PinnedRoots
from dynolog.profiling.trace_watch import TraceWatch
from dynolog.sources.own_program import module_command, module_environment
from fakes.processes import process_with
from fakes.traces import operation, trace

WHOLE = trace([operation("a", 1, 2)])
USER = 54321
DEADLINE_S = 20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: other users' processes")


class Session:
    """A watch on a running loop, and what it reported."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Observation]] = []
        self._news = asyncio.Event()
        self.watch = TraceWatch(asyncio.get_running_loop(), self._take)

    def _take(self, capture_id: str, observation: Observation) -> None:
        self.seen.append((capture_id, observation))
        self._news.set()

    async def next(self, kind: type[Observation], capture_id: str = "c") -> Observation:
        """The first report of a kind about a capture, which may have come already."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for seen_id, observation in self.seen:
                    if seen_id == capture_id and isinstance(observation, kind):
                        return observation
                    assert seen_id != capture_id or not isinstance(observation, Invalid) or kind is Invalid, observation
                self._news.clear()
                await self._news.wait()

    async def first_look(self) -> None:
        """Returns when what is there already was looked at."""
        async with asyncio.timeout(DEADLINE_S):
            while any(watched.stale is None for watched in self.watch._watched.values()):
                await asyncio.sleep(0.005)

    async def idle(self) -> None:
        """Returns when the thread has ended."""
        async with asyncio.timeout(DEADLINE_S):
            while any(thread.name == "trace-watch" for thread in threading.enumerate()):
                await asyncio.sleep(0.01)


def run(body: Callable[[Session], object]) -> None:
    async def session() -> None:
        here = Session()
        try:
            await body(here)  # type: ignore[misc]
        finally:
            here.watch.close()
            await here.idle()

    asyncio.run(session())


def publish(path: Path, data: bytes, owner: int = -1) -> None:
    """As libkineto does."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.chown(temporary, owner, owner)
    temporary.rename(path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_watch, "INTERVAL_S", 0.02)


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="dynolog-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_a_trace_is_followed_from_its_temporary_file_to_its_check(tmp_path: Path) -> None:
    path = tmp_path / "t_1.json"

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(path), str(tmp_path / "other.json")))
        await here.first_look()
        (tmp_path / "t_1.json.tmp").write_bytes(WHOLE[:10])
        assert await here.next(TemporarySeen) == TemporarySeen(10)
        publish(path, WHOLE)
        assert await here.next(FinalSeen) == FinalSeen(str(path), str(path), len(WHOLE))
        checked = await here.next(Checked)
        assert isinstance(checked, Checked)
        assert (checked.path, checked.host_path, checked.file.events) == (str(path), str(path), 1)
        await here.idle()
        with os.fdopen(here.watch.open("c"), "rb") as file:
            assert file.read() == WHOLE
        assert here.watch._roots._roots == {}  # the host has a name for it, so the trainer's root is let go
        publish(path, WHOLE)
        with pytest.raises(OSError) as caught:
            here.watch.open("c")
        assert caught.value.errno == errno.ESTALE

    run(body)


def test_files_that_were_there_before_are_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "t_1.json"
    publish(path, WHOLE)
    (tmp_path / "t_1.json.tmp").write_bytes(b"left by a run before")

    async def body(here: Session) -> None:
        await asyncio.sleep(0.02)  # files are stamped by the timer interrupt
        here.watch.watch("c", os.getpid(), os.getuid(), (str(path),))
        await here.first_look()
        here.watch.watch("other", os.getpid(), os.getuid(), (str(tmp_path / "other.json"),))
        await here.first_look()
        publish(tmp_path / "other.json", WHOLE + b" ")
        await here.next(Checked, "other")
        assert not [observation for capture_id, observation in here.seen if capture_id == "c"]
        publish(path, trace([operation("new", 1, 2), operation("new", 4, 2)]))
        checked = await here.next(Checked)
        assert isinstance(checked, Checked)
        assert checked.file.events == 2

    run(body)


def test_a_first_look_that_comes_late_still_finds_the_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread was held up by a disk: what was written since the capture began is new, what is older is not."""
    monkeypatch.setattr(trace_watch, "_PROMPT_NS", -1)
    old, new = tmp_path / "old_1.json", tmp_path / "new_1.json"
    publish(old, WHOLE)
    held = threading.Event()
    look = PinnedRoot.look
    monkeypatch.setattr(PinnedRoot, "look", lambda self, path: (held.wait(DEADLINE_S), look(self, path))[1])

    async def body(here: Session) -> None:
        await asyncio.sleep(0.02)  # files are stamped by the timer interrupt
        here.watch.watch("c", os.getpid(), os.getuid(), (str(old), str(new)))
        publish(new, WHOLE)
        held.set()
        final = await here.next(FinalSeen)
        assert isinstance(final, FinalSeen)
        assert final.path == str(new)

    run(body)


@pytest.mark.parametrize(("data", "says"), [(WHOLE[:-20], "cut short"), (b"", "0 bytes"), (WHOLE + b"x", "follow")])
def test_a_file_that_is_not_whole_is_invalid_with_the_reason(tmp_path: Path, data: bytes, says: str) -> None:
    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        await here.first_look()
        publish(tmp_path / "t.json", data)
        invalid = await here.next(Invalid)
        assert isinstance(invalid, Invalid)
        assert says in invalid.reason
        with pytest.raises(FileNotFoundError):
            here.watch.open("c")

    run(body)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, os.mkdir])
def test_what_is_not_a_regular_file_is_never_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        await here.first_look()
        make(tmp_path / "t.json")
        assert await here.next(Invalid) == Invalid(str(tmp_path / "t.json"), "it is not a regular file")

    run(body)


def test_the_last_look_finds_the_file_or_says_that_nothing_is_there(tmp_path: Path) -> None:
    async def body(here: Session) -> None:
        for name in ("with", "without"):
            here.watch.watch(name, os.getpid(), os.getuid(), (str(tmp_path / f"{name}.json"),))
        await here.first_look()
        publish(tmp_path / "with.json", WHOLE)
        (tmp_path / "without.json.tmp").write_bytes(b"half")
        here.watch.look_last("with")
        here.watch.look_last("without")
        here.watch.look_last("unknown")
        await here.next(NothingThere, "without")
        await here.next(Checked, "with")
        assert not [seen for name, seen in here.seen if name == "with" and isinstance(seen, NothingThere)]
        assert [seen for name, seen in here.seen if name == "without"] == [TemporarySeen(4), NothingThere()]

    run(body)


def test_a_process_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    async def body(here: Session) -> None:
        here.watch.watch("c", 2**22 + 1, os.getuid(), ("/etc/passwd",))
        here.watch.look_last("c")
        await here.next(NothingThere)

    run(body)


def test_without_descriptors_it_says_that_nothing_can_be_seen_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "No file is there" would be a lie; and what could not be looked at at first is not taken for new afterwards."""
    path = tmp_path / "t_1.json"
    publish(path, WHOLE)
    pin = PinnedRoots.pin
    short = threading.Event()
    short.set()

    def pin_or_fail(self: PinnedRoots, host_pid: int) -> PinnedRoot:
        if short.is_set():
            raise OSError(errno.EMFILE, "Too many open files")
        return pin(self, host_pid)

    monkeypatch.setattr(PinnedRoots, "pin", pin_or_fail)

    async def body(here: Session) -> None:
        await asyncio.sleep(0.02)  # files are stamped by the timer interrupt
        here.watch.watch("c", os.getpid(), os.getuid(), (str(path),))
        unseen = await here.next(Unseen)
        assert isinstance(unseen, Unseen)
        assert "LimitNOFILE" in unseen.reason
        short.clear()
        await here.first_look()
        here.watch.look_last("c")
        await here.next(NothingThere)
        assert [seen for _, seen in here.seen] == [unseen, Unseen(""), NothingThere()]

    run(body)


def test_a_memory_snapshot_is_taken_when_it_has_stopped_growing_and_is_never_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libkineto writes it under its final name; and to unpickle it would run what its writer wants."""
    monkeypatch.setattr(trace_watch, "SETTLED_S", 0.2)
    path = tmp_path / "memory_snapshot_1.pickle"
    marker = tmp_path / "it_ran"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(marker),)

    whole = pickle.dumps({"segments": [Trap()]}, protocol=4)

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"), str(path)))
        await here.first_look()
        path.write_bytes(whole[:9])
        assert await here.next(TemporarySeen) == TemporarySeen(9)
        path.write_bytes(whole)
        checked = await here.next(Checked)
        assert isinstance(checked, Checked)
        assert (checked.file.memory_snapshot, checked.file.size_bytes) == (True, len(whole))
        assert checked.file.sha256 == hashlib.sha256(whole).hexdigest()
        os.close(here.watch.open("c"))
        assert not marker.exists()

    run(body)


@pytest.mark.parametrize("data", [b"", WHOLE, b"\x80\x04\x95 cut", b"\x80\x09 unknown."])
def test_what_is_no_whole_pickle_is_no_memory_snapshot(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "memory_snapshot_1.pickle"

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(path),))
        await here.first_look()
        path.write_bytes(data)
        here.watch.look_last("c")
        assert isinstance(await here.next(Invalid), Invalid)

    run(body)


def test_a_process_that_proc_hides_is_not_said_to_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hidepid its /proc directory is simply not there, while a signal still finds it."""
    shown = os.path.exists

    def gone(_self: PinnedRoots, host_pid: int) -> PinnedRoot:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", f"/proc/{host_pid}/root")

    monkeypatch.setattr(PinnedRoots, "pin", gone)
    monkeypatch.setattr(os.path, "exists", lambda path: path != f"/proc/{os.getpid()}" and shown(path))

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        unseen = await here.next(Unseen)
        assert isinstance(unseen, Unseen)
        assert "hidepid" in unseen.reason

    run(body)


def test_a_daemon_that_may_not_look_says_as_whom_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_self: PinnedRoot, _path: str) -> os.stat_result | None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(PinnedRoot, "look", forbidden)

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        assert await here.next(Unseen) == Unseen(f"the daemon runs as uid {os.geteuid()} and may not look there")
        here.watch.look_last("c")
        await here.next(NothingThere)

    run(body)


def test_a_file_that_the_daemon_may_not_read_is_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root of a container without CAP_DAC_READ_SEARCH, and a file of mode 600."""

    def forbidden(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(trace_watch, "open_beneath", forbidden)

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        await here.first_look()
        publish(tmp_path / "t.json", WHOLE)
        words = "the daemon cannot read it: Permission denied (files of other users take CAP_DAC_READ_SEARCH)"
        assert await here.next(Invalid) == Invalid(f"{tmp_path}/t.json", words, was_read=False)

    run(body)


@pytest.mark.root
@needs_root
def test_root_of_a_container_that_may_not_change_its_user_checks_all_the_same(tmp_path: Path) -> None:
    """The check leaves root's uid where it can; without CAP_SETUID it answers too, and with what CheckProcess reads."""
    (tmp_path / "t.json").write_bytes(WHOLE)
    confined = ("setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid")
    with (tmp_path / "t.json").open("rb") as file:
        done = subprocess.run(
            [*confined, *module_command("dynolog.profiling.trace_check"), "0"],
            env=module_environment(),
            stdin=file,
            capture_output=True,
            check=True,
        )
    answer = done.stdout.splitlines()[-1]
    assert msgspec.json.decode(answer.removeprefix(b"c"), type=TraceFile).events == 1


@pytest.mark.root
@needs_root
def test_a_trainer_that_becomes_root_after_its_config_gets_no_files_of_root(open_tmp: Path) -> None:
    """Running a set-user-ID program between poll and file would else have the daemon check and hand out root's files."""

    async def body(here: Session) -> None:
        with process_with(uid=0) as pid:
            here.watch.watch("c", pid, USER, (f"{open_tmp}/t.json",))
            await here.first_look()
            publish(open_tmp / "t.json", WHOLE)
            invalid = await here.next(Invalid)
            assert isinstance(invalid, Invalid)
            assert invalid.reason == f"it belongs to user 0, not to the trainer's user {USER}"

    run(body)


def test_nothing_stays_open_and_no_thread_stays_when_all_is_forgotten(tmp_path: Path) -> None:
    async def body(here: Session) -> None:
        before = os.listdir("/proc/self/fd")
        for round_ in range(3):
            for number in range(20):
                here.watch.watch(
                    f"{round_}.{number}", os.getpid(), os.getuid(), (str(tmp_path / f"{round_}_{number}.json"),)
                )
            # All captures of one root share a descriptor.
            assert len(os.listdir("/proc/self/fd")) <= len(before) + 4
            publish(tmp_path / f"{round_}_3.json", WHOLE)
            for number in range(20):
                here.watch.forget(f"{round_}.{number}")
        here.watch.forget("unknown")
        await here.idle()
        # Fewer, when something of an earlier test is collected meanwhile.
        assert len(os.listdir("/proc/self/fd")) <= len(before)
        assert here.seen == []

    run(body)


def test_a_check_that_is_forgotten_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = stub_checks(monkeypatch, "import time; time.sleep(60)")

    async def body(here: Session) -> None:
        before = os.listdir("/proc/self/fd")
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        await here.first_look()
        publish(tmp_path / "t.json", WHOLE)
        await here.next(FinalSeen)
        async with asyncio.timeout(DEADLINE_S):
            while not pids:
                await asyncio.sleep(0.01)
        here.watch.forget("c")
        await here.idle()
        with pytest.raises(ProcessLookupError):
            os.kill(pids[0], 0)
        assert len(os.listdir("/proc/self/fd")) <= len(before)

    run(body)


def stub_checks(monkeypatch: pytest.MonkeyPatch, code: str, no_progress_s: float = 30.0) -> list[int]:
    """Check processes that run `code`; the list gets their pids."""
    real = subprocess.Popen
    pids: list[int] = []

    def popen(arguments: list[str], **options: object) -> object:
        process = real([arguments[0], "-S", "-c", code], **options)  # type: ignore[call-overload]
        pids.append(process.pid)
        return process

    class Impatient(CheckProcess):
        def __init__(self, fd: int, pickled: bool) -> None:
            monkeypatch.setattr(subprocess, "Popen", popen)
            try:
                super().__init__(fd, no_progress_s)
            finally:
                monkeypatch.setattr(subprocess, "Popen", real)

    monkeypatch.setattr(trace_watch, "CheckProcess", Impatient)
    return pids


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import time; time.sleep(60)", "gave nothing for 0.3 s"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("print('p'); raise SystemExit(3)", "exit status 3"),
        ("print('p'); print('i' + 'so it is')", "so it is"),
    ],
)
def test_a_check_without_an_answer_says_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    # Only the first must run into it: on a busy machine the others take longer than that to start.
    stub_checks(monkeypatch, code, 0.3 if "0.3 s" in says else 60.0)

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        await here.first_look()
        publish(tmp_path / "t.json", WHOLE)
        invalid = await here.next(Invalid)
        assert isinstance(invalid, Invalid)
        assert says in invalid.reason

    run(body)


def test_at_most_two_checks_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    class Counted(CheckProcess):
        def __init__(self, fd: int, pickled: bool) -> None:
            nonlocal most
            super().__init__(fd)
            most = max(most, here_watch[0]._checks.total() + 1)

    monkeypatch.setattr(trace_watch, "CheckProcess", Counted)
    here_watch: list[TraceWatch] = []

    async def body(here: Session) -> None:
        here_watch.append(here.watch)
        for number in range(5):
            here.watch.watch(str(number), os.getpid(), os.getuid(), (str(tmp_path / f"{number}.json"),))
        await here.first_look()
        for number in range(5):
            publish(tmp_path / f"{number}.json", WHOLE)
        for number in range(5):
            await here.next(Checked, str(number))

    run(body)
    assert most == 2


@pytest.mark.root
@needs_root
def test_one_users_checks_hold_up_no_other_users(tmp_path: Path) -> None:
    """A gzip stream of gigabytes takes minutes to read."""
    slow = tmp_path / "slow.gz"
    with gzip.open(slow, "wb", 1) as file:
        file.write(b'{"traceEvents":[')
        for _ in range(600):
            file.write(b" " * (1 << 20))

    async def body(here: Session) -> None:
        for number in range(3):
            path = tmp_path / f"{number}.json"
            here.watch.watch(str(number), os.getpid(), USER, (str(path),))
        here.watch.watch("c", os.getpid(), 0, (str(tmp_path / "c.json"),))
        await here.first_look()
        for number in range(3):
            publish(tmp_path / f"{number}.json", slow.read_bytes(), USER)
        for number in range(2):
            await here.next(FinalSeen, str(number))
        publish(tmp_path / "c.json", WHOLE)
        await here.next(Checked)
        assert not [seen for name, seen in here.seen if name != "c" and isinstance(seen, Invalid | Checked)]

    run(body)


def test_a_disk_that_hangs_is_said_and_holds_up_no_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(PinnedRoot, "look", lambda self, path: release.wait(DEADLINE_S) and None)
    monkeypatch.setattr(trace_watch, "STALLED_S", 0.05)

    async def body(here: Session) -> None:
        assert here.watch.stalled == ""
        here.watch.watch("c", os.getpid(), os.getuid(), ("/dead/t.json",))
        async with asyncio.timeout(DEADLINE_S):
            while not here.watch.stalled:
                await asyncio.sleep(0.01)
        assert f"/dead/t.json of process {os.getpid()} has not answered" in here.watch.stalled
        started = time.monotonic()
        here.watch.watch("d", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        here.watch.look_last("c")
        here.watch.forget("c")
        assert time.monotonic() - started < 5, "the dead file system holds nobody up"
        release.set()

    run(body)


def test_captures_on_a_dead_disk_hold_up_no_other_and_cost_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    look = PinnedRoot.look

    def look_or_hang(self: PinnedRoot, path: str) -> os.stat_result | None:
        if path.startswith("/dead/"):
            release.wait(DEADLINE_S)
            return None
        return look(self, path)

    monkeypatch.setattr(PinnedRoot, "look", look_or_hang)
    monkeypatch.setattr(trace_watch, "STALLED_S", 0.05)

    async def body(here: Session) -> None:
        for rank in range(8):
            here.watch.watch(str(rank), os.getpid(), os.getuid(), (f"/dead/t_{rank}.json",))
        here.watch.watch("c", os.getpid(), os.getuid(), (str(tmp_path / "t.json"),))
        async with asyncio.timeout(DEADLINE_S):
            while here.watch._watched["c"].stale is None:
                await asyncio.sleep(0.01)
        publish(tmp_path / "t.json", WHOLE)
        await here.next(Checked)
        assert sum(thread.name == "trace-watch" for thread in threading.enumerate()) <= 2
        assert "/dead/t_0.json" in here.watch.stalled
        here.watch.look_last("7")
        release.set()
        await here.next(NothingThere, "7")
        assert here.watch.stalled == ""

    run(body)


def test_an_error_that_nobody_foresaw_ends_one_capture_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = PinnedRoot.look

    def broken(self: PinnedRoot, path: str) -> os.stat_result | None:
        return look(self, path) if "good" in path else 1 / 0  # type: ignore[return-value]

    monkeypatch.setattr(PinnedRoot, "look", broken)

    async def body(here: Session) -> None:
        here.watch.watch("c", os.getpid(), os.getuid(), ("/bad.json",))
        here.watch.watch("good", os.getpid(), os.getuid(), (str(tmp_path / "good.json"),))
        assert "ZeroDivisionError" in str(await here.next(Invalid))
        await here.first_look()
        publish(tmp_path / "good.json", WHOLE)
        await here.next(Checked, "good")

    # A capture whose first look failed has no baseline; only the good one is waited for.
    monkeypatch.setattr(Session, "first_look", lambda self: asyncio.sleep(0.1))
    run(body)


@pytest.mark.root
@needs_root
def test_files_of_a_chrooted_trainer_are_found_after_it_has_died(open_tmp: Path) -> None:
    (open_tmp / "data").mkdir()
    (open_tmp / "elsewhere").symlink_to("/data")

    async def body(here: Session) -> None:
        with process_with(root=str(open_tmp), uid=USER) as pid:
            here.watch.watch("c", pid, USER, ("/elsewhere/t.json",))
            await here.first_look()
        publish(open_tmp / "data" / "t.json", WHOLE, USER)
        here.watch.look_last("c")
        checked = await here.next(Checked)
        assert isinstance(checked, Checked)
        assert checked.path == "/elsewhere/t.json"
        assert checked.host_path == ""  # the host has no such name: the link points into the trainer's root
        os.close(here.watch.open("c"))

    run(body)


@pytest.mark.root
@needs_root
def test_the_hosts_name_of_a_chrooted_trainers_file(open_tmp: Path) -> None:
    async def body(here: Session) -> None:
        with process_with(root=str(open_tmp)) as pid:
            here.watch.watch("c", pid, 0, ("/t.json",))
            await here.first_look()
            publish(open_tmp / "t.json", WHOLE)
            final = await here.next(FinalSeen)
            assert isinstance(final, FinalSeen)
            assert final.host_path == str(open_tmp / "t.json")
            await here.next(Checked)
            os.close(here.watch.open("c"))

    run(body)


@pytest.mark.root
@needs_root
def test_files_in_a_mount_namespace_are_named_below_proc_while_the_process_lives(open_tmp: Path) -> None:
    async def body(here: Session) -> None:
        with process_with(mount=f"none;{open_tmp};tmpfs;size=4m;0") as pid:
            here.watch.watch("c", pid, 0, (f"{open_tmp}/t.json",))
            await here.first_look()
            publish(Path(f"/proc/{pid}/root{open_tmp}/t.json"), WHOLE)
            final = await here.next(FinalSeen)
            assert isinstance(final, FinalSeen)
            assert final.host_path == f"/proc/{pid}/root{open_tmp}/t.json"
            await here.next(Checked)
        with os.fdopen(here.watch.open("c"), "rb") as file:
            assert file.read() == WHOLE

    run(body)


@pytest.mark.root
@needs_root
def test_a_file_of_another_user_is_not_the_trainers_trace(open_tmp: Path) -> None:
    """Otherwise a trainer could have the daemon hand out what its user may not read."""

    async def body(here: Session) -> None:
        with process_with(uid=USER) as pid:
            here.watch.watch("c", pid, USER, (f"{open_tmp}/t.json",))
            await here.first_look()
            publish(open_tmp / "t.json", WHOLE)
            invalid = await here.next(Invalid)
            assert isinstance(invalid, Invalid)
            assert invalid.reason == f"it belongs to user 0, not to the trainer's user {USER}"

    run(body)


@pytest.mark.root
@needs_root
def test_the_check_gives_up_its_rights_before_it_reads(tmp_path: Path) -> None:
    """The file is open already, so nobody's rights are enough. A FIFO cannot be read; the child stays until it is reaped."""
    os.mkfifo(tmp_path / "fifo")
    fd = os.open(tmp_path / "fifo", os.O_RDWR)
    check = CheckProcess(fd)
    os.close(fd)
    try:
        status = Path(f"/proc/{check._process.pid}/status")
        deadline = time.monotonic() + DEADLINE_S
        while "Uid:\t65534\t65534\t65534\t65534" not in status.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "Groups:\t \n" in status.read_text()
        assert os.getpriority(os.PRIO_PROCESS, check._process.pid) == 19
    finally:
        check.abandon()
        check._process.wait()
