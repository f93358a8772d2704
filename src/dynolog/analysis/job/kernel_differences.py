"""Kernels that some ranks run and others do not."""

from collections.abc import Sequence

import msgspec

from dynolog.analysis.rank.collective_calls import kind_of
from dynolog.analysis.rank.rank_summary import RankSummary

# What takes less of a rank's kernel time is not looked at: initialisation, logging, checks now and then.
_LEAST_SHARE = 0.005
_MOST_ROWS = 40


class DifferingKernel(msgspec.Struct, frozen=True, kw_only=True):
    """`ranks` run it, for `mean_us` each over the recording, `without` do not."""

    name: str
    ranks: list[int]
    without: list[int]
    mean_us: float


def differing_kernels(summaries: Sequence[RankSummary]) -> list[DifferingKernel]:
    """Longest first. Collectives are left aside: their kernels depend on what the library chose."""
    with_device = [summary for summary in summaries if summary.kernels]
    if len(with_device) < 2:
        return []
    times = [{row.name: row.total_us for row in summary.kernels} for summary in with_device]
    candidates = {
        row.name
        for summary in with_device
        for row in summary.kernels
        if row.share >= _LEAST_SHARE and not _is_collective(row.name)
    }
    rows = []
    for name in candidates:
        takers = [i for i, one in enumerate(times) if name in one]
        if len(takers) < len(times):
            rows.append(
                DifferingKernel(
                    name=name,
                    ranks=[with_device[i].rank for i in takers],
                    without=[summary.rank for i, summary in enumerate(with_device) if i not in takers],
                    mean_us=sum(times[i][name] for i in takers) / len(takers),
                )
            )
    return sorted(rows, key=lambda row: (-row.mean_us, row.name))[:_MOST_ROWS]


def _is_collective(name: str) -> bool:
    return "ccl" in name.lower() and kind_of(name) != "other"
