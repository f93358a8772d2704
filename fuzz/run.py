"""Coverage-guided fuzzing of all targets with atheris, each in a process of its own: `python -m fuzz.run --inputs 1000000`.

The corpora in fuzz/corpus are where it begins; with --grow, inputs that reach something new are added to them. Exit code 1 and the
input in fuzz-out/ when one does what it must not.
"""

import argparse
import contextlib
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import atheris

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))  # the targets stand on the fakes of the tests

with atheris.instrument_imports(include=["dynolog"]):
    from fuzz.registry import TARGETS
    from fuzz.target import Checker, Target

CORPUS = REPOSITORY / "fuzz" / "corpus"
OUTPUT = REPOSITORY / "fuzz-out"
_EXECUTED = re.compile(r"number_of_executed_units:\s*(\d+)")
_PEAK = re.compile(r"peak_rss_mb:\s*(\d+)")
# The interpreter with everything imported and instrumented takes 150 MB.
_MEMORY_MB = 600
_MOST_KEPT = 60
_LARGEST_KEPT_BYTES = 4096


class Running(NamedTuple):
    """A target's process."""

    target: Target
    directory: str
    inputs: int
    started_s: float

    @property
    def log(self) -> str:
        """What it printed."""
        return Path(self.directory, "log").read_text(errors="replace")


def start(target: Target, inputs: int, seed: int) -> tuple[int, Running]:
    """Fork a process that feeds a target. Python and its modules are loaded and instrumented once, before."""
    directory = tempfile.mkdtemp(prefix=f"fuzz-{target.name}-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    kept = CORPUS / target.name
    corpus = Path(directory, "corpus")
    shutil.copytree(kept, corpus) if kept.is_dir() else corpus.mkdir()
    Path(directory, "scratch").mkdir()
    running = Running(target, directory, inputs, time.monotonic())
    pid = os.fork()
    if pid == 0:
        try:
            _fuzz(running, seed)
        finally:
            os._exit(70)  # atheris.Fuzz does not return
    return pid, running


def _fuzz(running: Running, seed: int) -> None:
    target, directory = running.target, running.directory
    log = os.open(f"{directory}/log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    checker = Checker(target, f"{directory}/scratch")
    arguments = [
        target.name,
        f"{directory}/corpus",
        f"-runs={running.inputs}",
        f"-seed={seed}",
        f"-max_len={target.largest}",
        f"-rss_limit_mb={_MEMORY_MB}",
        "-timeout=120",
        f"-artifact_prefix={directory}/",
        "-print_final_stats=1",
        "-verbosity=1",
    ]

    def check(data: bytes) -> None:
        try:
            checker(data)
        except BaseException:
            Path(directory, "input-1").write_bytes(data)
            raise

    atheris.Setup(arguments, check, internal_libfuzzer=True)
    atheris.Fuzz()


def finish(running: Running, status: int, grow: bool) -> tuple[int, bool]:
    """Report on a process that has ended: inputs that it was fed, and whether all was well."""
    log = running.log
    executed = int(found[1]) if (found := _EXECUTED.search(log)) else 0
    peak = found[1] if (found := _PEAK.search(log)) else "?"
    seconds = time.monotonic() - running.started_s
    well = status == 0 and executed > 0
    print(
        f"{running.target.name:24} {executed:>9,} inputs {seconds:7.1f} s  peak {peak} MB  {'' if well else 'FAILED'}",
        flush=True,
    )
    if not well:
        print(log[-4000:])
        OUTPUT.mkdir(exist_ok=True)
        for artifact in Path(running.directory).glob("*-*"):
            kept = OUTPUT / f"{running.target.name}-{artifact.name}"
            shutil.copy(artifact, kept)
            print(f"the input is in {kept.relative_to(REPOSITORY)}: {artifact.read_bytes()[:200]!r}")
    elif grow:
        _grow(running)
    shutil.rmtree(running.directory)
    return executed, well


def _grow(running: Running) -> None:
    """Keep the smallest of what reached something new."""
    kept = CORPUS / running.target.name
    kept.mkdir(parents=True, exist_ok=True)
    have = len(list(kept.iterdir()))
    found = sorted(Path(running.directory, "corpus").iterdir(), key=lambda path: (path.stat().st_size, path.name))
    for path in found:
        if have >= _MOST_KEPT or path.stat().st_size > _LARGEST_KEPT_BYTES:
            break
        if not (kept / path.name[:16]).exists() and not (kept / path.name).exists():
            shutil.copy(path, kept / path.name[:16])
            have += 1


def run(targets: tuple[Target, ...], total: int, jobs: int, seed: int, grow: bool) -> bool:
    """Feed `total` inputs, divided by the targets' shares, with so many processes at once."""
    shares = sum(target.share for target in targets)
    waiting = [(target, max(int(total * target.share / shares), 200)) for target in targets]
    running: dict[int, Running] = {}
    started_s, executed, all_well = time.monotonic(), 0, True
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                pid, started = start(*waiting.pop(0), seed)
                running[pid] = started
            pid, status = os.wait()
            if pid in running:
                inputs, well = finish(running.pop(pid), status, grow)
                executed += inputs
                all_well = all_well and well
    finally:
        for pid, left in running.items():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
            os.waitpid(pid, 0)
            shutil.rmtree(left.directory, ignore_errors=True)
    print(f"{executed:,} inputs to {len(targets)} targets in {time.monotonic() - started_s:.0f} s")
    return all_well


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="over all targets")
    parser.add_argument("--targets", default="", help="comma list of names; all without it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1, help="the same seed feeds the same inputs")
    parser.add_argument("--grow", action="store_true", help="add inputs that reach something new to the corpora")
    options = parser.parse_args()
    wanted = set(filter(None, options.targets.split(",")))
    if unknown := wanted - {target.name for target in TARGETS}:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    chosen = tuple(target for target in TARGETS if not wanted or target.name in wanted)
    return 0 if run(chosen, options.inputs, options.jobs, options.seed, options.grow) else 1


if __name__ == "__main__":
    sys.exit(main())
