"""`dyno analyze` against the public HolisticTraceAnalysis, where both define a quantity alike. Run by `make test-analysis`.

Where they do not is written in docs/analysis.md: HolisticTraceAnalysis rounds times to whole µs, so it is compared on traces in whole µs.
"""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynolog.analysis.rank.gpu_work import gpu_work
from dynolog.analysis.rank.launches import launch_rows, queue_length
from dynolog.analysis.rank.rank_summary import RankSummary, summarise
from dynolog.analysis.reading.columns import TraceColumns
from dynolog.analysis.reading.load import LoadOptions, load
from dynolog.analysis.reading.trace_folder import TraceFileHead
from fakes.training_job import TrainingJob

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".venv-hta" / "bin" / "python"
RECORDED = ROOT / "tests" / "data" / "traces" / "public" / "nccl_128ranks_rank0_sampled.json.gz"
IN_WHOLE_US = ("recorded", "generated")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {"recorded": RECORDED}
    for name, decimals in (("generated", 0), ("generated in ns", 3)):
        job = TrainingJob()
        job.decimals, job.overlapped, job.syncs, job.loader_us = decimals, True, 4, 900.0
        found[name] = Path(job.write(tmp_path_factory.mktemp("job"))[0])
    return found


@cache
def counted(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [PYTHON, Path(__file__).parent / "hta_counts.py", path], capture_output=True, text=True, timeout=300, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@cache
def ours(path: Path) -> RankSummary:
    return summarise(TraceFileHead(path=str(path), size_bytes=0, rank=0)).summary


@pytest.fixture(params=IN_WHOLE_US)
def path(request: pytest.FixtureRequest, traces: dict[str, Path]) -> Path:
    return traces[request.param]


def test_the_temporal_breakdown_is_the_same(path: Path) -> None:
    main = ours(path).main
    assert main is not None
    split = main.split
    found = counted(path)
    assert split.span_ns == found["kernel_time"] * 1000
    assert split.compute_ns == found["compute_time"] * 1000
    assert split.idle.total_ns == found["idle_time"] * 1000
    assert split.exposed_communication_ns + split.exposed_memory_ns == found["non_compute_time"] * 1000


def test_the_kernel_breakdown_is_the_same(path: Path) -> None:
    """It tells copies from kernels by name and lists them too."""
    found = {
        name: total for name, total in counted(path)["kernels"].items() if not name.startswith(("Memcpy", "Memset"))
    }
    assert {row.name: row.total_us for row in ours(path).kernels} == found


def test_the_overlap_of_communication_and_computing_is_the_same(path: Path) -> None:
    main = ours(path).main
    assert main is not None
    share = main.split.overlapped_communication_ns / main.split.communication_ns
    assert 100 * share == pytest.approx(counted(path)["overlap_pct"], abs=0.006)


def longest_queues(trace: TraceColumns) -> dict[str, int]:
    (work,) = gpu_work(trace)
    calls = launch_rows(trace, work)
    stream = trace.stream[work.rows]
    found = {}
    for number in np.unique(stream):
        chosen = (stream == number) & (calls >= 0)
        lengths, _ = queue_length(trace.begin_ns[calls[chosen]], work.begin_ns[chosen])
        found[str(number)] = int(lengths.max())
    return found


def test_the_longest_queue_of_each_stream_is_the_same(path: Path) -> None:
    assert longest_queues(load(str(path), LoadOptions())) == counted(path)["queue_max"]


def test_with_times_in_ns_they_differ_by_its_rounding_only(traces: dict[str, Path]) -> None:
    """Each event loses up to 1 µs at either end: idle time, over so many gaps, is too long by that."""
    path = traces["generated in ns"]
    main = ours(path).main
    assert main is not None
    events = sum(row.count for row in ours(path).kernels) + sum(row.count for row in main.copies)
    found = counted(path)
    assert abs(found["idle_time"] - main.split.idle.total_ns / 1000) <= 2 * events
    assert abs(found["kernel_time"] - main.split.span_ns / 1000) <= 2
