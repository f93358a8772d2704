"""What `dyno analyze` prints: findings in words, then tables."""

import statistics
import textwrap
from collections.abc import Iterator, Sequence

from dynolog.analysis.analysis import Analysis
from dynolog.analysis.comparing import Change, Comparison
from dynolog.analysis.finding import Finding, concerned
from dynolog.analysis.rank_summary import DeviceSummary, RankSummary
from dynolog.analysis.wording import ms, pct, rank_list, rate, short
from dynolog.cli.analyze_job import job_tables
from dynolog.cli.table import fit, table, terminal_columns

_WIDTH = 100
_TOP = 10
_NAME = 42
_MOST_RANKS = 32


def width() -> int:
    """Of the terminal, between 80 and 120 columns; 100 where there is none."""
    columns = terminal_columns()
    return _WIDTH if columns is None else min(max(columns, 80), 120)


def lines(analysis: Analysis) -> Iterator[str]:
    """The report, line by line."""
    yield from _heading(analysis)
    yield ""
    yield from finding_lines(analysis.findings, len(analysis.ranks))
    for part in (
        _splits(analysis.ranks),
        _steps(analysis.ranks),
        job_tables(analysis.job, width()) if len(analysis.ranks) > 1 else job_tables(analysis.job, width(), alone=True),
        comparison_tables(analysis.comparison) if analysis.comparison else [],
        _tops(analysis.ranks),
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
        for note in notes[:20]:
            yield from wrapped(f"note: {note}", "      ")
        if len(notes) > 20:
            yield f"note: {len(notes) - 20} more; --json has them all"


def wrapped(text: str, indent: str) -> list[str]:
    """Lines that fit, the following ones indented."""
    return textwrap.wrap(text, width(), subsequent_indent=indent, break_long_words=False) or [text]


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


def _splits(ranks: Sequence[RankSummary]) -> Iterator[str]:
    """A line a device: the parts of its time."""
    header = (
        "RANK",
        "GPU",
        "TIME",
        "COMPUTE",
        "COMM.",
        "HIDDEN",
        "COPIES",
        "IDLE",
        "launch",
        "CPU",
        "data",
        "ranks",
        "other",
    )
    rows = [_split(rank, device) for rank in ranks[:_MOST_RANKS] for device in rank.devices]
    if rows:
        yield "Time of the GPU (COMM. is exposed, HIDDEN is behind computing; then why it is idle)\n" + table(
            header, rows, right=range(len(header))
        )
    elif any(rank.operators for rank in ranks):
        yield "No GPU work in the trace: operators of the CPU only"


def _split(rank: RankSummary, device: DeviceSummary) -> tuple[str, ...]:
    split = device.split
    idle = split.idle
    whole = max(split.span_ns, 1)
    parts = (
        split.compute_ns,
        split.exposed_communication_ns,
        split.overlapped_communication_ns,
        split.exposed_memory_ns,
        idle.total_ns,
        idle.launch_ns,
        idle.cpu_ns,
        idle.data_loader_ns,
        idle.other_ranks_ns,
        idle.queued_ns + idle.unknown_ns,
    )
    number = "-" if split.device is None else str(split.device)
    return (str(rank.rank), number, ms(split.span_ns), *(pct(part / whole) for part in parts))


def _steps(ranks: Sequence[RankSummary]) -> Iterator[str]:
    rows = []
    for rank in ranks[:_MOST_RANKS]:
        steps = rank.steps
        if steps.median_ns is None or steps.min_ns is None or steps.max_ns is None:
            continue
        compute = statistics.median(step.compute_ns for step in steps.whole)
        spread = "-" if steps.stdev_ns is None else pct(steps.stdev_ns / steps.median_ns)
        times = (steps.min_ns, steps.median_ns, steps.max_ns)
        computing = ms(compute) if rank.devices else "-"
        rows.append((str(rank.rank), str(len(steps.whole)), *map(ms, times), spread, computing))
    if rows:
        yield "Steps\n" + table(
            ("RANK", "WHOLE", "SHORTEST", "MEDIAN", "LONGEST", "STD. DEV.", "COMPUTING"), rows, right=range(7)
        )


def _tops(ranks: Sequence[RankSummary]) -> Iterator[str]:
    """Kernels, operators, modules, copies and launches of the first rank: the others are in --json."""
    rank = ranks[0]
    of = f" (rank {rank.rank})" if len(ranks) > 1 else ""
    if rank.kernels:
        yield f"Kernels{of}\n" + table(
            ("KERNEL", "CALLS", "TOTAL", "SHARE", "MEAN", "P99"),
            [
                (
                    short(row.name, _NAME),
                    f"{row.count:,}",
                    ms(row.total_us * 1e3),
                    pct(row.share),
                    *_mean_p99(row.mean_us, row.p99_us),
                )
                for row in rank.kernels[:_TOP]
            ],
            right=range(1, 6),
        )
    if rank.operators:
        yield (
            f"Operators{of}: the host's time with and without what they call{', GPU is what they launch' if rank.kernels else ''}\n"
            + (_operators(rank))
        )
    if rank.modules:
        yield f"Modules{of}\n" + table(
            ("MODULE", "LAUNCHES", "GPU"),
            [(short(row.name, _NAME), f"{row.launches:,}", ms(row.device_us * 1e3)) for row in rank.modules[:_TOP]],
            right=(1, 2),
        )
    if rank.main is not None:
        yield from _device_tables(rank.main, of)


def _operators(rank: RankSummary) -> str:
    gpu = bool(rank.kernels)
    rows = [
        (
            short(row.name, _NAME),
            f"{row.count:,}",
            ms(row.host_us * 1e3),
            ms(row.self_us * 1e3),
            *((ms(row.device_us * 1e3),) if gpu else ()),
            f"{row.mean_us:,.1f} µs",
            f"{row.p99_us:,.1f} µs",
        )
        for row in rank.operators[:_TOP]
    ]
    header = ("OPERATOR", "CALLS", "HOST", "SELF", *(("GPU",) if gpu else ()), "MEAN", "P99")
    return table(header, rows, right=range(1, len(header)))


def _mean_p99(mean_us: float, p99_us: float) -> tuple[str, str]:
    return f"{mean_us:,.1f} µs", f"{p99_us:,.1f} µs"


def _device_tables(device: DeviceSummary, of: str) -> Iterator[str]:
    if device.copies:
        yield f"Copies and sets{of}\n" + table(
            ("KIND", "COUNT", "TIME", "ALONE", "BYTES", "RATE"),
            [
                (
                    row.kind,
                    f"{row.count:,}",
                    ms(row.total_us * 1e3),
                    ms(row.exposed_us * 1e3),
                    "-" if row.bytes is None else f"{row.bytes:,}",
                    "-" if row.bytes_per_s is None else rate(row.bytes_per_s),
                )
                for row in device.copies
            ],
            right=range(1, 6),
        )
    if facts := device.launches:
        yield (
            f"Launches{of}: {facts.matched:,} of {facts.calls:,} calls lead to work in the trace; from a call's end to the begin of "
            f"its work\nhalf take {facts.delay_p50_us:,.1f} µs, 99 % at most {facts.delay_p99_us:,.1f} µs; "
            f"{facts.queue_mean:,.1f} wait on average, {facts.queue_max:,} at most"
        )


def comparison_tables(comparison: Comparison) -> Iterator[str]:
    """What changed."""
    unit = comparison.unit
    if (steps := comparison.steps) is not None:
        word = {"same": "no clear change"}.get(steps.verdict, f"{steps.verdict}, {steps.sure}")
        yield f"Compared: a step lasts {ms(steps.after_us * 1e3)}, before {ms(steps.before_us * 1e3)}: {word}"
    for what, changes in (("Kernels", comparison.kernels), ("Operators", comparison.operators)):
        rows = [_change(row) for row in changes if row.verdict != "same"][:_TOP]
        if rows:
            yield f"{what} that changed, per {unit}\n" + table(
                ("NAME", "WHAT", "BEFORE", "NOW", "CHANGE", "A CALL", "SURE"), rows, right=range(2, 6)
            )
        elif changes:
            yield f"{what}: none changed"
    for note in comparison.notes:
        yield f"note: {note}"


def _change(row: Change) -> tuple[str, ...]:
    ratio = "-" if row.mean_ratio is None else f"{row.mean_ratio:.2f} ×"
    times = (ms(row.before_us * 1e3), ms(row.after_us * 1e3), f"{row.change_us / 1e3:+,.3f} ms")
    return (short(row.name, 36), row.verdict, *times, ratio, row.sure)
