"""dyno-run as processes: the command takes its place, and one daemon serves all tasks of a node until the last one ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fakes.trainer import FakeTrainer
from integration.harness import Process, eventually, ipc_directory, running_daemon


class Node:
    """The directory in which the tasks of a test meet, and the daemons that serve from it."""

    def __init__(self, directory: Path) -> None:
        self.base = directory / "run"
        self.base.mkdir()
        self.directory = self.base / f"dynolog-run-{os.getuid()}-{os.uname().nodename}"
        self.ipc = ipc_directory(directory)
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SLURM")},
            "DYNO_RUN_DIR": str(self.base),
            "DYNO_RUN_FLAGS": f"--port=0 --ipc_fabric_name=run-{os.getpid()}-{directory.name}",
            "KINETO_IPC_SOCKET_DIR": str(self.ipc),
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "dynolog.cli.dyno_run.command", *words]

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), env={**self.env, **env}, capture_output=True, text=True, timeout=60, check=False
        )

    def start(self, script: str = "echo began; exec sleep 60") -> Process:
        return Process(self.command("sh", "-c", script), env=self.env)

    def daemons(self) -> list[psutil.Process]:
        """Those that were started from here and live."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            words = process.cmdline()
            return "dynolog.daemon.main" in words and f"--rpc_unix_socket={self.directory}/rpc.sock" in words
        except psutil.Error:
            return False

    def is_gone(self) -> bool:
        """Neither a daemon nor anything of it is left."""
        return not self.directory.exists() and not self.daemons()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_command_takes_its_place(node: Node) -> None:
    """Its arguments, environment, output and exit code; `--` may stand before it."""
    done = node.run("--", "sh", "-c", 'echo "$KINETO_USE_DAEMON $1"; exit 7', "sh", "a  b")
    assert (done.returncode, done.stdout) == (7, "1 a  b\n")
    assert "dyno-run: started dynolog on " in done.stderr
    eventually(node.is_gone, 60, "the daemon is stopped")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGUSR1, 9)])
def test_signals_reach_the_command_once(node: Node, number: signal.Signals, code: int) -> None:
    """Its pid is the command's own: a signal that ends it is seen as that, one that it handles is handled."""
    task = node.start("trap 'exit 9' USR1; echo began; while :; do sleep 0.05; done")
    task.wait_for("began")
    assert task.stop(number) == code
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_one_daemon_serves_all_tasks_until_the_last_ends(node: Node) -> None:
    """Eight begin at once; none that is killed takes the daemon away or leaves it behind."""
    tasks = [node.start() for _ in range(8)]
    for task in tasks:
        task.wait_for("began")
    (daemon,) = node.daemons()
    assert sum("started dynolog" in task.output for task in tasks) == 1
    for task in tasks[:-1]:
        task.stop(signal.SIGKILL)
    trainer = FakeTrainer(directory=str(node.ipc))
    trainer.poll()
    assert trainer.receive() == ("req", b"")  # it serves on
    assert node.daemons() == [daemon]
    trainer.close()
    tasks[-1].stop(signal.SIGKILL)
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_a_command_that_closes_its_files_keeps_the_daemon(node: Node) -> None:
    """As programs that turn themselves into services do."""
    task = node.start("echo began; exec 1>&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec sleep 60")
    task.wait_for("began")
    (daemon,) = node.daemons()
    for _ in range(3):  # others that come and go find it there
        assert node.run("true").stderr == ""
    assert node.daemons() == [daemon]
    task.stop()
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_a_daemon_that_is_there_is_used_and_left_alone(node: Node, tmp_path: Path) -> None:
    """The machine's own daemon."""
    with running_daemon(tmp_path) as daemon:
        assert daemon.ipc_dir == node.ipc
        done = node.run("true")
        assert (done.returncode, done.stderr) == (0, "")
        assert node.daemons() == []
        assert daemon.popen.poll() is None


def test_a_daemon_that_cannot_start_stops_no_job(node: Node) -> None:
    """A job is worth more than its observation: it is said, and the command runs."""
    done = node.run("sh", "-c", "echo trained", DYNO_RUN_FLAGS="--no_such_flag")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "dyno-run: no daemon, so this command cannot be traced: dynolog ended at once" in done.stderr
    assert "no_such_flag" in done.stderr
    assert node.daemons() == []


def test_a_daemon_that_died_is_replaced_for_the_next_task(node: Node) -> None:
    """Its keeper ends with it, though its task goes on; the log of the failure stays."""
    first = node.start()
    first.wait_for("began")
    (daemon,) = node.daemons()
    keeper = daemon.parent()
    assert keeper
    daemon.kill()
    keeper.wait(10)
    assert sorted(os.listdir(node.directory)) == ["dynolog.log", "lock", "rpc.sock"]
    second = node.start()
    second.wait_for("began")
    (replacement,) = node.daemons()
    first.stop()
    assert node.daemons() == [replacement]
    second.stop()
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_a_keeper_that_is_late_takes_nothing_from_its_successor(node: Node) -> None:
    """It learns that its daemon died only when another keeper has taken over."""
    first = node.start()
    first.wait_for("began")
    (daemon,) = node.daemons()
    keeper = daemon.parent()
    assert keeper
    keeper.suspend()
    daemon.kill()
    eventually(lambda: not node.daemons(), 60, "it is dead")
    second = node.start()
    second.wait_for("began")
    (replacement,) = node.daemons()
    keeper.resume()
    keeper.wait(10)
    assert node.run("true").stderr == ""
    assert node.daemons() == [replacement]
    for task in (first, second):
        task.stop()
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_a_task_that_is_killed_while_the_daemon_starts_leaves_none(node: Node) -> None:
    """Nobody is left to be told that it serves."""
    task = node.start()
    daemons: Callable[[], list[psutil.Process]] = node.daemons
    eventually(daemons, 60, "the daemon begins to start")
    task.stop(signal.SIGKILL)
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_a_directory_of_others_is_not_used(node: Node) -> None:
    """/tmp is everybody's: a directory that others may write to is refused, and the command runs."""
    node.directory.mkdir(mode=0o777)
    node.directory.chmod(0o777)
    done = node.run("true")
    assert done.returncode == 0
    assert "is not a directory of this user alone" in done.stderr
    assert node.daemons() == []


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["/nonexistent/train.py"], 127, "/nonexistent/train.py: no such file or directory"),
        (["/"], 126, "/ cannot be run"),
        ([], 2, "no command was given"),
        (["--daemon_flag"], 2, "dyno-run: error:"),
    ],
)
def test_commands_that_cannot_be_run(node: Node, words: list[str], code: int, sentence: str) -> None:
    """Exit codes as those of env and nohup."""
    done = node.run(*words)
    assert done.returncode == code
    assert sentence in done.stderr
    eventually(node.is_gone, 60, "the daemon is stopped")


def test_flags_reach_the_daemon(node: Node, tmp_path: Path) -> None:
    """By option and by variable; paths in them begin where the command is started."""
    (tmp_path / "flags").write_text("--cpu_budget_pct=2\n")
    flags = ["--daemon-flag=--reporting_interval_s=30", "--daemon-flag=--flagfile=flags"]
    task = Process(node.command(*flags, "sleep", "60"), env=node.env, cwd=tmp_path)
    daemons: Callable[[], list[psutil.Process]] = node.daemons
    (daemon,) = eventually(daemons, 60, "the daemon runs")
    assert {"--port=0", "--reporting_interval_s=30", f"--ipc_socket_dir={node.ipc}"} < set(daemon.cmdline())
    eventually((node.ipc / "dynolog").exists, 60, "it serves")
    task.stop()
    eventually(node.is_gone, 60, "the daemon is stopped")
