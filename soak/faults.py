"""The faults: how each begins and ends, the words in which the daemon must speak of it, and how it is seen to be over."""

import contextlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from soak import churn
from soak.load import call
from soak.world import REPOSITORY, World

RPC_PORT = 1778
# A busy machine may keep the daemon from running for three seconds without a word about it.
_WORTH_A_WORD_S = 5.0
_FREEZERS = (("/sys/fs/cgroup", "cgroup.freeze", b"1", b"0"), ("/sys/fs/cgroup/unified", "cgroup.freeze", b"1", b"0"),
             ("/sys/fs/cgroup/freezer", "freezer.state", b"FROZEN", b"THAWED"))  # fmt: skip


class Fault(NamedTuple):
    """`inject` is a fault for the time of its block. `words` are a pattern that `dyno status --verbose` must show meanwhile or right
    after ("": there is nothing that a person would have to be told). `works` must hold meanwhile, `recovered` after it.
    `stops` says that the daemon itself cannot run meanwhile, so that no answer can come; `restarts`, that it is another one then.
    """

    name: str
    inject: Callable[[World, float], contextlib.AbstractContextManager[None]]
    words: str = ""
    recovered: Callable[[World], object] = lambda world: world.status()["status"] == 1
    works: Callable[[World], object] = lambda world: world.status()["status"] == 1
    stops: bool = False
    restarts: bool = False


@contextlib.contextmanager
def _full_disk(world: World, _seconds: float) -> Iterator[None]:
    """The log, the spool and the file exporter have no room any more."""
    filler = world.disk / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 16, 512):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        yield
    finally:
        filler.unlink()


@contextlib.contextmanager
def _no_descriptors(world: World, _seconds: float) -> Iterator[None]:
    """No file more can be opened, no connection accepted."""
    pid = world.daemon.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir(f"/proc/{pid}/fd")))
    # The lowest free number counts, so descriptors between are lost only to what is opened now.
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(len(os.listdir(f"/proc/{pid}/fd")), highest), before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def _no_memory(world: World, _seconds: float) -> Iterator[None]:
    flag = world.control / "no_memory"
    flag.touch()
    try:
        yield
    finally:
        flag.unlink()


def _clock(offset_s: int) -> Callable[[World, float], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def inject(world: World, _seconds: float) -> Iterator[None]:
        # Faking it slows everything down: only for this.
        world.kill_and_restart(fake_clock=True)
        try:
            world.set_clock(offset_s)
            yield
            world.set_clock(0)
            world.wait_for(lambda: _is_off_by(0)(world), "the clock is right again, and records are made with it")
        finally:
            world.set_clock(0)
            world.kill_and_restart()

    return inject


def _is_off_by(offset_s: int) -> Callable[[World], bool]:
    """The daemon's clock is, and records go on being made with it."""

    def look(world: World) -> bool:
        now_ns = world.status()["daemon"]["wall_ns"]
        (record, *_) = call(str(world.unix), {"fn": "getMetrics"})["records"]
        return all(abs(ns / 1e9 - time.time() - offset_s) < 30 for ns in (now_ns, record["wall_ns"]))

    return look


@contextlib.contextmanager
def _suspend(world: World, seconds: float) -> Iterator[None]:
    world.daemon.send_signal(signal.SIGSTOP)
    try:
        time.sleep(max(seconds, _WORTH_A_WORD_S))
    finally:
        world.daemon.send_signal(signal.SIGCONT)
    yield


@contextlib.contextmanager
def _freeze(world: World, seconds: float) -> Iterator[None]:
    root, file, frozen, thawed = next(one for one in _FREEZERS if _can_freeze(one[0], one[1]))
    group = Path(root, f"soak-{os.getpid()}")
    home = Path(root, "cgroup.procs")
    try:
        group.mkdir(exist_ok=True)
        (group / "cgroup.procs").write_text(str(world.daemon.pid))
        (group / file).write_bytes(frozen)
        time.sleep(max(seconds, _WORTH_A_WORD_S))
    finally:
        (group / file).write_bytes(thawed)
        home.write_text(str(world.daemon.pid))
        world.wait_for(lambda: not (group / "cgroup.procs").read_text(), "the daemon has left the cgroup")
        group.rmdir()
    yield


def _can_freeze(root: str, file: str) -> bool:
    probe = Path(root, f"soak-probe-{os.getpid()}")
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return (probe / file).exists()
    finally:
        probe.rmdir()


@contextlib.contextmanager
def _hung_mount(world: World, _seconds: float) -> Iterator[None]:
    fifo = world.control / "hung_mount"
    os.mkfifo(fifo)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # nobody waits
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        fifo.unlink()


@contextlib.contextmanager
def _black_hole(world: World, _seconds: float) -> Iterator[None]:
    world.receiver.is_answering.clear()
    try:
        yield
    finally:
        world.receiver.is_answering.set()


@contextlib.contextmanager
def _no_names(world: World, _seconds: float) -> Iterator[None]:
    world.name_is_known(False)
    try:
        yield
    finally:
        world.name_is_known(True)


@contextlib.contextmanager
def _no_ipv6(_world: World, _seconds: float) -> Iterator[None]:
    switch = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
    switch.write_text("1")
    try:
        yield
    finally:
        switch.write_text("0")


def _answers_over_ipv4(_world: World) -> bool:
    with socket.create_connection(("127.0.0.1", RPC_PORT), timeout=30) as sock:
        sock.sendall(b'\x12\0\0\0{"fn":"getStatus"}')
        return b"status" in sock.recv(1000)


@contextlib.contextmanager
def _killed(world: World, _seconds: float) -> Iterator[None]:
    world.kill_and_restart()
    yield


_HIDDEN = """
mount -t proc -o hidepid=2 proc /proc
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


@contextlib.contextmanager
def _hidden_proc(world: World, _seconds: float) -> Iterator[None]:
    """Another daemon, without root and where /proc shows only its own processes; it must answer, and say what it does not see."""
    home = world.directory / "hidden"
    home.mkdir(exist_ok=True)
    os.chown(home, 65534, 65534)
    command = [sys.executable, "-m", "dynolog.daemon.main", "--port=0", f"--rpc_unix_socket={home / 'rpc.sock'}"]
    with (home / "output").open("wb") as output:
        hidden = subprocess.Popen(
            ["unshare", "--mount", "sh", "-ec", _HIDDEN, "sh", *command, "--enable_ipc_monitor", "--ipc_fabric_name=hidden",
             "--kernel_monitor_reporting_interval_s=1"],
            cwd=REPOSITORY, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        world.wait_for(lambda: "dynolog is ready" in (home / "output").read_text(), "the daemon without root is ready")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as trainer:
            trainer.settimeout(30)
            trainer.bind(b"\0dynoconfigclient-hidden\0")
            trainer.sendto(struct.pack("=Q32siiqi", 20, b"req", 3, 1, 0, os.getpid()), b"\0hidden\0")
            assert len(trainer.recv(4096)) == 40
        status = call(str(home / "rpc.sock"), {"fn": "getStatus", "verbose": True})
        said = " ".join(status["daemon"]["ipc"].get("notices", ()))
        assert "hidepid" in said, f"the daemon does not say what it cannot see: {said}"
        yield
    finally:
        hidden.terminate()
        hidden.wait(30)
    assert hidden.returncode == 0, (home / "output").read_text()[-2000:]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "full_disk",
        _full_disk,
        r"No space left on device",
        recovered=lambda world: world.exporter("file")["state"] == "ok",
        works=lambda world: "error" in world.exporter("file"),
    ),
    Fault(
        "no_descriptors",
        _no_descriptors,
        r"[Tt]oo many open files|descriptors",
        works=lambda _: True,
    ),
    Fault(
        "no_memory_in_a_collector",
        _no_memory,
        r"memory.*(MemoryError|Cannot allocate memory)",
        recovered=lambda world: world.collector("memory")["state"] == "ok",
    ),
    Fault("suspended", _suspend, r"did not run for \d", stops=True),
    Fault("frozen_cgroup", _freeze, r"did not run for \d", stops=True),
    Fault(
        "hung_mount",
        _hung_mount,
        r"filesystem has not returned .* is stalled",
        works=lambda world: world.collector("filesystem")["state"] == "stalled",
        recovered=lambda world: world.collector("filesystem")["state"] == "ok",
    ),
    Fault(
        "black_hole",
        _black_hole,
        r"otlp.*(time|answer)",
        works=lambda world: "error" in world.exporter("otlp"),
        recovered=lambda world: world.exporter("otlp")["state"] == "ok",
    ),
    Fault(
        "no_dns",
        _no_names,
        r"otlp.*(resolv|name)",
        works=lambda world: "error" in world.exporter("otlp"),
        recovered=lambda world: world.exporter("otlp")["state"] == "ok",
    ),
    Fault("no_ipv6", _no_ipv6, r"IPv6 is off here now", works=_answers_over_ipv4, recovered=_answers_over_ipv4),
    Fault("hidden_proc", _hidden_proc),
    Fault("churn_of_processes", churn.processes),
    Fault("churn_of_namespaces", churn.namespaces, recovered=churn.namespaces_left),
    Fault("churn_of_trainers", churn.trainers, recovered=churn.trainers_left),
    Fault(
        "clock_forward_1h",
        _clock(3600),
        r"clock went forward by 3600 s",
        works=_is_off_by(3600),
        stops=True,
        restarts=True,
    ),
    Fault(
        "clock_back_1h", _clock(-3600), r"clock went back by 3600 s", works=_is_off_by(-3600), stops=True, restarts=True
    ),
    Fault("killed_and_restarted", _killed, r"was not stopped: it was killed", stops=True, restarts=True),
)


def is_said(world: World, words: str) -> bool:
    """Whether the daemon speaks of it in its status."""
    return not words or re.search(words, world.words()) is not None
