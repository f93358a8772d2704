"""Before a trace is asked for: whether each trainer may write its file."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence

import msgspec

DEADLINE_S = 3.0
_PROBE = os.path.join(os.path.dirname(__file__), "destination_probe.py")


class Destination(msgspec.Struct, frozen=True):
    """A trainer and the final path of its trace, as it sees it.

    `uid` and `gid` are the daemon host's. `trace_dir` is KINETO_ONDEMAND_TRACE_DIR of its environment, "" when not set. `host_pid` 0 means
    that the process cannot be found from here: then only the text of the path is judged. `view` (sources.process_view) was read when the
    trainer registered: one trainer is asked for all of a user with the same view; "" asks for itself.
    """

    host_pid: int
    pid: int
    uid: int
    gid: int
    trace_dir: str
    path: str
    view: str = ""


async def check_destinations(
    destinations: Sequence[Destination], deadline_s: float = DEADLINE_S, *, make_missing: bool = True
) -> list[str]:
    """For each destination "" or a sentence that says why the trace could not be written there and what to do.

    A missing directory is made, as the trainer's user, or with `make_missing` false only judged. Whatever touches a file system is
    done by a process of its own, below the trainer's root and with its rights; one that does not answer in time is said to hang and
    never holds this loop. A daemon that is not root speaks for its own user's trainers with its own root only, and says nothing about
    others.
    """
    verdicts = [_outside_trace_dir(destination) for destination in destinations]
    items = [
        (index, destination.host_pid, destination.uid, destination.gid, destination.view, destination.path)
        for index, destination in enumerate(destinations)
        if not verdicts[index] and destination.host_pid > 0
    ]
    if not items:
        return verdicts
    answers, hung = await _probe(items, deadline_s, "make" if make_missing else "look")
    for index, *_, path in items:
        if index in answers:
            verdicts[index] = answers[index]
        elif hung:
            verdicts[index] = (
                f"{os.path.dirname(path)} did not answer within {deadline_s:g} s: is its file system dead? choose another directory"
            )
    return verdicts


def _outside_trace_dir(destination: Destination) -> str:
    """libkineto compares the text of the path, so this does too."""
    directory = destination.trace_dir
    if directory and not destination.path.startswith(directory.rstrip("/") + "/"):
        return (
            f"the trainer's KINETO_ONDEMAND_TRACE_DIR={directory} allows traces only there, and {destination.path} is outside:"
            f" choose a path below {directory}"
        )
    return ""


async def _probe(
    items: list[tuple[int, int, int, int, str, str]], deadline_s: float, missing: str
) -> tuple[dict[int, str], bool]:
    """Answers by index, and whether some were still outstanding at the deadline. No answer at all makes no claim."""
    import marshal  # noqa: PLC0415 - read by a script without our libraries

    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _PROBE, missing),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            # Its forks belong to it: one that hangs is ended with it.
            start_new_session=True,
        )
    except OSError:
        return {}, False  # no process to be had: the machine is in trouble, and the trace may still work
    assert process.stdin is not None
    assert process.stdout is not None
    said = b""
    ended = False
    try:
        async with asyncio.timeout(deadline_s):
            process.stdin.write(marshal.dumps(items))
            process.stdin.close()
            while piece := await process.stdout.read(1 << 16):
                said += piece
            await process.wait()
            ended = True
    except TimeoutError:
        pass  # what has no answer by now is said to hang
    finally:
        if not ended:
            _abandon(process)
    # Without the last piece, which is empty or half a line.
    lines = [line.partition("\t") for line in said.decode("utf-8", "replace").split("\n")[:-1]]
    return {int(index): sentence for index, _, sentence in lines}, not ended


def _abandon(process: asyncio.subprocess.Process) -> None:
    """End the probe and its forks, and let go of the pipes without waiting: a fork inside a dead file system ends when that answers."""
    import signal  # noqa: PLC0415

    # While a fork lives, the number of its group is not given to another.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001 - the only way to close it
    transport.close()
