"""What one sample of the performance counters costs, beside bare reads of the same groups.

Prints one JSON object. The big host has 256 CPUs; its groups are opened on the CPUs of this machine in turn, and every event becomes
one of the kernel's own, so that each read is a real one, with the question to another CPU that it takes.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from dynolog.collectors.perf import PerfCollector
from dynolog.sources.perf_event.attributes import EventType, Software
from dynolog.sources.perf_event.syscall import KernelCalls
from fakes.collector_context import HostTree
from fakes.perf_machine import one_core_pmu

# Seven events in one group, and eight in four groups of two.
SHAPES = {"one_group": "software", "four_groups": "default,cache,branches"}


class FoldedCalls(KernelCalls):
    """Opens what is asked of any CPU on one that this machine has, as an event that it has; and remembers what was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.fds: list[tuple[int, int]] = []
        self._cpus = os.cpu_count() or 1

    def open(self, attr: bytes, pid: int, cpu: int, group_fd: int, flags: int) -> int:
        folded = struct.pack("=I", EventType.SOFTWARE) + attr[4:8] + struct.pack("=Q", self._event(attr)) + attr[16:]
        fd = super().open(folded, pid, cpu % self._cpus, group_fd, flags)
        self.fds.append((fd, group_fd))
        return fd

    def _event(self, attr: bytes) -> int:
        type_number, _, config = struct.unpack_from("=IIQ", attr)
        return config if type_number == EventType.SOFTWARE else Software.CONTEXT_SWITCHES


def wall_ms(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of one call, the median: what disturbs only adds."""
    times = []
    for _ in range(rounds):
        started_s = time.perf_counter()
        work()
        times.append((time.perf_counter() - started_s) * 1000)
    return sorted(times)[rounds // 2]


def measure(shape: str, cpus: int, rounds: int) -> dict[str, float]:
    """One sample (read and compute), and the bare reads of its groups."""
    with tempfile.TemporaryDirectory() as directory:
        tree = HostTree(Path(directory))
        one_core_pmu(tree, f"0-{cpus - 1}")
        calls = FoldedCalls()
        collector = PerfCollector(tree.context(perf_metrics=SHAPES[shape]), calls)
        before = collector.read()
        leaders = [fd for fd, group_fd in calls.fds if group_fd < 0]
        size = 8 * (3 + 2 * len(calls.fds) // len(leaders))
        floor_ms = wall_ms(lambda: [os.read(fd, size) for fd in leaders], rounds)
        sample_ms = wall_ms(lambda: collector.compute(before, collector.read(), 1.0), rounds)
        return {
            "sample_ms": round(sample_ms, 3),
            "floor_ms": round(floor_ms, 3),
            "groups": len(leaders),
            "events": len(calls.fds),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=50)
    arguments = parser.parse_args()
    json.dump({shape: measure(shape, arguments.cpus, arguments.rounds) for shape in SHAPES}, sys.stdout)


if __name__ == "__main__":
    main()
