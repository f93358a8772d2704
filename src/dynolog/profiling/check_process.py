"""The child process that checks one trace file, watched without waiting for it."""

import os
import signal
import time

import msgspec

from dynolog.model.capture import TraceFile
from dynolog.sources.own_program import module_command, module_environment

# By progress, not by size: a trace of gigabytes takes its time, a disk that gives nothing for so long is dead.
NO_PROGRESS_S = 30.0


class CheckFailed(Exception):  # noqa: N818 - an answer of the check
    """The file is not a whole trace, or could not be checked; the text says why."""


class CheckProcess:
    """Runs `dynolog.profiling.trace_check` on an open file; `pickled`: a memory snapshot. Raises OSError when no process can be had."""

    def __init__(self, fd: int, no_progress_s: float = NO_PROGRESS_S, pickled: bool = False) -> None:
        import subprocess  # noqa: PLC0415 - only daemons that trace need it

        self._process = subprocess.Popen(
            [*module_command("dynolog.profiling.trace_check"), str(fd), *(["pickle"] if pickled else [])],
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._said = b""
        self._no_progress_s = no_progress_s
        self._progress_at = time.monotonic()

    def poll(self) -> TraceFile | None:
        """The answer, or None while there is none. Raises CheckFailed."""
        if time.monotonic() - self._progress_at > self._no_progress_s:
            raise CheckFailed(f"it could not be checked: reading it gave nothing for {self._no_progress_s:g} s")
        try:
            piece = os.read(self._output, 1 << 16)
        except BlockingIOError:
            return None
        if piece:
            self._progress_at = time.monotonic()
            self._said = (self._said + piece)[-(1 << 20) :]
        elif self.is_reaped:
            assert self._process.stdout is not None
            self._process.stdout.close()
            return self._answer()
        return None

    def _answer(self) -> TraceFile:
        for line in self._said.splitlines():
            if line.startswith(b"c"):
                return msgspec.json.decode(line[1:], type=TraceFile)
            if line.startswith(b"i"):
                raise CheckFailed(line[1:].decode("utf-8", "replace"))
        status = self._process.returncode
        how = f"exit status {status}" if status is None or status >= 0 else signal.Signals(-status).name
        raise CheckFailed(f"it could not be checked: the check ended without an answer ({how})")

    def abandon(self) -> None:
        """End the child without waiting for it: one that is stuck in a dead file system ends when that answers."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.kill()

    @property
    def is_reaped(self) -> bool:
        """Whether nothing is left of the child. Must become true before the object goes."""
        return self._process.poll() is not None
