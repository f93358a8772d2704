"""What one sample of every kernel collector costs, beside the bare reads of the same files.

Prints one JSON object: CPU milliseconds for each collector, their total, the floor (a pread of every file that a sample
reads, on descriptors kept open, and nothing else) and the ratio. `--live` samples this machine instead of the generated big host.
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import Collector, Context
from dynolog.model.errors import SourceUnavailable
from dynolog.model.flag import Flag, Settings
from dynolog.sources.host_files import HostFiles, KernelFile
from fakes.big_host import build


class _Silent:
    def say(self, key: str, sentence: str) -> None:
        """Notices are not what is measured."""


def cpu_ms(work: Callable[[], object], rounds: int) -> float:
    """CPU milliseconds of one call, the best of three series: what disturbs only ever adds."""
    series = []
    for _ in range(3):
        before_s = time.process_time()
        for _ in range(rounds):
            work()
        series.append((time.process_time() - before_s) * 1000 / rounds)
    return min(series)


def read_files(collectors: list[Collector[Any]]) -> list[str]:
    """Paths of the files that one sample reads: those held open, and those opened anew."""
    paths = {item.path for item in gc.get_objects() if isinstance(item, KernelFile) and item._fd >= 0}  # noqa: SLF001 - measures the inside
    open_before = os.open

    def noting_open(path: Any, *arguments: Any) -> int:
        paths.add(path)
        return open_before(path, *arguments)

    os.open = noting_open  # type: ignore[assignment]  # its dir_fd is not used here
    try:
        for collector in collectors:
            collector.read()
    finally:
        os.open = open_before
    return sorted(path for path in paths if os.path.isfile(path))


def floor_ms(paths: list[str], rounds: int) -> float:
    """CPU milliseconds to read all of `paths` once with nothing but pread on open descriptors."""
    descriptors = [os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK) for path in paths]

    def read_all() -> None:
        for descriptor in descriptors:
            offset = 0
            while data := os.pread(descriptor, 1 << 18, offset):
                offset += len(data)

    try:
        return cpu_ms(read_all, rounds)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def one_sample(collector: Collector[Any], before: Any) -> None:
    """Read and compute, as a round does."""
    collector.compute(before, collector.read(), 1.0)


def sample_ms(root: str, step: Callable[[int], None], rounds: int) -> dict[str, object]:
    """Measure every collector on the tree at `root`; `step` moves the tree on so that there are deltas."""
    declared: dict[str, Flag] = {flag.name: flag for spec in COLLECTORS for flag in spec.flags}
    context = Context(host=HostFiles(root), settings=Settings(declared.values()), notices=_Silent())
    milliseconds: dict[str, float] = {}
    values: dict[str, int] = {}
    missing: dict[str, str] = {}
    kept: list[Collector[Any]] = []
    for spec in COLLECTORS:
        try:
            step(0)
            collector = spec.factory(context)
            first = collector.read()
            step(1)
            second = collector.read()
        except SourceUnavailable as error:
            missing[spec.name] = str(error)
            continue
        kept.append(collector)
        values[spec.name] = len(collector.compute(first, second, 1.0))
        milliseconds[spec.name] = cpu_ms(partial(one_sample, collector, first), rounds)
    rarely = {spec.name: spec.shortest_interval_s for spec in COLLECTORS if spec.shortest_interval_s > 0}
    files = read_files(kept)
    floor = floor_ms(files, rounds)
    total = sum(milliseconds.values())
    # A collector that may be read only every 10 s costs a second a tenth of its sample.
    per_second = sum(ms / max(rarely.get(name, 1.0), 1.0) for name, ms in milliseconds.items())
    return {
        "collectors_ms": {name: round(ms, 4) for name, ms in sorted(milliseconds.items(), key=lambda item: -item[1])},
        "values": values,
        "total_ms": round(total, 4),
        "every_round_ms": round(sum(ms for name, ms in milliseconds.items() if name not in rarely), 4),
        # The scheduler reads the slow ones in different rounds, so the dearest round has one of them.
        "dearest_round_ms": round(
            sum(ms for name, ms in milliseconds.items() if name not in rarely)
            + max((ms for name, ms in milliseconds.items() if name in rarely), default=0.0),
            4,
        ),
        "per_second_at_1s_ms": round(per_second, 4),
        "floor_ms": round(floor, 4),
        "ratio": round(total / floor, 2) if floor else None,
        "files": len(files),
        "shortest_interval_s": rarely,
        "missing": missing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", action="store_true", help="sample this machine")
    parser.add_argument("--rounds", type=int, default=100, help="samples in each of three series")
    options = parser.parse_args()
    if options.live:
        result = sample_ms("/", lambda _: None, options.rounds)
    else:
        with tempfile.TemporaryDirectory(prefix="dynolog-bench-") as directory:
            root = Path(directory)
            result = sample_ms(directory, lambda step: build(root, step), options.rounds)
    print(json.dumps({"bench": "kernel_sample", "tree": "live" if options.live else "big host", **result}))


if __name__ == "__main__":
    main()
