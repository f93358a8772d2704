"""A process with the real nvidia-ml-py and the NVML backend, at a clock that the test sets: one JSON line a command and an answer."""

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.nvml.backend import NvmlBackend
from fakes.nvml.library import NvmlScript

_ANSWER_S = 60.0
WALL_S = 1_700_000_000.0


class Command(msgspec.Struct, frozen=True):
    """What to do, at which time of the clock."""

    what: str
    now_s: float = 0.0
    argument: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What came of it: a sample, a number, or the three parts of a SourceUnavailable."""

    sample: GpuSample | None = None
    number: int | None = None
    unavailable: tuple[str, str, str] | None = None


class BackendProcess:
    """The test's end. A context; the process ends with it."""

    def __init__(self, environment: Mapping[str, str], script: NvmlScript, root_dir: str = "/nonexistent") -> None:
        self.script = script
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fakes.nvml.backend_process", root_dir],
            env={**environment, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, what: str, now_s: float = 0.0, argument: str = "") -> None:
        """Begin a command, whose answer `answer` waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(Command(what, now_s, argument)) + b"\n")
        self._process.stdin.flush()

    def answer(self, timeout_s: float = _ANSWER_S) -> Answer | None:
        """The answer to a command; None when the process has ended or hangs for so long."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        line = self._process.stdout.readline() if ready else b""
        return msgspec.json.decode(line, type=Answer) if line else None

    def ask(self, what: str, now_s: float = 0.0, argument: str = "") -> Answer:
        """A command and its answer."""
        self.send(what, now_s, argument)
        answer = self.answer()
        assert answer is not None, f"the process ended: {self._process.wait(_ANSWER_S)}"
        return answer

    def open(self) -> None:
        """Open the backend, which must work."""
        assert self.ask("open") == Answer()

    def sample(self, now_s: float) -> GpuSample:
        """A sample, which must come."""
        answer = self.ask("sample", now_s)
        assert answer.sample is not None, answer.unavailable
        return answer.sample

    def readings(self, now_s: float) -> dict[str, GpuReading]:
        """The readings of the whole GPUs of a sample, by device."""
        return {one.device: one for one in self.sample(now_s).readings if one.gpu_instance_id is None}

    def calls(self, function: str) -> int:
        """How often the backend has called a function of the library."""
        number = self.ask("calls", argument=function).number
        assert number is not None
        return number

    def returncode(self) -> int:
        """How it ended."""
        return self._process.wait(_ANSWER_S)


class _Server:
    """The process's end."""

    def __init__(self, root_dir: str) -> None:
        self._now_s = 0.0
        self._backend = NvmlBackend(
            GpuOptions(backend="nvml", root_dir=root_dir), lambda: self._now_s, lambda: WALL_S + self._now_s
        )

    def do(self, command: Command) -> Answer:
        self._now_s = command.now_s
        try:
            return self._do(command)
        except SourceUnavailable as error:
            return Answer(unavailable=(error.source, error.reason, error.remedy))

    def _do(self, command: Command) -> Answer:
        library: Any = ctypes.CDLL("libnvidia-ml.so.1") if command.what in ("calls", "alive") else None
        match command.what:
            case "open":
                self._backend.open()
            case "sample":
                return Answer(sample=self._backend.sample())
            case "pause":
                return Answer(number=int(self._backend.pause_profiling()))
            case "resume":
                return Answer(number=int(self._backend.resume_profiling()))
            case "close":
                self._backend.close()
            case "calls":
                library.fake_calls.restype = ctypes.c_ulong
                return Answer(number=library.fake_calls(command.argument.encode()))
            case "alive":
                library.fake_samples_alive.restype = ctypes.c_long
                return Answer(number=library.fake_samples_alive())
            case other:
                raise ValueError(other)
        return Answer()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = _Server(sys.argv[1])
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(server.do(msgspec.json.decode(line, type=Command))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
