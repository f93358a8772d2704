"""The tables of dyno analyze that are about single ranks."""

import statistics
from collections.abc import Iterator, Sequence

from dynolog.analysis.rank.rank_summary import DeviceSummary, RankSummary
from dynolog.analysis.wording import ms, pct, rate
from dynolog.cli.analyze.layout import name, width
from dynolog.cli.table import table

_TOP = 10
_MOST_RANKS = 32
_WIDE = 96
_SPLIT_TITLE = "Time of the GPU (COMM. is exposed, HIDDEN is behind computing"
_SPLIT_HEADER = ("RANK", "GPU", "TIME", "COMPUTE", "COMM.", "HIDDEN", "COPIES", "IDLE")
_IDLE_HEADER = ("launch", "CPU", "data", "ranks", "other")
# What the numbers of a row need beside a name.
_KERNEL_NUMBERS, _OPERATOR_NUMBERS, _MODULE_NUMBERS = 52, 62, 24


def splits(ranks: Sequence[RankSummary]) -> Iterator[str]:
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
    if rows and width() < _WIDE:
        yield f"{_SPLIT_TITLE})\n" + table(_SPLIT_HEADER, [row[:8] for row in rows], right=range(8))
        idle_header = (*_SPLIT_HEADER[:2], "IDLE", *_IDLE_HEADER)
        yield "Why it is idle\n" + table(idle_header, [(*row[:2], *row[7:]) for row in rows], right=range(8))
    elif rows:
        yield f"{_SPLIT_TITLE}; then why it is idle)\n" + table(header, rows, right=range(len(header)))
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


def steps(ranks: Sequence[RankSummary]) -> Iterator[str]:
    """How long steps took, a line a rank."""
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


def tops(ranks: Sequence[RankSummary]) -> Iterator[str]:
    """Kernels, operators, modules, copies and launches of the first rank: the others are in --json."""
    rank = ranks[0]
    of = f" (rank {rank.rank})" if len(ranks) > 1 else ""
    if rank.kernels:
        yield f"Kernels{of}\n" + table(
            ("KERNEL", "CALLS", "TOTAL", "SHARE", "MEAN", "P99"),
            [
                (
                    name(row.name, _KERNEL_NUMBERS),
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
            f"Operators{of}: the host's time, SELF without what they call{', GPU is what they launch' if rank.kernels else ''}\n"
            + (_operators(rank))
        )
    if rank.modules:
        yield f"Modules{of}\n" + table(
            ("MODULE", "LAUNCHES", "GPU"),
            [
                (name(row.name, _MODULE_NUMBERS), f"{row.launches:,}", ms(row.device_us * 1e3))
                for row in rank.modules[:_TOP]
            ],
            right=(1, 2),
        )
    if rank.main is not None:
        yield from _device_tables(rank.main, of)


def _operators(rank: RankSummary) -> str:
    gpu = bool(rank.kernels)
    rows = [
        (
            name(row.name, _OPERATOR_NUMBERS),
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
