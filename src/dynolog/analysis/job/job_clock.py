"""One clock for the ranks of a job."""

from collections.abc import Sequence

import msgspec

from dynolog.analysis.rank.collective_clock import agree
from dynolog.analysis.rank.rank_summary import RankResult


class RankOffset(msgspec.Struct, frozen=True, kw_only=True):
    """`offset_ns` is subtracted from a rank's times. `source` is "same host", "collectives", "manifest", "first", or "" when nothing
    tells it; then the rank takes no part in what compares times."""

    rank: int
    offset_ns: int = 0
    source: str = ""
    residual_ns: int | None = None


def rank_offsets(results: Sequence[RankResult]) -> list[RankOffset]:
    """By the first rank's clock: none within one host, else by collectives, which is finer, else by the manifest."""
    first = results[0]
    return [RankOffset(rank=first.summary.rank, source="first")] + [_offset(first, other) for other in results[1:]]


def _offset(first: RankResult, other: RankResult) -> RankOffset:
    rank = other.summary.rank
    if first.summary.host and first.summary.host == other.summary.host:
        return RankOffset(rank=rank, source="same host")
    known = first.clock_offset_ns is not None and other.clock_offset_ns is not None
    expected_ns = (other.clock_offset_ns or 0) - (first.clock_offset_ns or 0) if known else 0
    if agreement := agree(first.ends, other.ends, expected_ns):
        return RankOffset(
            rank=rank, offset_ns=agreement.offset_ns, source="collectives", residual_ns=agreement.residual_ns
        )
    if known:
        return RankOffset(rank=rank, offset_ns=expected_ns, source="manifest")
    return RankOffset(rank=rank)
