"""Real processes for integration tests: the daemon, dyno, and PyTorch trainers."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TORCH_PYTHON = REPOSITORY / ".venv-torch" / "bin" / "python"
TRAIN = REPOSITORY / "demo" / "train.py"
Answer = TypeVar("Answer")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_torch = pytest.mark.skipif(
    not TORCH_PYTHON.exists(), reason="needs PyTorch: run `make test`, which installs it, or tools/make_torch_venv.sh"
)


def eventually(ask: Callable[[], Answer], timeout_s: float = 30.0, what: str = "") -> Answer:
    """The first true answer of `ask`, asked again and again; fails the test when there is none in time."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (answer := ask()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout_s} s: {what or ask}")
        pause.wait(0.05)
    return answer


class Process:
    """A child process whose output is read line by line and kept."""

    def __init__(self, command: list[str], env: Mapping[str, str] | None = None, **options: Any) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self.popen = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            **options,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str, count: int = 1, timeout_s: float = 60.0) -> list[str]:
        """The lines that contain `text`, once there are `count`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while len(found := [line for line in self.lines if text in line]) < count:
                if self.popen.poll() is not None and not self._reader.is_alive():
                    pytest.fail(f"ended with {self.popen.returncode} before {text!r}:\n{self.output}")
                if not self._changed.wait(min(deadline - time.monotonic(), 1.0)) and time.monotonic() > deadline:
                    pytest.fail(f"no {text!r} within {timeout_s} s:\n{self.output}")
        return found

    def stop(self, sig: int = signal.SIGTERM, timeout_s: float = 10.0) -> int:
        """Signal it, wait, and return its exit code; kills it when it does not end."""
        if self.popen.poll() is None:
            self.popen.send_signal(sig)
        try:
            self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self._reader.join(5)
        if self.popen.stdout is not None:
            self.popen.stdout.close()
        return self.popen.returncode


class Daemon(Process):
    """`dynolog` with its sockets in a directory of its own, so that tests run side by side with other daemons."""

    def __init__(
        self, directory: Path, *flags: str, fabric: str | None = None, prefix: tuple[str, ...] = (), **options: Any
    ) -> None:
        self.directory = directory
        self.unix = directory / "rpc.sock"
        self.ipc_dir = ipc_directory(directory)
        command = [
            *prefix,
            sys.executable,
            "-m",
            "dynolog.daemon.main",
            "--port=0",
            f"--rpc_unix_socket={self.unix}",
            "--enable_ipc_monitor",
            f"--ipc_socket_dir={self.ipc_dir}",
            f"--ipc_fabric_name={fabric or 'dynolog-test-' + str(os.getpid()) + '-' + directory.name}",
            *flags,
        ]
        super().__init__(command, **options)
        try:
            self.wait_for("dynolog is ready", timeout_s=20)
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def dyno(self, *arguments: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run `dyno` against this daemon."""
        return subprocess.run(
            [sys.executable, "-m", "dynolog.cli.main", "--unix", str(self.unix), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def ask(self, *arguments: str) -> Any:
        """What `dyno --json ...` answers, parsed."""
        done = self.dyno("--json", *arguments)
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            pytest.fail(
                f"dyno {' '.join(arguments)} gave no JSON: rc {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.output[-3000:]}"
            )

    def trainers(self) -> list[dict[str, Any]]:
        """The registered trainers."""
        answer = self.ask("ps")
        return list(answer["trainers"])

    def wait_for_trainers(self, count: int, timeout_s: float = 60.0) -> list[dict[str, Any]]:
        """The trainers once `count` are registered and their details (rank, command) are known."""

        def enough() -> list[dict[str, Any]]:
            trainers = self.trainers()
            return trainers if len(trainers) >= count and all(t.get("command") for t in trainers) else []

        return eventually(enough, timeout_s, f"{count} trainers registered; {self.output[-2000:]}")


def ipc_directory(directory: Path) -> Path:
    """The socket directory of the daemon whose own is `directory`: short, because a socket path has at most 107 bytes."""
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"dynolog-{name}"
    path.mkdir(exist_ok=True)
    path.chmod(0o1777)
    return path


@contextlib.contextmanager
def running_daemon(directory: Path, *flags: str, **options: Any) -> Iterator[Daemon]:
    """A daemon that is stopped at the end; it must then end well."""
    directory.mkdir(parents=True, exist_ok=True)
    daemon = Daemon(directory, *flags, **options)
    try:
        yield daemon
    finally:
        code = daemon.stop()
    assert code == 0, daemon.output[-3000:]


def trainer_env(directory: Path, ipc_dir: Path | None, poll_s: int = 1, **more: str) -> dict[str, str]:
    """The environment of a traced trainer: polls every `poll_s` seconds (0: libkineto's own 5 s)."""
    directory.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "KINETO_USE_DAEMON": "1", "OMP_NUM_THREADS": "1", **more}
    if ipc_dir is not None:
        env["KINETO_IPC_SOCKET_DIR"] = str(ipc_dir)
    if poll_s:
        config = directory / "libkineto.conf"
        config.write_text(f"ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS={poll_s}\n")
        env["KINETO_CONFIG"] = str(config)
    return env


@contextlib.contextmanager
def running_trainer(
    env: Mapping[str, str], ranks: int = 1, prefix: tuple[str, ...] = (), seconds: float = 300.0, **options: Any
) -> Iterator[Process]:
    """A PyTorch training process, or `ranks` of them under torchrun; ready when every rank has done a step."""
    python = str(TORCH_PYTHON)
    job = [str(TRAIN), "--seconds", str(seconds), "--step-ms", "10"]
    if ranks == 1:
        command = [*prefix, python, *job]
    else:
        command = [
            *prefix,
            python,
            "-m",
            "torch.distributed.run",
            f"--nproc_per_node={ranks}",
            "--master_port=0",
            "--standalone",
            *job,
        ]
    process = Process(command, env=env, start_new_session=True, **options)
    try:
        process.wait_for(" step 1 ", count=ranks, timeout_s=240)
        yield process
    finally:
        if ranks > 1:
            # torchrun's workers are in sessions of their own: only it can end them all.
            process.popen.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.popen.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stop(signal.SIGKILL)


def tool(name: str) -> str:
    """The path of a system tool; skips the test loudly when it is not installed."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}")
    return path
