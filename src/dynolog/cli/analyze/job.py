"""The tables of `dyno analyze` that are about several ranks together."""

from collections.abc import Iterator

from dynolog.analysis.job.job_clock import RankOffset
from dynolog.analysis.job.job_summary import JobSummary
from dynolog.analysis.wording import ms, pct, rank_list, rate, short
from dynolog.cli.table import table

_TOP = 12


def job_tables(job: JobSummary, columns: int, *, alone: bool = False) -> Iterator[str]:
    """All of them; for one rank alone only what collectives moved."""
    if not alone:
        yield from _waits(job)
        yield from _slowest(job)
        yield from _collectives(job, columns)
        yield from _differing(job)
    if job.bandwidth:
        yield (
            "Collectives by size"
            + ("" if job.bandwidth[0].without_waiting else " (times include waiting for other ranks)")
            + "\n"
            + table(
                ("KIND", "BYTES", "RANKS", "COUNT", "TIME", "ALGORITHM", "BUS", "LINK"),
                [
                    (
                        row.kind,
                        f"{row.size_bytes:,}",
                        str(row.group_size),
                        str(row.count),
                        ms(row.time_us * 1e3),
                        rate(row.algorithm_bytes_per_s),
                        rate(row.bus_bytes_per_s),
                        "-" if row.link_bytes_per_s is None else pct(row.bus_bytes_per_s / row.link_bytes_per_s),
                    )
                    for row in job.bandwidth[:_TOP]
                ],
                right=range(1, 8),
            )
        )


def _waits(job: JobSummary) -> Iterator[str]:
    clocks = {clock.rank: clock for clock in job.clocks}
    rows = []
    for wait in sorted(job.waits, key=lambda wait: -wait.kept_waiting_ns)[:_TOP]:
        clock = clocks[wait.rank]
        rows.append(
            (
                str(wait.rank),
                wait.host or "-",
                ms(wait.waited_ns),
                ms(wait.kept_waiting_ns),
                f"{wait.last} of {wait.collectives}",
                f"{clock.offset_ns / 1e3:+,.1f} µs" if clock.source else "unknown",
                _told_by(clock),
            )
        )
    yield "Who waits for whom: WAITED for others, ALL WAIT for this rank alone\n" + table(
        ("RANK", "HOST", "WAITED", "ALL WAIT", "LAST", "CLOCK", "CLOCK FROM"), rows, right=(0, 2, 3, 4, 5)
    )
    if len(job.hosts) > 1:
        hosts = [(host.host, rank_list(host.ranks), ms(host.kept_waiting_ns)) for host in job.hosts[:_TOP]]
        yield table(("HOST", "RANKS", "ALL HOSTS WAIT"), hosts, right=(2,))
    if job.imbalance:
        parts = [
            (row.what, ms(row.least_ns), ms(row.mean_ns), ms(row.most_ns), f"rank {row.most_rank}")
            for row in job.imbalance
        ]
        yield "Balance between ranks\n" + table(("", "LEAST", "MEAN", "MOST", "WHOSE"), parts, right=(1, 2, 3))


def _told_by(clock: RankOffset) -> str:
    """`collectives ±12.3 µs`: how far their ends miss the clock that they tell."""
    residual = "" if clock.residual_ns is None else f" ±{clock.residual_ns / 1e3:,.1f} µs"
    return (clock.source or "nothing") + residual


def _slowest(job: JobSummary) -> Iterator[str]:
    rows = [
        (str(step.step), ms(step.duration_ns), f"rank {step.rank}", ms(step.kept_waiting_ns))
        for step in job.slowest[:_TOP]
        if step.rank is not None
    ]
    if rows:
        yield "The slowest rank of each step, and how long all others waited for it\n" + table(
            ("STEP", "LASTS", "SLOWEST", "BY"), rows, right=(0, 1, 3)
        )


def _collectives(job: JobSummary, columns: int) -> Iterator[str]:
    rows = [
        (
            short(row.name, max(columns - 74, 16)),
            str(len(row.ranks)),
            str(row.count),
            ms(row.mean_us * 1e3),
            ms(row.spread_mean_us * 1e3),
            ms(row.spread_max_us * 1e3),
            ms(row.transfer_mean_us * 1e3),
            f"{row.often_last_rank} ({pct(row.often_last_share)})",
        )
        for row in job.collectives[:_TOP]
    ]
    if rows:
        yield "Collectives: from the first arrival to the last (SPREAD), from there to the end (MOVES)\n" + table(
            ("COLLECTIVE", "RANKS", "COUNT", "MEAN", "SPREAD", "LONGEST", "MOVES", "OFTEN LAST"),
            rows,
            right=range(1, 8),
        )


def _differing(job: JobSummary) -> Iterator[str]:
    rows = [
        (short(row.name, 46), rank_list(row.ranks), rank_list(row.without), ms(row.mean_us * 1e3))
        for row in job.differing[:_TOP]
    ]
    if rows:
        yield "Kernels that not all ranks run\n" + table(("KERNEL", "RUN BY", "NOT BY", "TIME"), rows, right=(3,))
