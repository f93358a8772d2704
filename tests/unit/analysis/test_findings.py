"""One planted fault gives its finding and no other; a clean job gives none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dynolog.analysis.analysis import Analysis, analyse
from dynolog.analysis.editing.host_tracks import Window, add_tracks
from dynolog.analysis.engine import read_ranks
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.model.host_samples import HostSeries, SampleBlock
from fakes.traces import operation, trace
from fakes.training_job import BEGIN_US, TrainingJob


def results(job: TrainingJob, directory: Path) -> list[RankResult]:
    _, outcomes = read_ranks(job.write(directory))
    assert all(isinstance(outcome, RankResult) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, RankResult)]


def analysis(job: TrainingJob, directory: Path) -> Analysis:
    return analyse(results(job, directory))


def only(job: TrainingJob, directory: Path, kind: str) -> Finding:
    found = analysis(job, directory).findings
    assert [finding.kind for finding in found] == [kind], [finding.title for finding in found]
    return found[0]


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("marks", [True, False])
def test_a_clean_job_gives_no_finding(tmp_path: Path, ranks: int, marks: bool) -> None:
    job = TrainingJob(ranks)
    job.marks = marks
    job.counters = [("cpu_user_pct", lambda at: 20.0), ("gpu_clock_mhz.0", lambda at: 1980.0)]
    assert analysis(job, tmp_path).findings == []


def test_a_slow_rank_is_found_across_clocks_that_differ_and_its_kernels_are_told(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.slow_ranks[2] = 1.4
    job.clock_us = {1: 5_000.0, 2: -7_000.0, 3: 123.0}
    job.hosts = {rank: f"node{rank}" for rank in range(4)}
    answer = analysis(job, tmp_path)
    assert [finding.kind for finding in answer.findings] == ["slow_rank"]
    slow = answer.findings[0]
    assert slow.ranks == [2]
    assert "node2" in slow.title
    # The others have 16 ms of kernels in each step, and wait for the 40 % that it needs more; in the first step for half of that.
    assert slow.gain_ns == pytest.approx(0.4 * 40 * 400e3 * 9.25 / 10, rel=0.06)
    assert any("gemm_" in line for line in slow.evidence)
    assert {step.rank for step in answer.job.slowest} == {2}
    assert {clock.rank: round(clock.offset_ns / 1e3) for clock in answer.job.clocks} == {
        0: 0,
        1: 5000,
        2: -7000,
        3: 123,
    }


def test_a_rank_that_is_late_by_its_data_loader_is_one_finding_with_that_reason(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.slow_loaders[1] = 6_000.0
    slow = only(job, tmp_path, "slow_rank")
    assert slow.ranks == [1]
    assert any("data loader" in line for line in slow.evidence)


def test_a_host_whose_ranks_are_late_by_turns_is_slow_as_a_host(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.hosts = {0: "a", 1: "a", 2: "b", 3: "b"}
    job.slow_ranks = {2: 1.4, 3: 1.4001}
    found = only(job, tmp_path, "slow_host")
    assert found.ranks == [2, 3]


def exposed(job: TrainingJob) -> None:
    job.overlapped, job.transfer_us = False, 6_000.0


def starved(job: TrainingJob) -> None:
    job.loader_us = 6_000.0


def launching(job: TrainingJob) -> None:
    job.kernels, job.kernel_us, job.transfer_us, job.steps = 400, 6.0, 500.0, 4
    job.copy_us = 20.0


def copying(job: TrainingJob) -> None:
    job.copy_kind, job.copy_us = "Pageable", 4_000.0


def pausing(job: TrainingJob) -> None:
    job.pause_us = 4_000.0


def meeting(job: TrainingJob) -> None:
    job.barrier_us = 4_000.0


def stalling(job: TrainingJob) -> None:
    job.stall_us = 4_000.0


def synchronising(job: TrainingJob) -> None:
    job.syncs = 10


def one_long_step(job: TrainingJob) -> None:
    job.slow_steps[7] = 2.5


def braked(job: TrainingJob) -> None:
    def low(at: float) -> bool:
        return 0.3 <= at < 0.7

    job.counters = [
        ("gpu_clock_mhz.0", lambda at: 1200.0 if low(at) else 1980.0),
        ("gpu_throttle.0", lambda at: 0x80 if low(at) else 0),
    ]


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize(
    ("plant", "kind", "words"),
    [
        (exposed, "exposed_communication", "Exposed communication"),
        (starved, "data_loader", "data loader"),
        (launching, "launch_bound", "launch-bound"),
        (copying, "memory_copies", "Memory copies"),
        (pausing, "host_wait", "launches nothing"),
        (meeting, "host_collective", "waits for other ranks"),
        (stalling, "queued", "although work was queued"),
        (synchronising, "host_wait", "waits for the device"),
        (one_long_step, "step_spread", "Steps vary"),
        (braked, "clock_drop", "1,200 MHz: power brake"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_fault_is_the_only_finding(
    tmp_path: Path, ranks: int, plant: Callable[[TrainingJob], None], kind: str, words: str
) -> None:
    job = TrainingJob(ranks)
    plant(job)
    found = only(job, tmp_path, kind)
    assert words in found.title
    assert found.ranks == list(range(ranks))
    assert found.evidence
    assert found.advice


def test_what_there_is_to_win_is_the_time_that_was_planted(tmp_path: Path) -> None:
    job = TrainingJob()
    starved(job)
    found = only(job, tmp_path / "loader", "data_loader")
    assert found.per == "step"
    # The last step's wait, and not the first one's: that begins before the device has worked.
    assert found.gain_ns == pytest.approx(6_000e3 * 9 / 10, rel=0.05)
    job = TrainingJob()
    exposed(job)
    assert only(job, tmp_path / "exposed", "exposed_communication").gain_ns == pytest.approx(6_000e3, rel=0.05)


def test_counters_of_the_host_say_why_the_data_loader_is_slow(tmp_path: Path) -> None:
    job = TrainingJob()
    starved(job)
    job.counters = [("cpu_user_pct", lambda at: 98.0), ("disk_read_bytes_per_s", lambda at: 1.9e9)]
    title = only(job, tmp_path, "data_loader").title
    assert title.startswith("GPU idle ")
    assert title.endswith("data loader; CPU 98 % busy in user, disk reads at 1.9 GB/s")


def test_a_host_that_is_not_busy_while_the_data_loader_is_slow_is_told_as_that(tmp_path: Path) -> None:
    """With counters in the trace nobody is told to record with counters."""
    job = TrainingJob()
    starved(job)
    job.counters = [
        ("cpu_user_pct", lambda at: 3.0),
        ("cpu_system_pct", lambda at: 1.0),
        ("disk_read_bytes_per_s", lambda at: 2e6),
    ]
    evidence = " ".join(only(job, tmp_path / "idle", "data_loader").evidence)
    assert "the host was not busy (CPU 4 % busy, disk reads at 2 MB/s)" in evidence
    assert "--with-host" not in evidence
    job.counters = []
    assert "--with-host" in " ".join(only(job, tmp_path / "none", "data_loader").evidence)


def test_counters_tell_of_the_data_loader_of_a_job_without_a_device(tmp_path: Path) -> None:
    span = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events: list[dict[str, object]] = [
        operation(span, 0, 60_000, cat="user_annotation", pid=9, tid=9),
        operation("aten::mm", 60_000, 40_000, pid=9, tid=9),
    ]
    for at_us, busy_pct in ((0, 97.0), (60_000, 5.0)):
        counter = {"ph": "C", "pid": 5_000_000, "tid": 0, "name": "host cpu_user_pct", "ts": at_us}
        events.append(counter | {"args": {"value": busy_pct}})
    (tmp_path / "t.json").write_bytes(trace(events))
    _, outcomes = read_ranks([str(tmp_path / "t.json")])
    (found,) = analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)]).findings
    assert found.title == "The loop waits 60 %: data loader; CPU 97 % busy in user"


def test_tracks_that_the_daemons_samples_became_are_used(tmp_path: Path) -> None:
    """What `dyno gputrace --with-host` writes is what is read here."""
    job = TrainingJob()
    starved(job)
    (path,) = job.write(tmp_path)
    begin_ns, step_ns = int(BEGIN_US * 1000), 10_000_000
    begins = tuple(begin_ns + place * step_ns for place in range(30))
    block = SampleBlock(
        begin_wall_ns=begins,
        begin_monotonic_ns=begins,
        elapsed_ns=(step_ns,) * len(begins),
        series=(
            HostSeries("cpu_user_pct", (97.0,) * len(begins)),
            HostSeries("gpu_clock_mhz.0", (1980.0,) * 15 + (1200.0,) * 15),
            HostSeries("gpu_throttle.0", (0.0,) * 15 + (128.0,) * 15),
        ),
    )
    window = Window(begin_wall_ns=begin_ns, end_wall_ns=begins[-1] + step_ns)
    add_tracks(path, (block,), window, "0" * 64, path)
    _, outcomes = read_ranks([path])
    answer = analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)])
    titles = {finding.kind: finding.title for finding in answer.findings}
    assert titles["data_loader"].endswith("data loader; CPU 97 % busy in user")
    assert titles["clock_drop"] == "GPU clock dropped to 1,200 MHz: power brake"


def test_a_clock_that_drops_while_the_device_is_idle_costs_nothing(tmp_path: Path) -> None:
    job = TrainingJob(steps=2)
    job.counters = [("gpu_clock_mhz.0", lambda at: 300.0 if at == 0 else 1980.0)]
    job.loader_us = 900.0
    assert [finding.kind for finding in analysis(job, tmp_path).findings if finding.kind == "clock_drop"] == []


# NVML sets the general bit of a slowdown by hardware beside that of the power brake.
BRAKED_ALL_THE_TIME: list[tuple[str, Callable[[float], float]]] = [
    ("gpu_clock_mhz.5", lambda at: 1200.0),
    ("gpu_clock_max_mhz.5", lambda at: 1980.0),
    ("gpu_throttle.5", lambda at: 0x88),
]


def test_a_clock_that_is_held_down_all_the_time_is_found_on_the_gpu_that_the_process_has(tmp_path: Path) -> None:
    """With one GPU made visible, the trace's device 0 is the host's GPU 5, and what is wrong with the host's GPU 0 is not its fault."""
    job = TrainingJob()
    job.counters = [("gpu_held.5", lambda at: 1.0), *BRAKED_ALL_THE_TIME]
    found = only(job, tmp_path / "braked", "clock_drop")
    assert found.title == "GPU clock dropped to 1,200 MHz: power brake"
    assert "below 1,980 MHz on GPU 5 of its host, which it never reached here" in found.evidence[0]
    assert found.share == pytest.approx(1 - 1200 / 1980, rel=0.03)
    assert found.advice == [
        "power brake, hardware slowdown: the node's power supply or its cabling; ask who runs the machine"
    ]
    job.counters = [("gpu_held.4", lambda at: 1.0), *BRAKED_ALL_THE_TIME]
    assert analysis(job, tmp_path / "other").findings == []
    # A power cap is usual under full load: only a drop within the recording counts.
    job.counters = [
        ("gpu_clock_mhz.0", lambda at: 1500.0),
        ("gpu_clock_max_mhz.0", lambda at: 1980.0),
        ("gpu_throttle.0", lambda at: 0x04),
    ]
    assert analysis(job, tmp_path / "capped").findings == []


def test_ranks_that_are_late_by_turns_are_an_imbalance_and_no_slow_rank(tmp_path: Path) -> None:
    job = TrainingJob(4, steps=12)
    job.late = lambda rank, step: 9_000.0 if step % 4 == rank else 0.0
    kinds = {finding.kind: finding for finding in analysis(job, tmp_path).findings}
    assert "slow_rank" not in kinds
    assert kinds["imbalance"].ranks == [0, 1, 2, 3]
    # What is spent in the data loader is a finding of its own.
    assert set(kinds) <= {"imbalance", "data_loader", "step_spread"}


def test_kernels_that_one_rank_runs_under_another_name_are_found(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.renamed[1] = {"gemm_1": "gemm_fallback"}
    found = only(job, tmp_path, "differing_kernels")
    assert found.ranks == [1]
    # It takes as long as what the others run.
    assert found.gain_ns == pytest.approx(0, abs=100e3)
    assert "11 % of the kernel time" in found.title
    assert any("gemm_fallback" in line for line in found.evidence)
    assert any("gemm_1" in line for line in found.evidence)


def compared(before: TrainingJob, after: TrainingJob, directory: Path) -> Analysis:
    return analyse(results(after, directory / "after"), results(before, directory / "before"))


def test_one_slower_kernel_is_the_only_difference_and_certain(tmp_path: Path) -> None:
    after = TrainingJob(2)
    after.slow_kernels["gemm_3"] = 1.5
    answer = compared(TrainingJob(2), after, tmp_path)
    assert [finding.kind for finding in answer.findings] == ["slower_kernel"]
    assert "gemm_3" in answer.findings[0].title
    assert "certain" in answer.findings[0].title
    assert answer.findings[0].gain_ns == pytest.approx(5 * 200e3, rel=0.05)
    assert answer.comparison is not None
    assert [change.name for change in answer.comparison.kernels if change.verdict != "same"] == ["gemm_3"]
    assert answer.comparison.steps is not None
    assert answer.comparison.steps.verdict == "slower"


def test_collectives_that_last_longer_because_a_rank_is_late_are_not_what_changed(tmp_path: Path) -> None:
    """NCCL's kernels wait within; without the other ranks' traces that is said with them."""
    after = TrainingJob(4)
    after.slow_loaders[2] = 6_000.0
    answer = compared(TrainingJob(4), after, tmp_path / "job")
    assert answer.comparison is not None
    assert any("nccl" in change.name and change.verdict == "slower" for change in answer.comparison.kernels)
    assert {finding.kind for finding in answer.findings} == {"slow_rank", "slower_steps"}
    slower = TrainingJob(4)
    slower.transfer_us = 4_500.0
    found = compared(TrainingJob(4), slower, tmp_path / "links").findings
    (kernel,) = [finding for finding in found if finding.kind == "slower_kernel"]
    assert "nccl" in kernel.title
    assert "its time includes waiting for other ranks" in kernel.evidence


def test_two_recordings_of_the_same_job_do_not_differ(tmp_path: Path) -> None:
    answer = compared(TrainingJob(2, steps=12), TrainingJob(2), tmp_path)
    assert answer.findings == []
    assert answer.comparison is not None
    assert {change.verdict for change in answer.comparison.kernels} == {"same"}


def test_a_kernel_that_took_the_place_of_another_is_new_and_that_is_gone(tmp_path: Path) -> None:
    after = TrainingJob()
    after.renamed[0] = {"gemm_1": "gemm_fallback"}
    answer = compared(TrainingJob(), after, tmp_path)
    assert answer.comparison is not None
    verdicts = {change.name: change.verdict for change in answer.comparison.kernels if change.verdict != "same"}
    assert verdicts == {"gemm_1": "gone", "gemm_fallback": "new"}
    assert [finding.kind for finding in answer.findings] == ["new_kernel"]


def test_one_step_is_compared_with_its_limits_said(tmp_path: Path) -> None:
    after = TrainingJob(steps=1)
    after.slow_steps[0] = 1.2
    answer = compared(TrainingJob(steps=1), after, tmp_path)
    assert answer.comparison is not None
    assert answer.comparison.steps is not None
    assert answer.comparison.steps.sure == "too few calls"
    assert any("only one whole step" in note for note in answer.comparison.notes)


def test_too_few_calls_give_no_finding(tmp_path: Path) -> None:
    before, after = TrainingJob(steps=1), TrainingJob(steps=1)
    before.kernels = after.kernels = 16
    before.slow_kernels["gemm_3"] = 1.0
    after.slow_kernels["gemm_3"] = 3.0
    answer = compared(before, after, tmp_path)
    assert answer.findings == []
    assert answer.comparison is not None
    assert [(row.verdict, row.sure) for row in answer.comparison.kernels if row.name == "gemm_3"] == [
        ("slower", "too few calls")
    ]


def test_kernels_that_are_called_more_often_are_told_apart_from_slower_ones(tmp_path: Path) -> None:
    after = TrainingJob()
    after.kernels = 48
    findings = compared(TrainingJob(), after, tmp_path).findings
    assert {finding.kind for finding in findings} == {"more_calls_of_kernel"}
    assert len(findings) == 5
    assert "6.0 calls a step instead of 5.0" in findings[0].title


def test_slower_steps_are_a_finding_where_no_kernel_explains_them(tmp_path: Path) -> None:
    after = TrainingJob()
    after.loader_us = 3_000.0
    kinds = {finding.kind for finding in compared(TrainingJob(), after, tmp_path).findings}
    assert kinds == {"data_loader", "slower_steps"}
