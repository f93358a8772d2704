"""A GPU backend that does what a file says, for the real child process: `--gpu_backend=fakes.gpu_backend:ScriptedBackend`.

The file (environment variable SCRIPT) is the JSON of a `Script`, read again before every call, so that a test can change the machine
while the daemon runs.
"""

import ctypes
import os
import sys
import time
from pathlib import Path

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading, GpuSample, ProfilingState
from dynolog.model.metric import Metric
from dynolog.sources.gpu_backend import GpuOptions

SCRIPT = "DYNOLOG_TEST_GPU_SCRIPT"
PLACE = "fakes.gpu_backend:ScriptedBackend"


class Script(msgspec.Struct, kw_only=True):
    """What the machine has and how it misbehaves.

    `on_open` and `on_sample`: "" (well), `hang`, `crash`, `garbage`, `huge`, `raise`, `gone`, `exit`, `print`.
    `slow_s` delays every sample.
    """

    readings: list[GpuReading] = []
    expected: int = 0
    declared: list[Metric] = []
    on_open: str = ""
    on_sample: str = ""
    slow_s: float = 0.0
    profiles: bool = True
    blank_values: int = 0

    def write(self, path: Path) -> None:
        """For the child to read; whole or not at all."""
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self))
        new.replace(path)


class ScriptedBackend:
    """Follows its script. Calls are appended to SCRIPT.calls, one a line."""

    def __init__(self, options: GpuOptions) -> None:
        self._path = Path(os.environ[SCRIPT])
        self._paused = False

    def open(self) -> None:
        script = self._read("open")
        self._misbehave(script.on_open)

    def sample(self) -> GpuSample:
        script = self._read("sample")
        if script.slow_s:
            time.sleep(script.slow_s)
        self._misbehave(script.on_sample)
        profiling = ProfilingState.PAUSED if self._paused else ProfilingState.ON
        return GpuSample(
            backend="scripted",
            readings=tuple(script.readings),
            expected=script.expected or len(script.readings),
            seen=sum(reading.is_up for reading in script.readings),
            driver_version="570.1",
            profiling=profiling if script.profiles else ProfilingState.OFF,
            declared=tuple(script.declared),
            blank_values=script.blank_values,
        )

    def pause_profiling(self) -> bool:
        script = self._read("pause")
        self._paused = script.profiles
        return script.profiles

    def resume_profiling(self) -> bool:
        script = self._read("resume")
        self._paused = False
        return script.profiles

    def close(self) -> None:
        self._read("close")

    def _read(self, call: str) -> Script:
        with self._path.with_suffix(".calls").open("a") as calls:
            calls.write(f"{call}\n")
        return msgspec.json.decode(self._path.read_bytes(), type=Script)

    @staticmethod
    def _misbehave(how: str) -> None:
        match how:
            case "hang":
                time.sleep(60)
            case "crash":
                sys.stderr.write("something is rotten\n")
                sys.stderr.flush()
                ctypes.string_at(0)
            case "garbage":
                os.write(3, b"\x05\x00\x00\x00\xc1\xc1\xc1\xc1\xc1")
                time.sleep(60)
            case "huge":
                os.write(3, b"\xff\xff\xff\x7f")
                time.sleep(60)
            case "raise":
                raise RuntimeError("a fault of its own")
            case "gone":
                raise SourceUnavailable("scripted", "the library is not there", "install it")
            case "exit":
                os._exit(7)
            case "print":
                sys.stderr.write("noise\n" * 100_000)
                sys.stderr.flush()
