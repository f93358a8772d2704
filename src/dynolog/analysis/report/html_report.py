"""The answer as one HTML file that needs no network: findings, charts, tables. It follows the browser's light or dark theme."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from dynolog.analysis.analysis import Analysis
from dynolog.analysis.findings.finding import Finding, concerned
from dynolog.analysis.job.job_summary import JobSummary
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.rank.time_split import TimeSplit
from dynolog.analysis.report.html_style import STYLE
from dynolog.analysis.report.svg_charts import Part, grouped_bars, stacked_bars
from dynolog.analysis.wording import ms, pct, rank_list, rate, short

_MOST_RANKS = 64
_MOST_STEPS = 200
_MOST_RANKS_IN_STEPS = 8
_TOP = 25
_LONG = 90

# Class, what it is, and the part of a device's time.
_PARTS: tuple[tuple[str, str, Callable[[TimeSplit], int]], ...] = (
    ("compute", "computing", lambda split: split.compute_ns),
    ("communication", "communication, exposed", lambda split: split.exposed_communication_ns),
    ("memory", "copies", lambda split: split.exposed_memory_ns),
    ("launch", "idle: launch-bound", lambda split: split.idle.launch_ns),
    ("cpu", "idle: CPU", lambda split: split.idle.cpu_ns),
    ("loader", "idle: data loader", lambda split: split.idle.data_loader_ns),
    ("ranks", "idle: other ranks", lambda split: split.idle.other_ranks_ns),
    ("other", "idle: other", lambda split: split.idle.queued_ns + split.idle.unknown_ns),
)


def write_html(analysis: Analysis, path: str) -> None:
    """Write the page; it is in place when it is whole. Raises OSError."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        with open(partial, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(page(analysis))
        os.replace(partial, path)
    except OSError:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def page(analysis: Analysis) -> str:
    """The whole document."""
    first = analysis.ranks[0]
    ranks = rank_list([rank.rank for rank in analysis.ranks]).capitalize()
    title = f"{ranks}{f' of {first.world_size}' if first.world_size else ''}"
    about = [first.device_name, f"{sum(rank.events for rank in analysis.ranks):,} events", ms(first.span_ns)]
    if first.steps.median_ns:
        about.append(f"{len(first.steps.steps)} steps, the median lasts {ms(first.steps.median_ns)}")
    parts = [
        f"<h1>{escape(title)}</h1><p class=quiet>{escape(', '.join(filter(None, about)))}</p>",
        _findings(analysis.findings, len(analysis.ranks)),
        *_splits(analysis.ranks),
        *_overlap(analysis.ranks),
        *_steps(analysis.ranks),
        *(_job(analysis.job) if len(analysis.ranks) > 1 else ()),
        *_comparison(analysis),
        *_tables(analysis.ranks),
        _notes(analysis),
    ]
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}: dyno analyze</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head><body><main>"
    )
    return head + "\n".join(parts) + "</main></body></html>\n"


def _findings(findings: Sequence[Finding], ranks: int) -> str:
    if not findings:
        return "<section id=findings><h2>Nothing stands out</h2></section>"
    items = []
    for finding in findings:
        whose = concerned(finding, ranks)
        evidence = "".join(f"<li>{escape(text)}</li>" for text in finding.evidence)
        advice = "".join(f"<li class=advice>{escape(text)}</li>" for text in finding.advice)
        items.append(
            f"<li><b>{escape(finding.title + whose)}</b><p class=win>to win: up to {ms(finding.gain_ns)} a {finding.per} "
            f"({pct(finding.share)})</p><ul>{evidence}{advice}</ul></li>"
        )
    return f"<section id=findings><h2>Findings, the most to win first</h2><ol>{''.join(items)}</ol></section>"


def _chart(name: str, title: str, legend: Iterable[tuple[str, str]], svg: str) -> str:
    keys = "".join(f'<span><i class="{css}"></i>{escape(text)}</span>' for css, text in legend)
    return f'<section id="{name}" class=chart><h2>{escape(title)}</h2><p class=legend>{keys}</p>{svg}</section>'


def _splits(ranks: Sequence[RankSummary]) -> Iterator[str]:
    bars = []
    for rank in ranks[:_MOST_RANKS]:
        if rank.main is not None:
            split = rank.main.split
            whole = max(split.span_ns, 1)
            parts = [
                Part(css, of(split), f"rank {rank.rank}: {what} {ms(of(split))}, {pct(of(split) / whole)}")
                for css, what, of in _PARTS
            ]
            bars.append((f"rank {rank.rank}", parts))
    if bars:
        legend = [(css, what) for css, what, _ in _PARTS]
        yield _chart("split", "Time of the GPU", legend, stacked_bars(bars, ms))


def _overlap(ranks: Sequence[RankSummary]) -> Iterator[str]:
    bars = []
    for rank in ranks[:_MOST_RANKS]:
        if rank.main is not None and (split := rank.main.split).communication_ns:
            hidden, exposed = split.overlapped_communication_ns, split.exposed_communication_ns
            parts = [
                Part("compute", hidden, f"rank {rank.rank}: {ms(hidden)} behind computing"),
                Part("communication", exposed, f"rank {rank.rank}: {ms(exposed)} exposed"),
            ]
            bars.append((f"rank {rank.rank}", parts))
    if bars:
        legend = [("compute", "hidden behind computing"), ("communication", "exposed")]
        yield _chart("overlap", "Communication", legend, stacked_bars(bars, ms))


def _steps(ranks: Sequence[RankSummary]) -> Iterator[str]:
    shown = [rank for rank in ranks if rank.steps.steps][:_MOST_RANKS_IN_STEPS]
    if not shown:
        return
    numbers = sorted({step.number for rank in shown for step in rank.steps.steps})[:_MOST_STEPS]
    times = [{step.number: step.duration_ns / 1e6 for step in rank.steps.steps} for rank in shown]
    groups = [
        (
            str(number),
            [
                Part(
                    f"series{i}",
                    table.get(number, 0.0),
                    f"rank {rank.rank}, step {number}: {table.get(number, 0.0):,.3f} ms",
                )
                for i, (rank, table) in enumerate(zip(shown, times, strict=True))
            ],
        )
        for number in numbers
    ]
    legend = [(f"series{i}", f"rank {rank.rank}") for i, rank in enumerate(shown)]
    yield _chart("steps", "Time of each step", legend, grouped_bars(groups, "ms"))


def _job(job: JobSummary) -> Iterator[str]:
    bars = [
        (
            f"rank {wait.rank}",
            [
                Part(
                    "cpu",
                    wait.kept_waiting_ns,
                    f"all others wait {ms(wait.kept_waiting_ns)} for rank {wait.rank} alone",
                ),
                Part("ranks", wait.waited_ns, f"rank {wait.rank} waits {ms(wait.waited_ns)} for others"),
            ],
        )
        for wait in job.waits[:_MOST_RANKS]
    ]
    if any(part.value for _, parts in bars for part in parts):
        legend = [("cpu", "all others wait for it"), ("ranks", "it waits for others")]
        yield _chart("waits", "Who waits for whom in collectives", legend, stacked_bars(bars, ms))
    if job.bandwidth:
        yield table(
            "Collectives by size",
            ("kind", "bytes", "ranks", "count", "time", "algorithm", "bus"),
            [
                (
                    row.kind,
                    f"{row.size_bytes:,}",
                    str(row.group_size),
                    str(row.count),
                    ms(row.time_us * 1e3),
                    rate(row.algorithm_bytes_per_s),
                    rate(row.bus_bytes_per_s),
                )
                for row in job.bandwidth[:_TOP]
            ],
        )


def _comparison(analysis: Analysis) -> Iterator[str]:
    comparison = analysis.comparison
    if comparison is None:
        return
    changed = [row for row in (*comparison.kernels, *comparison.operators) if row.verdict != "same"]
    yield table(
        f"What changed, per {comparison.unit}",
        ("name", "of", "what", "before", "now", "sure"),
        [
            (row.name, row.what, row.verdict, ms(row.before_us * 1e3), ms(row.after_us * 1e3), row.sure)
            for row in changed[:_TOP]
        ],
    )


def _tables(ranks: Sequence[RankSummary]) -> Iterator[str]:
    rank = ranks[0]
    of = f" (rank {rank.rank})" if len(ranks) > 1 else ""
    yield table(
        f"Kernels{of}",
        ("kernel", "calls", "total", "share", "mean", "p99"),
        [
            (
                row.name,
                f"{row.count:,}",
                ms(row.total_us * 1e3),
                pct(row.share),
                f"{row.mean_us:,.1f} µs",
                f"{row.p99_us:,.1f} µs",
            )
            for row in rank.kernels[:_TOP]
        ],
    )
    yield table(
        f"Operators{of}",
        ("operator", "calls", "host", "self", "GPU"),
        [
            (row.name, f"{row.count:,}", *(ms(us * 1e3) for us in (row.host_us, row.self_us, row.device_us)))
            for row in rank.operators[:_TOP]
        ],
    )


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table under its title; nothing without rows."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<section><h2>{escape(title)}</h2><div class=scroll><table><tr>{head}</tr>{body}</table></div></section>"


def _cell(text: str) -> str:
    """A long name without its middle; all of it when a pointer rests on it."""
    if len(text) <= _LONG:
        return f"<td>{escape(text)}</td>"
    return f'<td title="{escape(text)}">{escape(short(text, _LONG))}</td>'


def _notes(analysis: Analysis) -> str:
    notes = [*analysis.notes, *(f"rank {rank.rank}: {note}" for rank in analysis.ranks for note in rank.notes)]
    items = "".join(f"<li>{escape(note)}</li>" for note in notes[:50])
    return f"<section><h2>Notes</h2><ul>{items}</ul></section>" if items else ""
