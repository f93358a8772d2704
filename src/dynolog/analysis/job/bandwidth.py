"""How fast collectives moved data, by kind and size."""

import statistics
from collections.abc import Sequence

import msgspec
import numpy as np

from dynolog.analysis.job.collective_matching import Matched
from dynolog.analysis.job.link_speeds import link_bytes_per_s
from dynolog.analysis.rank.collective_calls import bus_bytes
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.analysis.reading.columns import NONE

_MOST_ROWS = 40


class BandwidthRow(msgspec.Struct, frozen=True, kw_only=True):
    """Collectives of one kind, size and group size. Times are medians. Where all ranks are known they are from the last arrival on
    (`without_waiting`), else they include the wait for others. `algorithm` is size over time; `bus` what the busiest link carried, to
    be held against `link_bytes_per_s`, which is None between hosts and for unknown devices."""

    kind: str
    size_bytes: int
    group_size: int
    count: int
    time_us: float
    algorithm_bytes_per_s: float
    bus_bytes_per_s: float
    link_bytes_per_s: float | None
    without_waiting: bool


def bandwidth_rows(results: Sequence[RankResult], matched: Sequence[Matched]) -> list[BandwidthRow]:
    """All sizes that are known, those that took longest in all first."""
    found: dict[tuple[str, int, int, bool], list[float]] = {}
    one_host = len({result.summary.host for result in results}) == 1 and bool(results[0].summary.host)
    for one in matched:
        if one.group_size is None:
            continue
        times = (one.end_ns.max(axis=1) - one.last_arrival_ns) / 1000
        for size, time_us in zip(one.size_bytes.tolist(), times.tolist(), strict=True):
            found.setdefault((one.kind, size, one.group_size, True), []).append(time_us)
    if not matched:
        for result in results:
            calls = result.collectives
            times = (calls.end_ns - calls.begin_ns) / 1000
            columns = (calls.kind.tolist(), calls.size_bytes.tolist(), calls.group_size.tolist(), times.tolist())
            for kind, size, group, time_us in zip(*columns, strict=True):
                found.setdefault((calls.kinds[kind], size, group, False), []).append(time_us)
    link = link_bytes_per_s(results[0].summary.device_name) if _within_host(results, one_host) else None
    rows = [
        _row(key, times, link)
        for key, times in found.items()
        if key[1] not in (NONE, 0) and key[2] not in (NONE, 0, 1) and statistics.median(times) > 0
    ]
    return sorted(rows, key=lambda row: -row.time_us * row.count)[:_MOST_ROWS]


def _within_host(results: Sequence[RankResult], one_host: bool) -> bool:
    """Whether all ranks of the job are on one host: those that are here, and no more than that exist."""
    world = results[0].summary.world_size
    return one_host and world is not None and world <= len(results)


def _row(key: tuple[str, int, int, bool], times: list[float], link: float | None) -> BandwidthRow:
    kind, size, group, matched = key
    time_us = float(np.median(times))
    return BandwidthRow(
        kind=kind,
        size_bytes=size,
        group_size=group,
        count=len(times),
        time_us=time_us,
        algorithm_bytes_per_s=size / time_us * 1e6,
        bus_bytes_per_s=bus_bytes(kind, size, group) / time_us * 1e6,
        link_bytes_per_s=link,
        without_waiting=matched,
    )
