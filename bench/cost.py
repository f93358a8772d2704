#!/usr/bin/env python3
"""What a running process costs: CPU, wake-ups and memory over a time, its children and threads included.

  cost.py PID --seconds 60
  cost.py --floor --hz 1 --seconds 20        # the floor: a bare Python loop that only reads the kernel's files
Prints one JSON object: cpu_pct is of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import time

TICK = os.sysconf("SC_CLK_TCK")
FLOOR_FILES = (
    "stat",
    "meminfo",
    "vmstat",
    "loadavg",
    "uptime",
    "diskstats",
    "net/dev",
    "net/snmp",
    "net/netstat",
    "softirqs",
    "interrupts",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
    "net/sockstat",
)


def children(pid: int) -> list[int]:
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    found += children(int(child))
        except OSError:
            pass
    return found


def snapshot(pids: list[int]) -> tuple[float, int]:
    """CPU seconds (run time from schedstat, ns exact, plus reaped children) and voluntary switches."""
    cpu, switches = 0.0, 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                    cpu += int(file.read().split()[0]) / 1e9
                with open(f"/proc/{pid}/task/{task}/status") as file:
                    switches += next(int(line.split()[1]) for line in file if line.startswith("voluntary"))
            except OSError:
                pass
    with open(f"/proc/{pids[0]}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return cpu + (int(fields[13]) + int(fields[14])) / TICK, switches


def pss_mb(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return round(total / 1024, 2)


def floor(hz: float, seconds: float) -> dict[str, float]:
    files = []
    for name in FLOOR_FILES:
        try:
            files.append(os.open(f"/proc/{name}", os.O_RDONLY))
            os.pread(files[-1], 1, 0)
        except OSError:
            files.pop() if files else None
    start, rounds, wall = time.process_time(), 0, time.monotonic()
    while time.monotonic() < wall + seconds:
        for fd in files:
            os.pread(fd, 1 << 16, 0)
        rounds += 1
        time.sleep(max(wall + rounds / hz - time.monotonic(), 0))
    spent = time.process_time() - start
    return {
        "floor_cpu_pct": round(100 * spent / (time.monotonic() - wall), 4),
        "ms_per_round": round(1e3 * spent / rounds, 3),
        "files": len(files),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pid", type=int, nargs="?")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--hz", type=float, default=1)
    args = parser.parse_args()
    if args.floor:
        print(json.dumps(floor(args.hz, args.seconds)))
        return
    pids = children(args.pid)
    (cpu, switches), start = snapshot(pids), time.monotonic()
    time.sleep(args.seconds)
    pids = children(args.pid)
    (cpu2, switches2), wall = snapshot(pids), time.monotonic() - start
    print(
        json.dumps(
            {
                "cpu_pct": round(100 * (cpu2 - cpu) / wall, 4),
                "wakeups_per_s": round((switches2 - switches) / wall, 2),
                "pss_mb": pss_mb(pids),
                "processes": len(pids),
                "threads": sum(len(os.listdir(f"/proc/{p}/task")) for p in pids),
            }
        )
    )


if __name__ == "__main__":
    main()
