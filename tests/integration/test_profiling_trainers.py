"""Real processes as trainers, over a real socket: registration, captures, deaths, namespaces, users."""

import asyncio
import json
import os
import tempfile
import uuid
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dynolog.ipc.listener import IpcListener
from dynolog.model.capture import CaptureInfo, CaptureState
from dynolog.model.clock import SystemClock
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import Caller, RequestProgress, TraceOutcome, TraceRequest, Transport
from dynolog.model.trainer import TrainerInfo
from dynolog.profiling.destinations import check_destinations
from dynolog.profiling.service import TraceService
from dynolog.profiling.trace_watch import TraceWatch
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import ProcessReader
from fakes.collector_context import FakeNotices
from fakes.ipc_loop import LoopThread
from fakes.scripted_trainer import ScriptedTrainer

Answer = TypeVar("Answer")
TRACE = json.dumps(
    {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 7.5}]}
)
ROOT = Caller(transport=Transport.UNIX, uid=0)


class Room:
    """The profiling room of a daemon, with its socket."""

    def __init__(self, thread: LoopThread) -> None:
        self.name = f"dynolog-{uuid.uuid4()}"
        self._thread = thread
        self._deaths = 0
        thread.call(self._start)

    def _start(self) -> None:
        loop = self._thread.loop
        self.service = TraceService(
            loop,
            clock=SystemClock(),
            reader=ProcessReader(HostFiles()),
            check_destinations=check_destinations,
            make_watch=TraceWatch,
            ipc_enabled=True,
        )
        self.listener = IpcListener(self.service.handler, loop, FakeNotices(), name=self.name)
        self.listener.start()

    def close(self) -> None:
        self._thread.call(self.listener.close)
        self._thread.call(self.service.close)

    def wait(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop).result(30)

    def ask(self, directory: Path, caller: Caller = ROOT, **fields: Any) -> TraceOutcome:
        config = f"ACTIVITIES_LOG_FILE={directory}/t.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=100\n"
        return self.wait(self.service.request_traces(TraceRequest(config=config, **fields), caller))

    def until(self, outcome: TraceOutcome, state: CaptureState) -> CaptureInfo:
        """The only capture once it is in `state`; woken by each change."""

        async def follow() -> RequestProgress:
            progress = await self.service.wait(outcome.request_id, -1, 20)
            while progress.captures[0].state is not state and not progress.done:
                seen = progress.version
                progress = await self.service.wait(outcome.request_id, seen, 20)
                assert progress.version > seen, f"nothing happens after {progress.captures[0]}"
            return progress

        capture = self.wait(follow()).captures[0]
        assert capture.state is state, capture
        return capture

    def looked(self, outcome: TraceOutcome) -> None:
        """Return when the watch has had its first look: what is there by then is not the trainer's (a real one takes a second)."""

        async def look() -> None:
            watch = self.service.desk.watch
            assert isinstance(watch, TraceWatch)
            while watch._watched[outcome.captures[0].id].stale is None:
                await asyncio.sleep(0.005)

        self.wait(asyncio.wait_for(look(), 10))

    def trainers(self) -> list[TrainerInfo]:
        return list(self._thread.call(self.service.trainers))

    def without(self, host_pid: int) -> None:
        """Return when this trainer has left; the loop is told by its pidfd."""

        async def left() -> None:
            while any(info.host_pid == host_pid for info in self.service.trainers()):
                await asyncio.sleep(0.005)

        self.wait(asyncio.wait_for(left(), 5))


@pytest.fixture
def shared_dir() -> Iterator[Path]:
    """A directory that other users reach."""
    with tempfile.TemporaryDirectory(prefix="traces") as directory:
        os.chmod(directory, 0o777)
        yield Path(directory)


@pytest.fixture
def room() -> Iterator[Room]:
    with LoopThread() as thread:
        room = Room(thread)
        yield room
        room.close()


def test_a_process_registers_with_what_the_kernel_says_of_it(room: Room) -> None:
    environment = {"RANK": "3", "SLURM_ARRAY_JOB_ID": "90210", "SLURM_ARRAY_TASK_ID": "7", "SECRET": "x"}
    with ScriptedTrainer(room.name, environment=environment) as trainer:
        assert trainer.poll(job=2**40) == ""
        room.wait(room.service._read_details())
        (info,) = room.trainers()
        assert (info.pid, info.host_pid, info.uid) == (trainer.host_pid, trainer.host_pid, os.getuid())
        assert (info.rank, info.job, info.job_id) == (3, "90210_7", 2**40)
        assert info.pid_namespace == os.stat("/proc/self/ns/pid").st_ino
        assert info.start_time_ticks > 0


def test_a_killed_process_leaves_at_once(room: Room) -> None:
    with ScriptedTrainer(room.name) as trainer:
        trainer.poll()
        trainer.kill()
        room.without(trainer.host_pid)


def test_a_trace_is_followed_to_its_checked_file(room: Room, tmp_path: Path) -> None:
    with ScriptedTrainer(room.name) as trainer:
        trainer.poll()
        outcome = room.ask(tmp_path / "made")
        assert outcome.triggered == (trainer.host_pid,), outcome
        path = f"{tmp_path}/made/t_{trainer.host_pid}.json"
        assert outcome.captures[0].path == path
        assert f"REQUEST_TRACE_ID={outcome.captures[0].id}" in trainer.poll()
        assert trainer.poll() == ""
        assert trainer.poll(mask=1) == ""
        room.until(outcome, CaptureState.RECORDING)
        room.looked(outcome)
        trainer.write(path, TRACE)
        capture = room.until(outcome, CaptureState.WRITTEN)
        assert capture.file is not None
        assert (capture.file.events, capture.file.size_bytes, capture.host_path) == (1, len(TRACE) + 1, path)
        assert capture.reason == ""
        opened = room.wait(room.service.open_written(capture.id, ROOT))
        with os.fdopen(opened.fd) as file:
            assert file.read() == TRACE + "\n"


def test_a_trainer_killed_while_recording_fails_with_what_was_left(room: Room, tmp_path: Path) -> None:
    with ScriptedTrainer(room.name) as trainer:
        trainer.poll()
        outcome = room.ask(tmp_path)
        assert trainer.poll()
        room.looked(outcome)
        trainer.start(f"{tmp_path}/t_{trainer.host_pid}.json", "{")
        room.until(outcome, CaptureState.RECORDING)
        trainer.kill()
        capture = room.until(outcome, CaptureState.FAILED)
        assert f"the process {trainer.host_pid} ended while recording" in capture.reason
        assert "temporary file of 2 bytes" in capture.reason


def test_a_trainer_that_ends_right_after_its_file_is_a_success(room: Room, tmp_path: Path) -> None:
    with ScriptedTrainer(room.name) as trainer:
        trainer.poll()
        outcome = room.ask(tmp_path)
        assert trainer.poll()
        room.looked(outcome)
        trainer.write(f"{tmp_path}/t_{trainer.host_pid}.json", TRACE)
        trainer.kill()
        assert room.until(outcome, CaptureState.WRITTEN).file is not None


def test_a_trainer_killed_before_its_poll_never_gets_the_config(room: Room, tmp_path: Path) -> None:
    with ScriptedTrainer(room.name) as trainer:
        trainer.poll()
        outcome = room.ask(tmp_path)
        trainer.kill()
        assert "before it took the config" in room.until(outcome, CaptureState.FAILED).reason


def test_a_broken_file_is_said_to_be_broken(room: Room, tmp_path: Path) -> None:
    with ScriptedTrainer(room.name) as trainer:
        trainer.poll()
        outcome = room.ask(tmp_path)
        assert trainer.poll()
        room.looked(outcome)
        trainer.write(f"{tmp_path}/t_{trainer.host_pid}.json", TRACE[:-20])
        assert "is not a whole trace" in room.until(outcome, CaptureState.FAILED).reason


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: pid namespaces are made")
def test_two_containers_that_both_say_pid_1_are_two_trainers(room: Room, tmp_path: Path) -> None:
    with (
        ScriptedTrainer(room.name, new_pid_namespace=True) as first,
        ScriptedTrainer(room.name, new_pid_namespace=True) as second,
    ):
        first.poll()
        second.poll()
        room.wait(room.service._read_details())
        assert {(info.pid, info.host_pid) for info in room.trainers()} == {(1, first.host_pid), (1, second.host_pid)}
        outcome = room.ask(tmp_path, pids=(1,))
        assert outcome.no_match_code == "ambiguous"
        outcome = room.ask(tmp_path, pids=(second.host_pid,))
        assert outcome.triggered == (1,), outcome
        assert first.poll() == ""
        assert second.poll()
        room.looked(outcome)
        second.write(f"{tmp_path}/t_1.json", TRACE)
        assert room.until(outcome, CaptureState.WRITTEN).host_pid == second.host_pid


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: trainers of other users are started")
def test_a_user_can_neither_take_nor_ask_for_what_is_another_s(room: Room, shared_dir: Path) -> None:
    with (
        ScriptedTrainer(room.name, uid=12001) as victim,
        ScriptedTrainer(room.name, uid=12002, claims=(victim.host_pid, 1)) as thief,
    ):
        victim.poll()
        thief.poll()
        owner = Caller(transport=Transport.UNIX, uid=12001)
        stranger = Caller(transport=Transport.UNIX, uid=12002)
        assert room.ask(shared_dir, stranger, pids=(victim.host_pid,)).no_match_code == "forbidden"
        outcome = room.ask(shared_dir, pids=(victim.host_pid,))
        assert [capture.host_pid for capture in outcome.captures] == [victim.host_pid]
        assert thief.poll() == ""
        assert victim.poll()
        room.looked(outcome)
        victim.write(f"{shared_dir}/t_{victim.host_pid}.json", TRACE)
        capture = room.until(outcome, CaptureState.WRITTEN)
        with pytest.raises(RequestError, match="belongs to uid 12001"):
            room.wait(room.service.open_written(capture.id, stranger))
        os.close(room.wait(room.service.open_written(capture.id, owner)).fd)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a trainer of another user is started")
def test_a_path_that_the_trainer_may_not_write_is_refused_before_it_is_asked(room: Room, shared_dir: Path) -> None:
    shared_dir.chmod(0o755)
    with ScriptedTrainer(room.name, uid=12001) as trainer:
        trainer.poll()
        outcome = room.ask(shared_dir)
        assert [entry.code for entry in outcome.not_traced] == ["path"]
        assert trainer.poll() == ""
