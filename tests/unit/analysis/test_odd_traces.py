"""Whatever a trace holds, there is an answer: no combination of events ends the analysis."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynolog.analysis.analysis import analyse
from dynolog.analysis.engine import outcome_of
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.analysis.reading.trace_folder import TraceFileHead
from dynolog.analysis.report.html_report import page
from dynolog.cli.analyze.report import lines
from fakes.training_job import TrainingJob

events = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "C"]),
        "cat": st.sampled_from(
            ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cpu_op", "user_annotation", "gpu_user_annotation"]
        ),
        "name": st.sampled_from(
            [
                "gemm",
                "ncclDevKernel_AllReduce_Sum_f32",
                "cudaLaunchKernel",
                "cudaDeviceSynchronize",
                "enumerate(DataLoader)#_Iter.__next__",
                "ProfilerStep#1",
                "ProfilerStep#2",
                "ProfilerStep#",
                "ProfilerStepper",
                "ProfilerStep#99999999999999999999999",
                "Optimizer.step#SGD.step",
                "gloo:all_reduce",
                "Memcpy HtoD (Pageable -> Device)",
                "host gpu_clock_mhz.0",
                "host cpu_user_pct",
                "",
            ]
        ),
        "pid": st.integers(-1, 2),
        "tid": st.integers(0, 2),
        "ts": st.integers(0, 400),
        "dur": st.integers(-2, 200),
        "args": st.fixed_dictionaries(
            {},
            optional={
                "device": st.integers(-1, 1),
                "stream": st.integers(0, 2),
                "correlation": st.integers(0, 5),
                "External id": st.integers(0, 3),
                "bytes": st.integers(-1, 100),
                "value": st.one_of(st.none(), st.integers(0, 2000)),
                "Collective name": st.sampled_from(["allreduce", "send", ""]),
                "In msg nelems": st.integers(0, 10),
                "Out msg nelems": st.integers(0, 10),
                "Group size": st.integers(0, 3),
                "dtype": st.sampled_from(["Float", "Odd"]),
                "Seq": st.integers(0, 3),
                "Sequence number": st.integers(0, 3),
            },
        ),
    }
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


def result(path: Path, rank: int, chosen: list[dict[str, object]], host: str) -> RankResult:
    path.write_text(json.dumps({"traceEvents": chosen}))
    outcome = outcome_of(TraceFileHead(path=str(path), size_bytes=0, rank=rank, host=host))
    assert isinstance(outcome, RankResult)
    return outcome


@settings(deadline=None, max_examples=150)
@given(ranks=st.lists(st.lists(events, max_size=25), min_size=1, max_size=3), host=st.sampled_from(["", "a", "ab"]))
def test_any_events_of_any_ranks_give_an_answer_that_can_be_shown(
    place: Path, ranks: list[list[dict[str, object]]], host: str
) -> None:
    results = [
        result(place / f"{rank}.json", rank, chosen, host[rank % len(host)] if host else "")
        for rank, chosen in enumerate(ranks)
    ]
    answer = analyse(results, results[-1:])
    assert msgspec.json.decode(msgspec.json.encode(answer))["ranks"]
    assert list(lines(answer))
    assert page(answer).endswith("</html>\n")
    for summary in answer.ranks:
        for device in summary.devices:
            split = device.split
            parts = split.compute_ns + split.exposed_communication_ns + split.exposed_memory_ns + split.idle.total_ns
            assert parts == split.span_ns


@pytest.fixture(scope="module")
def whole(place: Path) -> bytes:
    """A small job's trace with all that answers are made of."""
    job = TrainingJob(steps=3)
    job.kernels = 6
    return Path(job.write(place / "whole")[0]).read_bytes()


@settings(deadline=None, max_examples=200)
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=4))
def test_bits_that_flipped_on_the_disk_never_end_the_analysis(
    place: Path, whole: bytes, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(whole)
    for share, bit in changes:
        data[int(share * len(data))] ^= 1 << bit
    path = place / "flipped.json"
    path.write_bytes(data)
    outcome = outcome_of(TraceFileHead(path=str(path), size_bytes=0, rank=0))
    if isinstance(outcome, RankResult):
        assert list(lines(analyse([outcome])))
