"""The whole answer: ranks, the job that they are, a comparison when one is asked for, and what stands out, first."""

from collections.abc import Sequence

import msgspec

from dynolog.analysis.findings.communication_findings import communication_findings
from dynolog.analysis.findings.comparison_findings import comparison_findings
from dynolog.analysis.findings.finding import Finding, ranked
from dynolog.analysis.findings.job_findings import job_findings
from dynolog.analysis.findings.rank_findings import rank_findings
from dynolog.analysis.findings.slow_findings import SLOW, WAITING
from dynolog.analysis.job.comparing import Comparison, compare
from dynolog.analysis.job.job_summary import JobSummary, summarise_job
from dynolog.analysis.rank.rank_summary import RankResult, RankSummary
from dynolog.analysis.wording import rank_list


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """What `dyno analyze --json` prints. `notes` say what was left out and what to beware of."""

    findings: list[Finding]
    ranks: list[RankSummary]
    job: JobSummary
    comparison: Comparison | None
    notes: list[str]


def analyse(results: Sequence[RankResult], against: Sequence[RankResult] = (), notes: Sequence[str] = ()) -> Analysis:
    """`results` are of one job, at least one; `against` an earlier recording to compare with."""
    results = sorted(results, key=lambda result: result.summary.rank)
    ranks = [result.summary for result in results]
    job = summarise_job(results)
    between = job_findings(job, ranks)
    slow = [rank for finding in between if finding.kind in SLOW for rank in finding.ranks]
    findings = _merged(between, rank_findings(ranks)) + communication_findings(job, ranks, slow)
    comparison = compare(against, results) if against else None
    if comparison is not None:
        waits_explained = any(finding.kind in WAITING for finding in between)
        findings += comparison_findings(comparison, ranks, waits_explained=waits_explained)
    return Analysis(findings=ranked(findings), ranks=ranks, job=job, comparison=comparison, notes=[*notes, *job.notes])


def _merged(between: list[Finding], single: list[Finding]) -> list[Finding]:
    """What only the slow ranks have is why they are slow: evidence of that finding, not one of its own."""
    slow = next((finding for finding in between if finding.kind in SLOW), None)
    if slow is None:
        return between + single
    why = [finding for finding in single if finding.ranks == slow.ranks]
    merged = msgspec.structs.replace(
        slow,
        evidence=slow.evidence + [f"only {rank_list(slow.ranks)}: {finding.title}" for finding in why],
        advice=[advice for finding in why for advice in finding.advice] + slow.advice,
    )
    return [
        *(merged if finding is slow else finding for finding in between),
        *(finding for finding in single if finding not in why),
    ]
