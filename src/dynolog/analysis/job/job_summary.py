"""What only the traces of several ranks together tell."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from dynolog.analysis.job.bandwidth import BandwidthRow, bandwidth_rows
from dynolog.analysis.job.collective_matching import match
from dynolog.analysis.job.job_clock import RankOffset, rank_offsets
from dynolog.analysis.job.kernel_differences import DifferingKernel, differing_kernels
from dynolog.analysis.job.rank_waits import CollectiveRow, RankWait, collective_rows, mean_ns, wait_spans
from dynolog.analysis.rank.rank_summary import RankResult
from dynolog.analysis.reading.intervals import Intervals
from dynolog.analysis.wording import rank_list

_DOUBTFUL_NS = 100_000_000


class SlowestInStep(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that the others waited for longest in a step, and for how long each of them did on average; None when nobody waited."""

    step: int
    rank: int | None
    kept_waiting_ns: int
    duration_ns: int


class HostWait(msgspec.Struct, frozen=True, kw_only=True):
    """A host as one: how long, on average, each rank of other hosts waited for it alone."""

    host: str
    ranks: list[int]
    kept_waiting_ns: int


class Imbalance(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity over ranks, in ns: largest against mean."""

    what: str
    least_ns: int
    mean_ns: float
    most_ns: int
    most_rank: int


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Several ranks together. `compared_ns` is how long the recording of the first rank is: what waits are a share of. `notes` say
    which ranks could not be compared."""

    clocks: list[RankOffset]
    waits: list[RankWait]
    hosts: list[HostWait]
    slowest: list[SlowestInStep]
    collectives: list[CollectiveRow]
    bandwidth: list[BandwidthRow]
    differing: list[DifferingKernel]
    imbalance: list[Imbalance]
    compared_ns: int
    notes: list[str]


def summarise_job(results: Sequence[RankResult]) -> JobSummary:
    """Results by rank, at least one."""
    clocks = rank_offsets(results)
    matched = match(results, clocks)
    ranks = [result.summary.rank for result in results]
    exposed = [_exposed(result, clock) for result, clock in zip(results, clocks, strict=True)]
    spans = wait_spans(matched, range(len(results)), exposed)
    waits = [
        RankWait(
            rank=result.summary.rank,
            host=result.summary.host,
            waited_ns=spans.waited[i].total_ns,
            kept_waiting_ns=mean_ns(spans.kept_waiting[i]),
            last=spans.last[i],
            collectives=spans.collectives[i],
        )
        for i, result in enumerate(results)
        if i < len(spans.last)
    ]
    hosts = list(dict.fromkeys(result.summary.host for result in results if result.summary.host))
    by_host: list[HostWait] = []
    if len(hosts) > 1 and all(result.summary.host for result in results):
        units = [hosts.index(result.summary.host) for result in results]
        kept = wait_spans(matched, units, exposed).kept_waiting
        by_host = [
            HostWait(
                host=host,
                ranks=[rank for rank, unit in zip(ranks, units, strict=True) if unit == i],
                kept_waiting_ns=mean_ns(kept[i]),
            )
            for i, host in enumerate(hosts)
        ]
    return JobSummary(
        clocks=clocks,
        waits=waits,
        hosts=by_host,
        slowest=_slowest(results, spans.kept_waiting, ranks),
        collectives=collective_rows(matched, ranks),
        bandwidth=bandwidth_rows(results, matched),
        differing=differing_kernels([result.summary for result in results]),
        imbalance=_imbalance(results) if len(results) > 1 else [],
        compared_ns=results[0].summary.span_ns,
        notes=_notes(results, clocks, spans.collectives),
    )


def _notes(results: Sequence[RankResult], clocks: Sequence[RankOffset], collectives: Sequence[int]) -> list[str]:
    if len(results) < 2:
        return []
    found = [*_missing(results), *_doubtful(clocks)]
    adrift = [clock.rank for clock in clocks if not clock.source]
    alone = [
        result.summary.rank
        for i, result in enumerate(results)
        if len(result.collectives) and clocks[i].source and not (i < len(collectives) and collectives[i])
    ]
    if adrift:
        found.append(f"nothing tells the clock of {rank_list(adrift)}: who waits for whom leaves them out")
    if alone:
        found.append(
            f"no collective of {rank_list(alone)} was recorded by another rank as well (other iterations?): who waits leaves them out"
        )
    return found


def _missing(results: Sequence[RankResult]) -> Iterator[str]:
    world = max(result.summary.world_size or 0 for result in results)
    missing = sorted(set(range(world)) - {result.summary.rank for result in results})
    if missing:
        have = "has" if len(missing) == 1 else "have"
        yield f"{rank_list(missing)} of {world} {have} no trace here: what the others wait for may be there"


def _doubtful(clocks: Sequence[RankOffset]) -> Iterator[str]:
    doubtful = [clock for clock in clocks if clock.source == "collectives" and abs(clock.offset_ns) > _DOUBTFUL_NS]
    if doubtful:
        most = max(doubtful, key=lambda clock: abs(clock.offset_ns))
        yield (
            f"by their collectives the clocks of {rank_list([clock.rank for clock in doubtful])} are up to "
            f"{most.offset_ns / 1e6:+,.1f} ms off, which no clock that is kept by NTP is: were the same iterations recorded?"
        )


def _exposed(result: RankResult, clock: RankOffset) -> Intervals | None:
    exposed = result.exposed_communication
    if not result.collectives.on_device:
        return None
    return Intervals(exposed.begin_ns - clock.offset_ns, exposed.end_ns - clock.offset_ns)


def _slowest(
    results: Sequence[RankResult], kept_waiting: Sequence[Sequence[Intervals]], ranks: list[int]
) -> list[SlowestInStep]:
    """By the first rank's steps, whose clock is the job's."""
    steps = results[0].summary.steps.steps
    if len(results) < 2 or not steps:
        return []
    begins = np.array([step.begin_ns for step in steps])
    ends = begins + np.array([step.duration_ns for step in steps])
    waited = np.stack(
        [
            np.mean([spans.within(begins, ends) for spans in others], axis=0) if others else np.zeros(len(begins))
            for others in kept_waiting
        ]
    )
    worst = np.argmax(waited, axis=0)
    return [
        SlowestInStep(
            step=step.number,
            rank=ranks[int(worst[i])] if waited[worst[i], i] else None,
            kept_waiting_ns=int(waited[worst[i], i]),
            duration_ns=step.duration_ns,
        )
        for i, step in enumerate(steps)
    ]


def _imbalance(results: Sequence[RankResult]) -> list[Imbalance]:
    splits = {result.summary.rank: device.split for result in results if (device := result.summary.main)}
    rows = []
    quantities = {
        "computing": {rank: split.compute_ns for rank, split in splits.items()},
        "communicating": {rank: split.communication_ns for rank, split in splits.items()},
        "idle": {rank: split.idle.total_ns for rank, split in splits.items()},
        "host operators": {
            result.summary.rank: int(sum(row.self_us for row in result.summary.operators) * 1000) for result in results
        },
    }
    for what, by_rank in quantities.items():
        if by_rank and any(by_rank.values()):
            most = max(by_rank, key=lambda rank: by_rank[rank])
            rows.append(
                Imbalance(
                    what=what,
                    least_ns=min(by_rank.values()),
                    mean_ns=sum(by_rank.values()) / len(by_rank),
                    most_ns=by_rank[most],
                    most_rank=most,
                )
            )
    return rows
