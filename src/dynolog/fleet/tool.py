"""Running another program for its output: found on PATH, with a deadline and a bound on what it may print."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dynolog.fleet.targets import HostsError

if TYPE_CHECKING:
    import subprocess

DEADLINE_S = 30.0
# `squeue --json` of SLURM 22.05 prints 5 kB for each job of the whole cluster, whatever it is asked for.
MAX_OUTPUT_BYTES = 256 << 20
_READ_BYTES = 1 << 16
_MAX_ERROR_BYTES = 1 << 14


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended, and what it printed."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def complaint(self) -> str:
        """The last line it wrote to stderr, or its exit code: what a person is told."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1][:400] if lines else f"exit code {self.exit_code}"


def on_path(name: str) -> str:
    """The path of a program, "" when it is not there."""
    import shutil  # noqa: PLC0415 - only when hosts are asked for

    return shutil.which(name) or ""


def run_tool(
    command: Sequence[str], *, deadline_s: float = DEADLINE_S, max_output_bytes: int = MAX_OUTPUT_BYTES
) -> ToolOutput:
    """Run `command` (no shell) in a session of its own and wait for its end.

    Raises HostsError when it cannot be started, is not done within `deadline_s`, or prints more than `max_output_bytes`; it and
    what it started are then killed.
    """
    import signal  # noqa: PLC0415 - these two only when hosts are asked for
    import subprocess  # noqa: PLC0415

    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise HostsError(f"{command[0]} cannot be run: {(error.strerror or str(error)).lower()}") from error
    with child:
        try:
            stdout, stderr = _drain(child, deadline_s, max_output_bytes)
        except BaseException:
            # Also what it started, which would hold the pipes open.
            _kill_group(child.pid, signal.SIGKILL)
            raise
    return ToolOutput(exit_code=child.returncode, stdout=stdout, stderr=stderr.decode("utf-8", "replace"))


def _drain(child: "subprocess.Popen[bytes]", deadline_s: float, max_output_bytes: int) -> tuple[bytes, bytes]:
    import selectors  # noqa: PLC0415 - as above
    import subprocess  # noqa: PLC0415
    import time  # noqa: PLC0415

    name = os.path.basename(str(child.args[0]))  # type: ignore[index]  # it was given a list
    ends_at = time.monotonic() + deadline_s
    assert child.stdout
    assert child.stderr
    pipes = {child.stdout.fileno(): bytearray(), child.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(ends_at - time.monotonic(), 0))
            if not ready and time.monotonic() >= ends_at:
                raise HostsError(f"{name} was not done within {deadline_s:g} s")
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    selector.unregister(key.fd)
                pipes[key.fd] += data
            if len(pipes[child.stdout.fileno()]) > max_output_bytes:
                raise HostsError(f"{name} printed more than {max_output_bytes:,} bytes")
            del pipes[child.stderr.fileno()][:-_MAX_ERROR_BYTES]
    try:
        child.wait(max(ends_at - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        raise HostsError(f"{name} was not done within {deadline_s:g} s") from None
    return bytes(pipes[child.stdout.fileno()]), bytes(pipes[child.stderr.fileno()])


def _kill_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
