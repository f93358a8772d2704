"""Counts events with the perf collector and with `perf stat` over the same moments, while some work makes them happen.

Run as a program, in a mount namespace that has tracefs. Prints JSON: for each event our count and perf's.
"""

import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dynolog.collectors.perf import PerfCollector
from dynolog.collectors.spec import Values
from fakes.collector_context import HostTree

EVENTS = ("context-switches", "page-faults", "minor-faults", "sched:sched_switch", "raw_syscalls:sys_enter")
_SWITCHES = 20_000
_PAGES = 60_000


def work() -> None:
    """Many switches between two processes, page faults and system calls, in less than a second."""
    here, there = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        for _ in range(_SWITCHES):
            os.read(here[0], 1)
            os.write(there[1], b"x")
        os._exit(0)
    for _ in range(_SWITCHES):
        os.write(here[1], b"x")
        os.read(there[0], 1)
    os.waitpid(child, 0)
    with mmap.mmap(-1, _PAGES * mmap.PAGESIZE) as pages:
        for page in range(_PAGES):
            pages[page * mmap.PAGESIZE] = 1


class PerfStat:
    """`perf stat` on all CPUs that counts only between `start` and `stop`."""

    def __init__(self, output: Path) -> None:
        self._output = output
        control, self._control = os.pipe()
        self._answers, answer = os.pipe()
        self._process = subprocess.Popen(
            [
                *("perf", "stat", "-a", "-x", ";", "-o", str(output), "-D", "-1"),
                *("--control", f"fd:{control},{answer}", "-e", ",".join(EVENTS), "--", "cat"),
            ],
            pass_fds=(control, answer),
            stdin=subprocess.PIPE,
        )
        os.close(control)
        os.close(answer)

    def _say(self, word: str) -> None:
        os.write(self._control, f"{word}\n".encode())
        if not os.read(self._answers, 16):
            raise RuntimeError("perf stat has ended")

    def start(self) -> None:
        self._say("enable")

    def stop(self) -> dict[str, float]:
        """The counts by event."""
        self._say("disable")
        self._process.communicate(timeout=10)  # the end of its input ends cat, and so perf
        rows = (line.split(";") for line in self._output.read_text().splitlines() if ";" in line)
        return {row[2]: float(row[0]) for row in rows}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        tree = HostTree(Path("/"))
        collector = PerfCollector(tree.context(perf_metrics=",".join(EVENTS)))
        stat = PerfStat(Path(directory) / "stat")
        collector.read()
        stat.start()
        before, started_s = collector.read(), time.monotonic()
        work()
        after, ended_s = collector.read(), time.monotonic()
        theirs = stat.stop()
    values: Values = collector.compute(before, after, ended_s - started_s)
    ours = {event: values[f"perf_events.{event}"] for event in EVENTS}
    json.dump({event: (ours[event], theirs[event]) for event in EVENTS}, sys.stdout)


if __name__ == "__main__":
    main()
