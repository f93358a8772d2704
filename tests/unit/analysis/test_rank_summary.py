"""What is counted in one trace, against the same definitions counted slowly and plainly; and the odd cases."""

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.analysis.analysis import analyse
from dynolog.analysis.rank.rank_summary import RankResult, summarise
from dynolog.analysis.reading.trace_folder import TraceFileHead
from fakes import plain_counts as plain
from fakes.traces import RECORDED, operation, trace
from fakes.training_job import TrainingJob

GPU_TRACES = (
    "a100_8ranks_rank3_slice",
    "v100_ns_resolution_rank0_slice",
    "nccl_128ranks_rank0_sampled",
    "mi250_rocm62",
)
PUBLIC = RECORDED / "public"


def head(path: Path) -> TraceFileHead:
    return TraceFileHead(path=str(path), size_bytes=path.stat().st_size, rank=0)


def summary_of(path: Path) -> RankResult:
    return summarise(head(path))


@pytest.fixture(scope="module", params=[*GPU_TRACES, "generated"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param != "generated":
        return PUBLIC / f"{request.param}.json.gz"
    job = TrainingJob(steps=3)
    job.loader_us, job.syncs, job.pause_us = 900.0, 4, 500.0
    job.overlapped = False
    return Path(job.write(tmp_path_factory.mktemp("job"))[0])


def test_the_time_of_the_device_is_split_as_the_plain_count_splits_it(recorded: Path) -> None:
    main = summary_of(recorded).summary.main
    assert main is not None
    split = main.split
    expected = plain.time_split(plain.gpu_events(plain.events_of(recorded)))
    assert split.busy_ns == expected["busy"]
    assert split.compute_ns == expected["compute"]
    assert split.communication_ns == expected.get("communication", 0)
    assert split.exposed_communication_ns == expected.get("exposed_communication", 0)
    assert split.memory_ns == expected.get("memory", 0)
    assert split.exposed_memory_ns == expected.get("exposed_memory", 0)
    assert split.idle.total_ns == expected["idle"]
    parts = split.compute_ns + split.exposed_communication_ns + split.exposed_memory_ns + split.idle.total_ns
    assert parts == split.span_ns


def test_idle_time_has_the_causes_that_the_plain_count_gives_it(recorded: Path) -> None:
    events = plain.events_of(recorded)
    expected = plain.idle_causes(events, plain.gpu_events(events))
    main = summary_of(recorded).summary.main
    assert main is not None
    idle = main.split.idle
    causes = ("launch", "cpu", "data_loader", "other_ranks", "queued", "unknown")
    assert {cause: value for cause in causes if (value := getattr(idle, f"{cause}_ns"))} == expected


def test_kernels_and_operators_have_the_counts_and_times_of_the_plain_count(recorded: Path) -> None:
    events = plain.events_of(recorded)
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    kernels = [event for event in plain.gpu_events(events) if event["cat"] == "kernel"]
    summary = summary_of(recorded).summary
    assert {row.name: (row.count, round(row.total_us * 1000)) for row in summary.kernels} == plain.by_name(kernels)
    assert {row.name: (row.count, round(row.host_us * 1000)) for row in summary.operators} == plain.by_name(operators)
    own = plain.self_times(events)
    assert {row.name: round(row.self_us * 1000) for row in summary.operators} == own


@pytest.mark.parametrize(
    "path", [RECORDED / "iter_13260.json.gz", PUBLIC / "gloo_cpu_rank34_of_300.json.gz"], ids=lambda path: path.name
)
def test_operators_of_the_cpu_alone_have_the_counts_and_times_of_the_plain_count(path: Path) -> None:
    events = plain.events_of(path)
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    summary = summary_of(path).summary
    assert summary.devices == []
    assert {row.name: (row.count, round(row.host_us * 1000)) for row in summary.operators} == plain.by_name(operators)
    assert {row.name: round(row.self_us * 1000) for row in summary.operators} == plain.self_times(events)


def test_the_longest_queue_is_that_of_the_plain_count(recorded: Path) -> None:
    events = plain.events_of(recorded)
    main = summary_of(recorded).summary.main
    assert main is not None
    assert (main.launches.queue_max if main.launches else 0) == plain.queue(events, plain.gpu_events(events))
    assert main.launches is None or main.launches.matched <= main.launches.calls


def gpu(name: str, ts: float, dur: float, **arguments: object) -> dict[str, object]:
    return operation(name, ts, dur, cat="kernel", pid=0, tid=7, args={"stream": 7, "device": 0} | arguments)


def written(tmp_path: Path, *events: dict[str, object]) -> Path:
    path = tmp_path / "t.json"
    path.write_bytes(trace(list(events)))
    return path


def test_kernels_that_overlap_on_a_stream_are_busy_once(tmp_path: Path) -> None:
    """G11: 100 + 50 and 140 + 40 are 80 of busy time."""
    main = summary_of(written(tmp_path, gpu("a", 100, 50), gpu("b", 140, 40))).summary.main
    assert main is not None
    assert main.split.busy_ns == 80_000
    assert main.split.clipped == 1


def test_a_duration_that_overruns_the_next_kernel_is_cut_there_and_both_sums_are_told(tmp_path: Path) -> None:
    """G12: 1.6 s of a kernel of 20 µs."""
    summary = summary_of(written(tmp_path, gpu("a", 0, 1_600_000), gpu("b", 20, 10))).summary
    assert summary.main is not None
    split = summary.main.split
    assert (split.span_ns, split.busy_ns, split.sum_ns, split.raw_sum_ns) == (30_000, 30_000, 30_000, 1_600_010_000)
    assert {row.name: row.total_us for row in summary.kernels} == {"a": 20.0, "b": 10.0}
    assert any("outlast the next" in note for note in summary.notes)


def test_kernels_on_other_streams_are_not_cut(tmp_path: Path) -> None:
    main = summary_of(written(tmp_path, gpu("a", 0, 100), gpu("b", 20, 10, stream=8))).summary.main
    assert main is not None
    assert (main.split.clipped, main.split.busy_ns) == (0, 100_000)


@pytest.mark.parametrize(
    "events", [(), (operation("aten::mm", 0, 10),), (gpu("a", 0, 10),)], ids=["empty", "CPU only", "no launches"]
)
def test_a_trace_that_lacks_kinds_of_events_is_summarised_without_them(
    tmp_path: Path, events: tuple[dict[str, object], ...]
) -> None:
    """G09."""
    summary = summary_of(written(tmp_path, *events)).summary
    assert summary.steps.source == ""
    if not events:
        assert any("empty" in note for note in summary.notes)


def test_launches_that_left_no_kernel_are_noted(tmp_path: Path) -> None:
    """G15."""
    calls = [
        operation("cudaLaunchKernel", i * 10, 5, cat="cuda_runtime", args={"correlation": i + 1}) for i in range(10)
    ]
    summary = summary_of(written(tmp_path, *calls, gpu("a", 20, 5, correlation=1))).summary
    assert any("10% of the kernel launches" in note for note in summary.notes)


def test_work_counts_for_the_module_whose_forward_launched_it_and_backward_for_the_same(tmp_path: Path) -> None:
    def on(thread: int, name: str, ts: float, dur: float, category: str, **args: Any) -> dict[str, object]:
        return operation(name, ts, dur, cat=category, tid=thread, args=args)

    events = [
        on(1, "nn.Module: Linear_0", 0, 100, "python_function"),
        on(1, "nn.Module: ReLU_0", 200, 50, "python_function"),
        on(1, "aten::linear", 10, 50, "cpu_op", **{"Sequence number": 5}),
        on(1, "cudaLaunchKernel", 20, 5, "cuda_runtime", correlation=1),
        on(1, "aten::relu", 210, 30, "cpu_op"),
        on(1, "cudaLaunchKernel", 220, 5, "cuda_runtime", correlation=2),
        on(2, "AddmmBackward0", 400, 50, "cpu_op", **{"Sequence number": 5}),
        on(2, "cudaLaunchKernel", 410, 5, "cuda_runtime", correlation=3),
        gpu("forward", 40, 30, correlation=1),
        gpu("relu", 240, 4, correlation=2),
        gpu("backward", 430, 60, correlation=3),
    ]
    path = written(tmp_path, *events)
    found = summarise(head(path), modules=True).summary.modules
    assert [(row.name, row.launches, row.device_us) for row in found] == [("Linear_0", 2, 90.0), ("ReLU_0", 1, 4.0)]
    assert summary_of(path).summary.modules == []


def test_copies_have_their_bytes_rate_and_time_alone(tmp_path: Path) -> None:
    copy = gpu("Memcpy HtoD (Pageable -> Device)", 0, 100, bytes=1_000_000) | {"cat": "gpu_memcpy"}
    main = summary_of(written(tmp_path, copy, gpu("a", 60, 100, stream=8))).summary.main
    assert main is not None
    (row,) = main.copies
    assert (row.count, row.total_us, row.exposed_us, row.bytes, row.bytes_per_s) == (1, 100.0, 60.0, 1_000_000, 1e10)


def test_steps_without_marks_come_from_optimizers_and_the_first_is_not_whole() -> None:
    steps = summary_of(RECORDED / "iter_13260.json.gz").summary.steps
    ends = [
        event["end"]
        for event in plain.events_of(RECORDED / "iter_13260.json.gz")
        if event["name"].startswith("Optimizer.step#")
    ]
    assert steps.source == "optimizer"
    assert [step.whole for step in steps.steps] == [False] + [True] * (len(ends) - 1)
    assert [step.duration_ns for step in steps.whole] == [after - before for before, after in itertools.pairwise(ends)]


def test_a_mark_whose_duration_is_negative_tells_no_time(tmp_path: Path) -> None:
    path = written(tmp_path, operation("ProfilerStep#1", 10, -2, cat="user_annotation"))
    result = summary_of(path)
    assert result.summary.steps.median_ns is None
    assert [(step.duration_ns, step.whole) for step in result.summary.steps.steps] == [(0, False)]
    assert analyse([result], [result]).findings == []


def test_gloo_collectives_have_the_size_of_their_inputs() -> None:
    calls = summary_of(RECORDED / "iter_13260.json.gz").collectives
    annotations = [
        event for event in plain.events_of(RECORDED / "iter_13260.json.gz") if event["name"] == "gloo:all_reduce"
    ]
    expected = [
        event["args"]["Input Dims"][0][0] * 4 for event in sorted(annotations, key=lambda event: event["begin"])
    ]
    assert calls.size_bytes.tolist() == expected


def test_the_json_of_a_summary_is_small(tmp_path: Path) -> None:
    result = summary_of(PUBLIC / "a100_8ranks_rank3_slice.json.gz")
    assert len(msgspec.json.encode(result.summary)) < 200_000
    assert json.loads(msgspec.json.encode(result.summary))["rank"] == 0
