"""Runs as the only program of the emulated machine: the product's own code counts, and prints what it found."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from dynolog.cli.main import main as dyno
from dynolog.collectors.perf import SPEC
from dynolog.collectors.spec import Context
from dynolog.model.flag import Settings
from dynolog.sources.host_files import HostFiles
from dynolog.sources.pmu_devices import discover

MARK = "PMU-MACHINE "
CGROUP = "/sys/fs/cgroup/busy"


class Notices:
    """Keeps what the collector says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, key: str, sentence: str) -> None:
        self.said.append(sentence)


def tell(name: str, found: Any) -> None:
    sys.stdout.write(MARK + json.dumps({"name": name, "found": found}) + "\n")
    sys.stdout.flush()


def busy(seconds: float) -> None:
    """Compute for a while."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        for _ in range(1000):
            number += 1


def count(seconds: float, **flags: str) -> dict[str, Any]:
    """One interval of the collector, with this process busy."""
    notices = Notices()
    context = Context(host=HostFiles(), settings=Settings(SPEC.flags, flags), notices=notices)
    collector = SPEC.factory(context)
    before, started = collector.read(), time.monotonic()
    busy(seconds)
    values = collector.compute(before, collector.read(), time.monotonic() - started)
    return {"values": values, "notices": notices.said}


def in_a_cgroup() -> dict[str, Any]:
    """A child that is busy in a cgroup of its own, beside an idle machine."""
    os.mkdir(CGROUP)
    child = os.fork()
    if child == 0:
        with open(f"{CGROUP}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        busy(3600)
    try:
        time.sleep(0.2)
        return count(1.0, perf_cgroups="/busy")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def daemon() -> dict[str, Any]:
    """A record of the whole daemon, by its log."""
    command = [sys.executable, "-m", "dynolog.daemon.main", "--enable_perf_monitor", "--reporting_interval_s=1"]
    quiet = ["--rpc_unix_socket=/tmp/rpc.sock", "--perf_metrics=ipc", "--logtostderr"]
    running = subprocess.Popen([*command, *quiet], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout is not None
    lines: list[str] = []
    for line in running.stdout:
        lines.append(line)
        if "instructions_per_cycle" in line:
            break
    running.terminate()
    running.wait()
    return {"lines": lines[-3:]}


def command(*arguments: str) -> dict[str, Any]:
    """What dyno prints."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = dyno(arguments)
    return {"code": code, "out": out.getvalue(), "errors": errors.getvalue()}


# Twelve events that each want one of seven counters, so they take turns: instructions and cycles under many names.
TWELVE = "inst_retired,r8,r08,r008,r0008,r00008,cpu_cycles,r11,r011,r0011,r00011,r000011"
STEPS: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("pmus", lambda: {device.name: sorted(device.events) for device in discover(HostFiles()).devices.values()}),
    ("default", lambda: count(1.0)),
    ("ipc", lambda: count(1.0, perf_metrics="default,ipc")),
    ("twelve", lambda: count(1.5, perf_metrics=TWELVE)),
    ("absent", lambda: count(0.5, perf_metrics="default,branches,topdown,membw")),
    ("cgroup", in_a_cgroup),
    ("daemon", daemon),
    ("list", lambda: command("perf", "list")),
    ("stat", lambda: command("perf", "stat", "--json", "-e", "cycles,instructions", "-d", "1")),
    (
        "stat_of_a_process",
        lambda: command("perf", "stat", "-e", "instructions:u", "--pids", str(os.getpid()), "-d", "0.5"),
    ),
)


def main() -> None:
    for name, step in STEPS:
        try:
            tell(name, step())
        except (Exception, SystemExit) as error:  # one step that fails must not hide the others
            tell(name, {"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
