"""What findings say beside their name: why, how fast, and whose; and what must not be taken for something else."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from dynolog.analysis.analysis import Analysis, analyse
from dynolog.analysis.engine import read_ranks
from dynolog.analysis.findings.communication_findings import communication_findings
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.rank.call_tree import CallTree
from dynolog.analysis.rank.gap_work import gap_work
from dynolog.analysis.rank.operators import host_tree
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.analysis.reading.intervals import Intervals
from dynolog.analysis.reading.load import load
from fakes.traces import operation, trace
from fakes.training_job import TrainingJob


def analysis(job: TrainingJob, directory: Path) -> Analysis:
    _, outcomes = read_ranks(job.write(directory))
    return analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)])


def only(job: TrainingJob, directory: Path, kind: str) -> Finding:
    found = analysis(job, directory).findings
    assert [finding.kind for finding in found] == [kind], [finding.title for finding in found]
    return found[0]


def test_memory_that_is_allocated_in_the_loop_is_named_with_what_to_try(tmp_path: Path) -> None:
    job = TrainingJob()
    job.pause_us, job.pause_call = 4_000.0, "cudaMalloc"
    found = only(job, tmp_path, "host_wait")
    assert "meanwhile the host is in cudaMalloc for 40.0 ms (10 calls)" in found.evidence
    assert "expandable_segments" in found.advice[0]
    assert not any("garbage" in line for line in found.advice)


def test_launches_that_take_long_are_named_with_what_to_try(tmp_path: Path) -> None:
    """The real trace of an MI250 is such: the first launch loads the code."""
    job = TrainingJob()
    job.pause_us, job.pause_call = 4_000.0, "hipLaunchKernel"
    found = only(job, tmp_path, "host_wait")
    assert any("meanwhile the host is in hipLaunchKernel" in line for line in found.evidence)
    assert "the first of a kernel loads its code" in found.advice[0]


def test_short_gaps_after_waits_are_no_slow_launches(tmp_path: Path) -> None:
    """`.item()` between kernels of 60 µs: CUDA graphs, the advice against slow launches, could not even record such a step."""
    job = TrainingJob()
    job.kernel_us, job.operator_us, job.transfer_us, job.syncs, job.copy_us = 60.0, 12.0, 60.0, 40, 10.0
    job.loader_us, job.answer_us = 10.0, 12.0
    found = only(job, tmp_path, "host_wait")
    assert "waits for the device, then begins anew" in found.title
    assert "390 waits for the device in aten::item" in found.evidence
    assert found.evidence[1] == "390 waits for the device in aten::item", (
        "the most frequent, not the longest, comes first"
    )


def cpu_ranks(directory: Path, *work: Mapping[str, float]) -> Analysis:
    """Four steps of 100 ms of ranks without a device, each with operators of so many ms; all end in a collective when the last is there."""
    directory.mkdir(exist_ok=True)
    paths = []
    latest_ms = max(sum(one.values()) for one in work)
    for rank, operators in enumerate(work):
        events = []
        for step in range(4):
            at_us = begin_us = step * 100_000.0
            events.append(operation(f"ProfilerStep#{step}", begin_us, 99_990.0, cat="user_annotation", pid=9, tid=9))
            for name, lasts_ms in operators.items():
                if name != "sleep":
                    events.append(operation(name, at_us + 10, lasts_ms * 1000 - 20, pid=9, tid=9))
                at_us += lasts_ms * 1000
            end_us = begin_us + latest_ms * 1000 + 5_000
            events.append(operation("gloo:all_reduce", at_us, end_us - at_us, cat="user_annotation", pid=9, tid=10))
        path = directory / f"rank{rank}.json"
        head: dict[str, object] = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": len(work)}}
        path.write_bytes(trace(events, head))
        paths.append(str(path))
    _, outcomes = read_ranks(paths)
    return analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)])


def test_a_slow_rank_without_a_device_has_its_operators_or_what_is_none_as_its_reason(tmp_path: Path) -> None:
    usual = {"aten::mm": 20.0, "aten::add": 10.0}
    (slow,) = cpu_ranks(tmp_path / "mm", usual, usual | {"aten::mm": 50.0}, usual).findings
    assert slow.ranks == [1]
    assert "aten::mm: 120 ms more than on the others" in slow.evidence
    assert any(
        line.startswith("its operators take 240 ms of the host, those of the others 120 ms") for line in slow.evidence
    )
    (slow,) = cpu_ranks(tmp_path / "sleep", usual, usual | {"sleep": 30.0}, usual).findings
    assert slow.ranks == [1]
    assert any("no longer than those of the others" in line and "Python itself" in line for line in slow.evidence)


def test_a_host_in_no_operator_and_no_call_is_pythons_own_doing(tmp_path: Path) -> None:
    job = TrainingJob()
    job.pause_us = 4_000.0
    found = only(job, tmp_path, "host_wait")
    assert any("in no operator and no call: Python itself" in line for line in found.evidence)
    assert "gc.freeze()" in found.advice[0]


def test_gaps_are_shared_out_to_the_innermost_calls_and_the_rest_is_outside(tmp_path: Path) -> None:
    """Gaps of 10-30 and 50-60 µs: `a` has 10-12 and 18-20 of them for itself, the call in it 12-18, `b` 55-60; nobody 20-30 and 50-55."""
    events = [
        operation("a", 5, 15),
        operation("cudaMalloc", 12, 6, cat="cuda_runtime"),
        operation("b", 55, 20),
        operation("c", 80, 5),
    ]
    (tmp_path / "t.json").write_bytes(trace(events))
    columns = load(str(tmp_path / "t.json"))
    tree: CallTree = host_tree(columns)
    found = gap_work(columns, tree, Intervals(np.array([10_000, 50_000]), np.array([30_000, 60_000])))
    assert (found.gaps_ns, found.outside_ns) == (30_000, 15_000)
    assert [(call.name, call.count, call.total_us) for call in found.calls] == [
        ("cudaMalloc", 1, 6.0),
        ("b", 1, 5.0),
        ("a", 1, 4.0),
    ]


def test_a_device_without_work_for_most_of_the_recording_is_a_finding(tmp_path: Path) -> None:
    job = TrainingJob(2)
    job.prelude_us = 500_000.0
    found = only(job, tmp_path, "unused_device")
    assert found.share == pytest.approx(500 / (500 + 17.4 * 10), rel=0.05)
    assert any("compile, 500 ms in 1 calls" in line for line in found.evidence)


def test_a_first_step_that_lasts_longest_is_told_as_that(tmp_path: Path) -> None:
    job = TrainingJob()
    job.slow_steps[0] = 4.0
    found = only(job, tmp_path, "step_spread")
    assert found.title.startswith("The first step takes ")
    # Three times 16 ms more, in one of ten steps; a share of all time, which never exceeds it.
    assert found.gain_ns == pytest.approx(3 * 16e6 / 10, rel=0.1)
    assert found.share == pytest.approx(48 / (48 + 174), rel=0.1)


def test_where_the_host_runs_ahead_a_step_is_what_the_device_needs_for_one(tmp_path: Path) -> None:
    job = TrainingJob()
    job.waits = False
    job.copy_us = 4_000.0
    answer = analysis(job, tmp_path)
    (found,) = answer.findings
    assert found.kind == "memory_copies"
    assert found.gain_ns == pytest.approx(4_000e3, rel=0.05)
    assert any("the host runs ahead" in note for note in answer.ranks[0].notes)


def test_two_ranks_that_are_slow_alike_are_both_named(tmp_path: Path) -> None:
    job = TrainingJob(6)
    job.slow_ranks = {1: 1.4, 4: 1.4}
    found = only(job, tmp_path, "slow_rank")
    assert found.ranks == [1, 4]
    assert found.title.startswith("Ranks 1, 4 are slow: all others wait for them ")
    assert any("they compute" in line for line in found.evidence)


def test_communication_that_only_the_waiting_ranks_expose_is_no_finding_of_its_own(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.overlapped, job.transfer_us = False, 6_000.0
    answer = analysis(job, tmp_path)
    (found,) = communication_findings(answer.job, answer.ranks[:3], slow=[1])
    assert found.ranks == [0, 1, 2]
    assert communication_findings(answer.job, answer.ranks[:3], slow=[3]) == []


def test_a_slow_host_has_what_only_its_ranks_do_as_its_reason(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.hosts = {0: "a", 1: "a", 2: "b", 3: "b"}
    job.slow_loaders = {2: 6_000.0, 3: 6_001.0}
    found = only(job, tmp_path, "slow_host")
    assert any(line.startswith("only ranks 2-3: GPU idle ") and "data loader" in line for line in found.evidence)
    assert "num_workers" in found.advice[0]


@pytest.mark.parametrize(("transfer_us", "slow"), [(8_000.0, True), (500.0, False)])
def test_exposed_communication_says_how_fast_it_is_against_the_links(
    tmp_path: Path, transfer_us: float, slow: bool
) -> None:
    """100 MB on four ranks: bus bandwidth is 1.5 × 100 MB over the time; the links of an H100 carry 450 GB/s."""
    job = TrainingJob(4)
    job.hosts = dict.fromkeys(range(4), "a")
    job.overlapped, job.transfer_us, job.kernels = False, transfer_us, 8
    found = {finding.kind: finding for finding in analysis(job, tmp_path).findings}["exposed_communication"]
    speed = 0.15e9 / transfer_us * 1e6 / 1e9
    said = f"all_reduce of 100.0 MB on 4 ranks: bus bandwidth {speed:.1f} GB/s, {speed / 4.5:.{0 if slow is False else 1}f} %"
    assert any(line.startswith(said) for line in found.evidence), found.evidence
    assert found.advice[0].startswith("slow for its size") == slow


@pytest.mark.parametrize("by_host", [True, False])
def test_an_imbalance_says_whether_computing_differs(tmp_path: Path, by_host: bool) -> None:
    job = TrainingJob(4, steps=12)
    if by_host:
        job.late = lambda rank, step: 9_000.0 if step % 4 == rank else 0.0
    else:
        job.overlapped, job.transfer_us = False, 200.0
        job.work = lambda rank, step: 1.6 if (step * 7 + 3) % 4 == rank else 1.0
    found = {finding.kind: finding for finding in analysis(job, tmp_path).findings}
    assert "slow_rank" not in found
    assert ("garbage" in found["imbalance"].advice[0]) == by_host


def test_ranks_without_a_trace_are_said(tmp_path: Path) -> None:
    paths = TrainingJob(4).write(tmp_path)
    _, outcomes = read_ranks([paths[0], paths[3]])
    answer = analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)])
    assert any(note.startswith("ranks 1-2 of 4 have no trace here") for note in answer.notes)
    _, outcomes = read_ranks(paths[:1])
    assert analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)]).notes == []
