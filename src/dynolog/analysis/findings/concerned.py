"""Ranks that have the same thing in common, and the one finding that this makes."""

import statistics
from collections.abc import Sequence

import msgspec

from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.rank.rank_summary import DeviceSummary, RankSummary
from dynolog.analysis.wording import pct


class Concerned(msgspec.Struct, frozen=True):
    """A rank that has something, the share of its time, and the device it is about."""

    rank: RankSummary
    share: float
    device: DeviceSummary | None


def gain(rank: RankSummary, share: float) -> tuple[float, str]:
    """A share of a rank's time as ns of a step, or of the recording where steps are unknown."""
    if rank.step_ns:
        return share * rank.step_ns, "step"
    return share * (rank.main.split.span_ns if rank.main else rank.span_ns), "recording"


def job_gain(ranks: Sequence[RankSummary], share: float) -> tuple[float, str]:
    """The same of a job: by the first rank, as long as its recording is where steps are unknown."""
    first = ranks[0]
    return gain(first, share) if first.step_ns else (share * first.span_ns, "recording")


def finding(kind: str, concerned: list[Concerned], title: str, evidence: list[str], advice: list[str]) -> Finding:
    """One finding of all ranks that have the same; what it wins is the mean of what it wins on each."""
    gains = [gain(one.rank, one.share) for one in concerned]
    return Finding(
        kind=kind,
        title=title,
        gain_ns=statistics.mean(value for value, _ in gains),
        per=gains[0][1],
        share=statistics.mean(one.share for one in concerned),
        ranks=[one.rank.rank for one in concerned],
        evidence=evidence,
        advice=advice,
    )


def most_of(concerned: list[Concerned]) -> Concerned:
    """The rank with the largest share."""
    return max(concerned, key=lambda one: one.share)


def mean_share(concerned: list[Concerned]) -> str:
    """The mean of their shares, in words."""
    return pct(statistics.mean(one.share for one in concerned))
