"""What stands out between ranks: one that all wait for, ranks that take turns, and ranks that run other kernels."""

import statistics
from collections.abc import Sequence

from dynolog.analysis.findings.concerned import job_gain
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.findings.slow_findings import slow_findings
from dynolog.analysis.job.job_summary import JobSummary
from dynolog.analysis.job.kernel_differences import DifferingKernel
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.wording import ms, pct, rank_list, short

_IMBALANCE_SHARE = 0.10
_DIFFERENCE_SHARE = 0.01  # of a rank's kernel time
_ALIKE = 0.05  # how much the time that ranks compute in a step differs, of its mean


def job_findings(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    """All between ranks."""
    slow = slow_findings(job, ranks)
    found = [*slow, *_differing(job.differing, ranks)]
    if not slow:
        found += _imbalance(job, ranks)
    return found


def _imbalance(job: JobSummary, ranks: Sequence[RankSummary]) -> list[Finding]:
    waits = [wait for wait in job.waits if wait.collectives]
    if not waits or not job.compared_ns:
        return []
    share = statistics.mean(wait.waited_ns for wait in waits) / job.compared_ns
    if share < _IMBALANCE_SHARE:
        return []
    value, per = job_gain(ranks, share)
    worst = max(waits, key=lambda wait: wait.waited_ns)
    evidence = [f"rank {worst.rank} waits longest: {ms(worst.waited_ns)}"]
    advice = ["balance what ranks get: lengths of sequences, shards of tables, stages of a pipeline"]
    if (differs := _computing_differs(ranks)) is not None:
        evidence.append(f"in a step the time that ranks compute differs by {pct(differs)} of its mean")
        if differs < _ALIKE:
            advice = [
                (
                    "ranks compute alike, so their hosts are late, one after the other: collect garbage by hand in the same step on all "
                    "ranks (`gc.disable()`, `gc.collect()`); logging, checkpoints, data loaders"
                )
            ]
    return [
        Finding(
            kind="imbalance",
            title=f"Ranks wait for each other {pct(share)} of the time, now for one, now for another",
            gain_ns=value,
            per=per,
            share=share,
            ranks=[wait.rank for wait in waits],
            evidence=evidence,
            advice=advice,
        )
    ]


def _computing_differs(ranks: Sequence[RankSummary]) -> float | None:
    """From the least to the most that ranks compute in a step, as a share of their mean; the mean over steps. None without steps."""
    by_step: dict[int, list[int]] = {}
    for rank in ranks:
        for step in rank.steps.whole:
            by_step.setdefault(step.number, []).append(step.compute_ns)
    shares = [
        (max(times) - min(times)) / statistics.mean(times)
        for times in by_step.values()
        if len(times) > 1 and any(times)
    ]
    return statistics.mean(shares) if shares else None


def _differing(rows: Sequence[DifferingKernel], ranks: Sequence[RankSummary]) -> list[Finding]:
    """The ranks that differ are those of the smaller side of each kernel; one finding for each set of them."""
    totals = {rank.rank: sum(row.total_us for row in rank.kernels) for rank in ranks}
    sides: dict[tuple[int, ...], list[DifferingKernel]] = {}
    for row in rows:
        few = row.ranks if len(row.ranks) <= len(row.without) else row.without
        sides.setdefault(tuple(few), []).append(row)
    found = []
    for differing, kernels in sides.items():
        own_us, usual_us = (
            sum(row.mean_us for row in kernels if list(differing) == side(row)) for side in (_with, _without)
        )
        whole_us = max(statistics.mean(totals[rank.rank] for rank in ranks if rank.kernels), 1e-9)
        time_share = max(own_us, usual_us) / whole_us
        if time_share < _DIFFERENCE_SHARE:
            continue
        # What one side runs instead of the other's takes time as well: only the difference can be won.
        share = abs(own_us - usual_us) / whole_us
        value, per = job_gain(ranks, share)
        found.append(
            Finding(
                kind="differing_kernels",
                title=f"Other kernels on {rank_list(differing)} than on the rest: {pct(time_share)} of the kernel time",
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
