"""What `dyno analyze` prints: findings in words, then tables."""

from collections.abc import Iterator, Sequence

from dynolog.analysis.analysis import Analysis
from dynolog.analysis.findings.finding import Finding, concerned
from dynolog.analysis.wording import ms, pct, rank_list
from dynolog.cli.analyze.changes import comparison_tables
from dynolog.cli.analyze.job import job_tables
from dynolog.cli.analyze.layout import width, wrapped
from dynolog.cli.analyze.ranks import splits, steps, tops
from dynolog.cli.table import fit

_MOST_NOTES = 20


def lines(analysis: Analysis) -> Iterator[str]:
    """The report, line by line."""
    yield from _heading(analysis)
    yield ""
    yield from finding_lines(analysis.findings, len(analysis.ranks))
    for part in (
        splits(analysis.ranks),
        steps(analysis.ranks),
        job_tables(analysis.job, width(), alone=len(analysis.ranks) == 1),
        comparison_tables(analysis.comparison) if analysis.comparison else [],
        tops(analysis.ranks),
    ):
        for text in part:
            yield ""
            yield from (fit(line, width()) for line in text.split("\n"))
    notes = list(analysis.notes) + [
        note if len(analysis.ranks) == 1 else f"rank {rank.rank}: {note}"
        for rank in analysis.ranks
        for note in rank.notes
    ]
    if notes:
        yield ""
        for note in notes[:_MOST_NOTES]:
            yield from wrapped(f"note: {note}", "      ")
        if len(notes) > _MOST_NOTES:
            yield f"note: {len(notes) - _MOST_NOTES} more; --json has them all"


def _heading(analysis: Analysis) -> Iterator[str]:
    first = analysis.ranks[0]
    device = f", {first.device_name}" if first.device_name else ""
    world = f" of {first.world_size}" if first.world_size else ""
    events = sum(rank.events for rank in analysis.ranks)
    ranks = rank_list([rank.rank for rank in analysis.ranks])
    yield f"{ranks.capitalize()}{world}{device}: {events:,} events in {ms(max(rank.span_ns for rank in analysis.ranks))}"
    steps = first.steps
    if steps.median_ns is not None:
        yield f"{len(steps.steps)} steps (from {_SOURCES[steps.source]}), the median lasts {ms(steps.median_ns)}"
    elif steps.steps:
        yield "no whole step: times are for the recording"
    else:
        yield "steps are unknown (no ProfilerStep, no optimizer step): times are for the recording"


_SOURCES = {"ProfilerStep": "the profiler's marks", "optimizer": "the optimizer's steps"}


def finding_lines(findings: Sequence[Finding], ranks: int) -> Iterator[str]:
    """Numbered, the most to win first."""
    if not findings:
        yield "Nothing stands out."
        return
    yield "FINDINGS, the most to win first"
    for number, finding in enumerate(findings, 1):
        whose = concerned(finding, ranks)
        yield from wrapped(f"{number:2}. {finding.title}{whose}", "    ")
        yield f"    to win: up to {ms(finding.gain_ns)} a {finding.per} ({pct(finding.share)})"
        for evidence in finding.evidence:
            yield from wrapped(f"    - {evidence}", "      ")
        for advice in finding.advice:
            yield from wrapped(f"    > {advice}", "      ")
