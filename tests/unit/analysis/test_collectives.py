"""Collectives: what they are called, how much they move, and which of them are the same on several ranks."""

import json
from pathlib import Path

import pytest

from dynolog.analysis.analysis import analyse
from dynolog.analysis.engine import read_ranks
from dynolog.analysis.job.job_summary import JobSummary
from dynolog.analysis.job.link_speeds import link_bytes_per_s
from dynolog.analysis.rank.collective_calls import bus_bytes, kind_of, size_of_shapes
from dynolog.analysis.rank.rank_summary import RankResult
from fakes.training_job import TrainingJob


def job_of(job: TrainingJob, directory: Path) -> JobSummary:
    _, outcomes = read_ranks(job.write(directory))
    return analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)]).job


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)", "reduce_scatter"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL", "all_gather"),
        ("gloo:all_to_all", "all_to_all"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "send_recv"),
        ("ncclKernel_Reduce_RING_LL", "reduce"),
        ("c10d::broadcast_", "broadcast"),
        ("gemm", "other"),
    ],
)
def test_a_name_tells_the_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_a_bus_carries_what_the_tests_of_nccl_define() -> None:
    assert bus_bytes("all_reduce", 800, 8) == 800 * 2 * 7 / 8
    assert bus_bytes("all_gather", 800, 8) == bus_bytes("reduce_scatter", 800, 8) == 800 * 7 / 8
    assert bus_bytes("broadcast", 800, 8) == 800
    assert bus_bytes("all_reduce", 800, 1) == 0


@pytest.mark.parametrize(
    ("dims", "types", "size"),
    [
        ("[[3, 4]]", '["float"]', 48),
        ("[[[2], [3, 2]]]", '["c10::BFloat16"]', 16),
        ("[[5], []]", '["long int", "double"]', 0),
        ("[[5], [2]]", '["Half", "unknown"]', 10),
        ("[[", "[]", 0),
        ('"x"', "1", 0),
    ],
)
def test_shapes_and_types_give_bytes(dims: str, types: str, size: int) -> None:
    assert size_of_shapes(dims, types) == size


def test_bandwidth_is_of_the_transfer_without_the_wait_and_against_the_link(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.slow_ranks[2] = 1.4
    job.hosts = dict.fromkeys(range(4), "node")
    (row,) = job_of(job, tmp_path).bandwidth
    assert (row.kind, row.size_bytes, row.group_size, row.count, row.without_waiting) == (
        "all_reduce",
        10**8,
        4,
        10,
        True,
    )
    assert row.time_us == pytest.approx(3_000, rel=0.001)
    assert row.algorithm_bytes_per_s == pytest.approx(1e8 / 3e-3, rel=0.001)
    assert row.bus_bytes_per_s == pytest.approx(1.5 * 1e8 / 3e-3, rel=0.001)
    assert row.link_bytes_per_s == 450e9


def test_one_rank_alone_has_times_with_the_wait_and_no_link(tmp_path: Path) -> None:
    job = TrainingJob(4)
    job.slow_ranks[2] = 1.4
    paths = job.write(tmp_path)
    _, outcomes = read_ranks(paths[:1])
    (row,) = analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)]).job.bandwidth
    assert (row.without_waiting, row.link_bytes_per_s) == (False, None)
    assert row.time_us > 5_000


def test_arrivals_and_waits_are_those_that_a_plain_count_gives(tmp_path: Path) -> None:
    job = TrainingJob(3)
    job.slow_ranks = {1: 1.2, 2: 1.35}
    calls = [
        [(event["ts"], event["ts"] + event["dur"]) for event in events if "nccl" in event["name"]]
        for events in job.events()
    ]
    kernels = [
        [(event["ts"], event["ts"] + event["dur"]) for event in events if "gemm" in event["name"]]
        for events in job.events()
    ]
    summary = job_of(job, tmp_path)
    (row,) = summary.collectives
    arrivals = [[begin for begin, _ in one] for one in zip(*calls, strict=True)]
    spreads = [max(one) - min(one) for one in arrivals]
    assert row.spread_mean_us == pytest.approx(sum(spreads) / len(spreads), rel=1e-4)
    assert row.spread_max_us == pytest.approx(max(spreads), rel=1e-4)

    def idle(rank: int, since: float, end: float) -> float:
        computing = [max(min(end, until) - max(since, start), 0.0) for start, until in kernels[rank]]
        return float(end - since - sum(computing))

    for rank in range(3):
        waited = sum(
            idle(rank, end - (max(arrived) - begin), end)
            for (begin, end), arrived in zip(calls[rank], arrivals, strict=True)
        )
        assert summary.waits[rank].waited_ns / 1000 == pytest.approx(waited, rel=1e-3, abs=1)
    # Rank 2 is always last: only what it is later than the last but one is waited for it alone.
    kept = [
        sum(
            idle(rank, end - (max(arrived) - sorted(arrived)[-2]), end)
            for (_, end), arrived in zip(calls[rank], arrivals, strict=True)
        )
        for rank in (0, 1)
    ]
    assert summary.waits[2].kept_waiting_ns / 1000 == pytest.approx(sum(kept) / 2, rel=1e-3, abs=1)
    assert summary.waits[0].kept_waiting_ns == summary.waits[1].kept_waiting_ns == 0


def test_arrivals_are_matched_though_a_recording_begins_one_step_later(tmp_path: Path) -> None:
    """Without sequence numbers: by the ends, on clocks that differ."""
    job = TrainingJob(3)
    job.clock_us = {1: 3_000.0}
    job.slow_ranks[2] = 1.3
    paths = job.write(tmp_path)
    late = Path(paths[1])
    document = json.loads(late.read_text())
    collectives = [event for event in document["traceEvents"] if "nccl" in event["name"]]
    document["traceEvents"] = [event for event in document["traceEvents"] if event["ts"] > collectives[0]["ts"]]
    late.write_text(json.dumps(document))
    _, outcomes = read_ranks(paths)
    summary = analyse([outcome for outcome in outcomes if isinstance(outcome, RankResult)]).job
    assert round(summary.clocks[1].offset_ns / 1e3) == 3_000
    (row,) = summary.collectives
    assert (row.count, row.ranks) == (9, [0, 1, 2])
    assert (row.often_last_rank, row.often_last_share) == (2, 1.0)


def test_a_rank_without_a_common_clock_is_left_out_and_named(tmp_path: Path) -> None:
    job = TrainingJob(3, steps=2)  # fewer collectives than a clock needs
    summary = job_of(job, tmp_path)
    assert [clock.source for clock in summary.clocks] == ["first", "", ""]
    assert any("nothing tells the clock of ranks 1-2" in note for note in summary.notes)


def test_links_are_known_by_the_name_of_the_device_or_not_at_all() -> None:
    assert link_bytes_per_s("NVIDIA A100-SXM4-80GB") == 300e9
    assert link_bytes_per_s("NVIDIA H100 80GB HBM3") == link_bytes_per_s("NVIDIA H200") == 450e9
    assert link_bytes_per_s("NVIDIA H100 PCIe") is None
    assert link_bytes_per_s("Tesla T4") is None
