"""What stands out between ranks: one that all wait for, ranks that take turns, and ranks that run other kernels."""

import statistics
from collections.abc import Sequence

from dynolog.analysis.concerned import gain
from dynolog.analysis.finding import Finding
from dynolog.analysis.job_summary import JobSummary
from dynolog.analysis.kernel_differences import DifferingKernel
from dynolog.analysis.rank_summary import RankSummary
from dynolog.analysis.rank_waits import RankWait
from dynolog.analysis.wording import ms, pct, rank_list, short

_SLOW_RANK_SHARE = 0.05  # of the recording
_MAINLY = 0.6  # of all waiting for single ranks
_IMBALANCE_SHARE = 0.10
_DIFFERENCE_SHARE = 0.01  # of a rank's kernel time
_MORE = 1.05


def job_findings(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    """All between ranks."""
    slow = _slow_rank(job, ranks)
    found = [*slow, *_differing(job.differing, ranks)]
    if not slow:
        found += _imbalance(job, ranks)
    return found


def _slow_rank(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    kept = sum(wait.kept_waiting_ns for wait in job.waits)
    worst = max(job.waits, key=lambda wait: wait.kept_waiting_ns, default=None)
    host = _slow_host(job, ranks)
    if host is not None and (worst is None or host.share * job.compared_ns > worst.kept_waiting_ns * 1.1):
        return [host] if host.share >= _SLOW_RANK_SHARE else []
    if worst is None or not job.compared_ns:
        return []
    share = worst.kept_waiting_ns / job.compared_ns
    if share < _SLOW_RANK_SHARE or worst.kept_waiting_ns < _MAINLY * kept:
        return []
    value, per = _gain(ranks, share)
    where = f" on {worst.host}" if worst.host else ""
    return [
        Finding(
            kind="slow_rank",
            title=f"Rank {worst.rank}{where} is slow: all others wait for it {pct(share)} of the time",
            gain_ns=value,
            per=per,
            share=share,
            ranks=[worst.rank],
            evidence=_evidence(job, worst, ranks),
            advice=[
                "if it computes longer at the same work: its clocks, heat, power and ECC (`dyno gpus`), then move the job off it",
                "if it has more work: balance the data; if its host is late: what else runs there (`dyno status`, `dyno watch`)",
            ],
        )
    ]


def _slow_host(job: JobSummary, ranks: Sequence[RankSummary]) -> Finding | None:
    several = [host for host in job.hosts if len(host.ranks) > 1]
    kept = sum(host.kept_waiting_ns for host in job.hosts)
    worst = max(several, key=lambda host: host.kept_waiting_ns, default=None)
    if worst is None or not job.compared_ns or worst.kept_waiting_ns < _MAINLY * kept:
        return None
    share = worst.kept_waiting_ns / job.compared_ns
    value, per = _gain(ranks, share)
    return Finding(
        kind="slow_host",
        title=f"Host {worst.host} is slow: all other hosts wait for its ranks {pct(share)} of the time",
        gain_ns=value,
        per=per,
        share=share,
        ranks=worst.ranks,
        evidence=[f"{rank_list(worst.ranks)} arrive last in collectives, one or the other"],
        advice=["look at the host: other processes, clocks, memory, its network (`dyno status`, `dyno watch`)"],
    )


def _gain(ranks: Sequence[RankSummary], share: float) -> tuple[float, str]:
    first = ranks[0]
    return gain(first, share) if first.steps.median_ns else (share * first.span_ns, "recording")


def _evidence(job: JobSummary, worst: RankWait, ranks: Sequence[RankSummary]) -> list[str]:
    evidence = [f"last to arrive in {worst.last} of {worst.collectives} collectives"]
    steps = [step for step in job.slowest if step.rank == worst.rank]
    if steps:
        mean = statistics.mean(step.kept_waiting_ns for step in steps)
        evidence.append(f"slowest in {len(steps)} of {len(job.slowest)} steps, by {ms(mean)} on average")
    slow = next(rank for rank in ranks if rank.rank == worst.rank)
    others = [rank for rank in ranks if rank.rank != worst.rank]
    return evidence + _longer_kernels(slow, others) + _longer_host(slow, others)


def _longer_kernels(slow: RankSummary, others: Sequence[RankSummary]) -> list[str]:
    splits = [rank.main.split for rank in others if rank.main]
    if slow.main is None or not splits:
        return []
    usual = statistics.median(split.compute_ns for split in splits)
    if slow.main.split.compute_ns < _MORE * usual:
        return [
            f"it computes no longer than the others ({ms(slow.main.split.compute_ns)}, they {ms(usual)}): its host is late"
        ]
    lines = [f"it computes {ms(slow.main.split.compute_ns)}, the others {ms(usual)}"]
    theirs = [{row.name: row.total_us for row in rank.kernels} for rank in others]
    excess = [
        (row.total_us - statistics.median(table.get(row.name, 0.0) for table in theirs), row)
        for row in slow.kernels
        if "ccl" not in row.name.lower()
    ]
    longer = sorted((pair for pair in excess if pair[0] > 0), key=lambda pair: -pair[0])[:2]
    return lines + [f"{short(row.name)}: {ms(more * 1000)} more than on the others" for more, row in longer]


def _longer_host(slow: RankSummary, others: Sequence[RankSummary]) -> list[str]:
    if slow.main is not None:
        return []
    usual = statistics.median(sum(row.self_us for row in rank.operators) for rank in others)
    own = sum(row.self_us for row in slow.operators)
    return (
        [f"its operators take {ms(own * 1000)} of the host, those of the others {ms(usual * 1000)}"]
        if own > usual
        else []
    )


def _imbalance(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    waits = [wait for wait in job.waits if wait.collectives]
    if not waits or not job.compared_ns:
        return []
    share = statistics.mean(wait.waited_ns for wait in waits) / job.compared_ns
    if share < _IMBALANCE_SHARE:
        return []
    value, per = _gain(ranks, share)
    worst = max(waits, key=lambda wait: wait.waited_ns)
    return [
        Finding(
            kind="imbalance",
            title=f"Ranks wait for each other {pct(share)} of the time, now for one, now for another",
            gain_ns=value,
            per=per,
            share=share,
            ranks=[wait.rank for wait in waits],
            evidence=[f"rank {worst.rank} waits longest: {ms(worst.waited_ns)}"],
            advice=["balance what ranks get: lengths of sequences, shards of tables, stages of a pipeline"],
        )
    ]


def _differing(rows: Sequence[DifferingKernel], ranks: Sequence[RankSummary]) -> list[Finding]:
    """The ranks that differ are those of the smaller side of each kernel; one finding for each set of them."""
    totals = {rank.rank: sum(row.total_us for row in rank.kernels) for rank in ranks}
    sides: dict[tuple[int, ...], list[DifferingKernel]] = {}
    for row in rows:
        few = row.ranks if len(row.ranks) <= len(row.without) else row.without
        sides.setdefault(tuple(few), []).append(row)
    found = []
    for differing, kernels in sides.items():
        # Either these ranks run what the others do not, or the others do.
        time_us = max(sum(row.mean_us for row in kernels if list(differing) == side(row)) for side in (_with, _without))
        share = time_us / max(statistics.mean(totals[rank.rank] for rank in ranks if rank.kernels), 1e-9)
        if share < _DIFFERENCE_SHARE:
            continue
        value, per = _gain(ranks, share)
        found.append(
            Finding(
                kind="differing_kernels",
                title=f"Other kernels on {rank_list(differing)} than on the rest: {pct(share)} of the kernel time",
                gain_ns=value,
                per=per,
                share=share,
                ranks=list(differing),
                evidence=[
                    f"{short(row.name)}: {ms(row.mean_us * 1000)}, only on {rank_list(row.ranks)}"
                    for row in kernels[:4]
                ],
                advice=[
                    (
                        "right for stages of a pipeline and for expert or data-dependent work; else look for other versions, shapes, "
                        "precisions, or a fallback that one rank took (autotuning chooses for each rank on its own)"
                    )
                ],
            )
        )
    return found


def _with(row: DifferingKernel) -> list[int]:
    return row.ranks


def _without(row: DifferingKernel) -> list[int]:
    return row.without
