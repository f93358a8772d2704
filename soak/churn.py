"""Many hosts' worth of change: processes, network namespaces and trainers that come and go.

As a command it is the processes that do the coming and going: `churn.py processes SECONDS PER_S`, `churn.py namespaces COUNT AT_ONCE`.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if TYPE_CHECKING:
    from soak.world import World

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_DAEMON = b"\0dynolog\0"
_SERVED, _NOT_SERVED, _NO_NAMESPACE = 0, 3, 4
# The daemon looks for new namespaces every 10 s.
_PATIENCE_S = 60.0
_PROCESSES_PER_S = 10_000 / 60
MOST_RSS_MB = 64


# --- inside the processes that churn --------------------------------------------------------------------------------------


def run_processes(seconds: float, per_s: float) -> dict[str, float]:
    """Start and reap short-lived processes at this rate."""
    started_s, count = time.monotonic(), 0
    alive: set[int] = set()
    while (now_s := time.monotonic() - started_s) < seconds:
        while count < now_s * per_s:
            alive.add(os.posix_spawn("/bin/true", ["true"], os.environ))
            count += 1
        alive -= {pid for pid in alive if os.waitpid(pid, os.WNOHANG)[0]}
        time.sleep(0.005)
    for pid in alive:
        os.waitpid(pid, 0)
    return {"processes": count, "per_minute": round(count / (time.monotonic() - started_s) * 60)}


def _be_a_trainer() -> int:
    """In a network namespace of its own: ask until the daemon has come here and answered."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if libc.unshare(_CLONE_NEWNET):
        return _NO_NAMESPACE
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(b"\0dynoconfigclient%d\0" % os.getpid())
    sock.settimeout(30)
    request = struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, os.getpid())
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(ConnectionRefusedError, BlockingIOError, TimeoutError):
            sock.sendto(request, _DAEMON)
            sock.recv(4096)
            return _SERVED
        time.sleep(0.1)
    return _NOT_SERVED


def run_namespaces(count: int, at_once: int) -> dict[str, float]:
    """So many namespaces come, are served, and go again."""
    started_s, begun, alive, ends = time.monotonic(), 0, 0, [0] * 8
    while begun < count or alive:
        while begun < count and alive < at_once:
            if os.fork() == 0:
                os._exit(_be_a_trainer())
            begun, alive = begun + 1, alive + 1
        _, status = os.wait()
        ends[min(max(os.waitstatus_to_exitcode(status), 0), 7)] += 1
        alive -= 1
    return {
        "served": ends[_SERVED],
        "not_served": count - ends[_SERVED],
        "seconds": round(time.monotonic() - started_s, 1),
    }


# --- what the soak does with them -----------------------------------------------------------------------------------------


def _run(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, float] = json.loads(done.stdout)
    print(f"{arguments[0]}: {done.stdout.strip()}", file=sys.stderr, flush=True)
    return answer


@contextlib.contextmanager
def processes(_world: "World", seconds: float) -> Iterator[None]:
    """10,000 short-lived processes a minute."""
    _run("processes", str(seconds), str(_PROCESSES_PER_S))
    yield


@contextlib.contextmanager
def namespaces(world: "World", _seconds: float) -> Iterator[None]:
    """1,000 network namespaces with a trainer each come and go, 100 at a time."""
    answer = _run("namespaces", str(int(1000 * world.scale)), str(min(100, int(1000 * world.scale))))
    assert not answer["not_served"], f"{answer['not_served']} trainers in network namespaces got no answer"
    yield


def namespaces_left(world: "World") -> bool:
    """The daemon has left all of them."""
    return not any(" in net:" in address for address in world.status()["daemon"]["ipc"]["addresses"])


@contextlib.contextmanager
def trainers(world: "World", seconds: float) -> Iterator[None]:
    """5,000 trainers register, poll for a while, and are gone at once."""
    from soak.world import Load  # noqa: PLC0415 - this file is also run as a program, which needs nothing of it

    count = int(5000 * world.scale)
    crowd = Load("trainers", "--n", str(count), "--interval", "5")
    try:
        world.wait_for(lambda: registered(world) >= count, f"{count} more trainers are registered", 120)
        crowd.take()
        time.sleep(seconds)
        counts, usage = crowd.take(), world.usage()
        print(f"with {registered(world)} trainers: {usage['rss_mb']:.1f} MB, {counts}", file=sys.stderr, flush=True)
        assert not counts.get("lost"), f"polls without an answer: {counts}"
        yield
    finally:
        crowd.close()


def registered(world: "World") -> int:
    """How many trainers the daemon knows."""
    return int(world.status()["daemon"]["ipc"].get("trainers", 0))


def trainers_left(world: "World") -> bool:
    """Only the load's own are known."""
    return registered(world) <= world.trainer_count


if __name__ == "__main__":
    if sys.argv[1] == "processes":
        print(json.dumps(run_processes(float(sys.argv[2]), float(sys.argv[3]))))
    else:
        print(json.dumps(run_namespaces(int(sys.argv[2]), int(sys.argv[3]))))
