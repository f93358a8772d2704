"""Runs the faults one after another under load, and prints what came of each: `python -m soak.run [--minutes 60]`.

Needs root; makes network and mount namespaces of its own. Exit code 1 when a fault was not survived.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from soak.churn import MOST_RSS_MB
from soak.faults import FAULTS, Fault, is_said
from soak.world import World

_INSIDE = "SOAK_INSIDE"
# What asking the daemon for its state costs meanwhile.
_FEW = 8


def survive(world: World, fault: Fault, seconds: float) -> dict[str, Any]:
    """Let it happen; what was seen. `problems` are what must not be."""
    problems: list[str] = []
    log_before = world.log()
    _take(world)
    started_s = time.monotonic()
    try:
        with fault.inject(world, seconds):
            world.wait_for(lambda: fault.works(world), "what must work meanwhile does", 60)
            if not fault.stops:
                time.sleep(seconds)
            said = is_said(world, fault.words)
        world.wait_for(lambda: fault.recovered(world), "it is over", 60)
        if not said:
            world.wait_for(lambda: is_said(world, fault.words), f"its status speaks of it: {fault.words}")
        # Trainers that were waiting get their answers.
        time.sleep(2)
    except (AssertionError, OSError, ValueError) as error:
        problems.append(str(error))
    loads = _take(world)
    trainers = loads["trainers"]
    if trainers.get("lost"):
        problems.append(f"{trainers['lost']:.0f} polls had no answer within {lost_after_s(seconds):g} s")
    if trainers.get("bad") or trainers.get("unasked"):
        problems.append(f"answers that no poll asked for: {trainers}")
    # Those of the errors that were put in are meant.
    before = Counter(log_before.splitlines())
    if any("Traceback" in line and "faulty_daemon" not in line for line in Counter(world.log().splitlines()) - before):
        problems.append("the log has a traceback")
    usage = world.usage() if world.daemon.poll() is None else {}
    if usage.get("rss_mb", 0) > MOST_RSS_MB:
        problems.append(f"the daemon takes {usage['rss_mb']:.1f} MB")
    return {
        "fault": fault.name,
        "seconds": round(time.monotonic() - started_s, 1),
        "stops": fault.stops,
        **loads,
        "usage": usage,
        "problems": problems,
    }


def rest(world: World, seconds: float, samples: list[tuple[float, float]]) -> dict[str, Any]:
    """Load without a fault; adds (time, RSS in MB) to `samples`."""
    _take(world)
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(10.0, left_s))
        samples.append((time.monotonic(), world.usage()["rss_mb"]))
    return {"fault": "none", "seconds": seconds, "stops": False, **_take(world),
            "usage": world.usage(), "problems": []}  # fmt: skip


def lost_after_s(hold_s: float) -> float:
    """When an answer will not come any more: a daemon that is stopped so long answers right after it."""
    return hold_s + 30


def _take(world: World) -> dict[str, dict[str, float]]:
    return {"trainers": world.trainers.take(), "rpc": world.rpc.take(), "floor": world.floor.take()}


def slope_mb_per_hour(samples: list[tuple[float, float]]) -> float | None:
    """The least-squares slope; None for fewer than three samples."""
    if len(samples) < 3:
        return None
    mean_t = sum(t for t, _ in samples) / len(samples)
    mean_m = sum(m for _, m in samples) / len(samples)
    spread = sum((t - mean_t) ** 2 for t, _ in samples)
    return sum((t - mean_t) * (m - mean_m) for t, m in samples) / spread * 3600


def leaks(before: dict[str, float], after: dict[str, float]) -> list[str]:
    """What a daemon has more of than it had."""
    return [
        f"{what} went from {before[what]:g} to {after[what]:g}"
        for what, spare in (("open_files", _FEW), ("threads", 2))
        if after[what] > before[what] + spare
    ]


def soak(world: World, faults: tuple[Fault, ...], options: argparse.Namespace) -> dict[str, Any]:
    """All faults, then load alone for what is left of the time."""
    for load in (world.trainers, world.rpc, world.floor):
        assert load.has_begun.wait(60)
    world.wait_for(lambda: world.receiver.taken > 2, "records arrive")
    end_s = time.monotonic() + options.minutes * 60
    results: list[dict[str, Any]] = []
    samples: list[tuple[float, float]] = []
    results.append(rest(world, options.settle, []))
    before, pid = world.usage(), world.daemon.pid
    for fault in faults:
        if fault.restarts:
            results[-1]["problems"] += leaks(before, _settled(world, before))
        results.append(survive(world, fault, options.hold))
        _print(results[-1])
        if world.daemon.poll() is not None:
            world.kill_and_restart()
        if world.daemon.pid != pid:
            before, pid = world.usage(), world.daemon.pid
    left_s = end_s - time.monotonic()
    if left_s > 30:
        # The first minutes of a process fill caches.
        results.append(rest(world, min(300, left_s / 4), []))
        before = world.usage()
        results.append(rest(world, end_s - time.monotonic(), samples))
        results[-1]["problems"] += leaks(before, _settled(world, before))
    slope = slope_mb_per_hour(samples)
    return {"results": results, "rss_mb": world.usage()["rss_mb"], "rss_slope_mb_per_hour": slope, "samples": len(samples),
            "taken_by_receiver": world.receiver.taken}  # fmt: skip


def _settled(world: World, before: dict[str, float]) -> dict[str, float]:
    """What it has once what was in flight has ended; 20 s are enough for that."""
    deadline = time.monotonic() + 20
    while leaks(before, after := world.usage()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return after


def _print(result: dict[str, Any]) -> None:
    trainers, rpc, usage = result["trainers"], result["rpc"], result["usage"]
    print(
        f"{result['fault']:26} {result['seconds']:6.1f} s  trainers: {trainers.get('answered', 0):6.0f} answers, "
        f"{trainers.get('late', 0):3.0f} > 90 ms, longest {trainers['longest_ms']:8.1f} ms "
        f"(an echo: {result['floor']['longest_ms']:.1f}); "
        f"rpc: {rpc.get('answered', 0):5.0f} answers, {rpc.get('failed', 0):3.0f} failed; "
        f"{usage.get('open_files', 0):.0f} files, {usage.get('threads', 0):.0f} threads, {usage.get('rss_mb', 0):.1f} MB  "
        + "; ".join(result["problems"]),
        file=sys.stderr,
        flush=True,
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainers", type=int, default=512)
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between a trainer's polls")
    parser.add_argument("--rpc-per-s", type=float, default=50.0)
    parser.add_argument("--hold", type=float, default=60.0, help="seconds that each fault lasts")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds of load before the first fault")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="the whole run, at least; what is left is load alone"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="part of 1,000 namespaces and 5,000 trainers that come and go"
    )
    parser.add_argument("--only", default="", help="comma list of faults")
    parser.add_argument(
        "--strict", action="store_true", help="an answer after 90 ms fails the run: for a quiet machine"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("it needs root: namespaces, mounts and other users' processes")
    # Also of processes, so that nothing outlives the run and no other network namespace of this machine is joined.
    if not os.environ.get(_INSIDE):
        inside = ["--mount", "--net", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = ["unshare", *inside, sys.executable, "-m", "soak.run", *sys.argv[1:]]
        os.execvpe(command[0], command, {**os.environ, _INSIDE: "1"})
    wanted = set(filter(None, options.only.split(",")))
    faults = tuple(fault for fault in FAULTS if not wanted or fault.name in wanted)
    directory = Path(tempfile.mkdtemp(prefix="dynolog-soak-"))
    directory.chmod(0o711)  # for the daemon without root
    try:
        report, code = _run(directory, faults, options)
    finally:
        subprocess.run(["umount", str(directory / "disk"), str(directory / "control" / "mount")], check=False)
        shutil.rmtree(directory, ignore_errors=True)
    problems = [f"{one['fault']}: {problem}" for one in report["results"] for problem in one["problems"]]
    if options.strict:
        late = sum(one["trainers"].get("late", 0) for one in report["results"] if not one["stops"])
        problems += [f"{late:.0f} answers came after more than 90 ms"] if late else []
    if code:
        problems.append(f"the daemon ended with {code}")
    report["problems"] = problems
    if options.json:
        print(json.dumps(report))
    else:
        for one in report["results"]:
            _print(one)
        print(
            f"RSS {report['rss_mb']:.1f} MB, slope {report['rss_slope_mb_per_hour']} MB/h over {report['samples']} samples"
        )
        print("\n".join(problems) or "everything was survived")
    return 1 if problems else 0


def _run(directory: Path, faults: tuple[Fault, ...], options: argparse.Namespace) -> tuple[dict[str, Any], int]:
    world = World(
        directory,
        trainers=options.trainers,
        interval_s=options.interval,
        rpc_per_s=options.rpc_per_s,
        scale=options.scale,
        lost_after_s=lost_after_s(options.hold),
    )
    try:
        report = soak(world, faults, options)
    except BaseException:
        world.close()
        print(world.log()[-3000:], file=sys.stderr)
        raise
    return report, world.close()


if __name__ == "__main__":
    sys.exit(main())
