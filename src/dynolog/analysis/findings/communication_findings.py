"""Communication that nothing hides: how much of it, how fast it is, and what to try."""

from collections.abc import Mapping, Sequence

from dynolog.analysis.findings.concerned import Concerned, finding, mean_share, most_of
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.job.bandwidth import BandwidthRow
from dynolog.analysis.job.job_summary import JobSummary
from dynolog.analysis.rank.gpu_work import is_communication
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.wording import ms, pct, rate, short, size

_LEAST_SHARE = 0.10
# Large enough for an algorithm to fill its links; below, latency counts.
_LARGE_BYTES = 16_000_000
_SLOW_SHARE = 0.3  # of the links
_SLOW_LINK = (
    "slow for its size: which transport was chosen (`NCCL_DEBUG=INFO`), links that are down or narrow (`nvidia-smi nvlink --status`, "
    "PCIe width in `dyno gpus`)"
)
_ADVICE = [
    "overlap it with computing: larger gradient buckets, prefetching in FSDP, asynchronous collectives",
    "move fewer bytes: lower precision of gradients, sharding within hosts, accumulating gradients",
]


def communication_findings(job: JobSummary, ranks: Sequence[RankSummary], slow: Sequence[int]) -> list[Finding]:
    """`slow` are the ranks that the others wait for: where only others have exposed communication, hiding it wins nothing."""
    waited_ns = {wait.rank: wait.waited_ns for wait in job.waits}
    shares = exposed_shares(ranks, waited_ns)
    concerned = [Concerned(rank, shares[rank.rank], rank.main) for rank in ranks if shares[rank.rank] >= _LEAST_SHARE]
    if not concerned or (slow and not any(one.rank.rank in slow for one in concerned)):
        return []
    return [_exposed(concerned, job.bandwidth)]


def exposed_shares(ranks: Sequence[RankSummary], waited_ns: Mapping[int, int]) -> dict[int, float]:
    """Of the device's time, by rank: exposed communication without the waiting for other ranks, which is not its fault."""
    shares = {}
    for rank in ranks:
        split = rank.main.split if rank.main else None
        exposed_ns = split.exposed_communication_ns - waited_ns.get(rank.rank, 0) if split else 0
        shares[rank.rank] = max(exposed_ns, 0) / split.span_ns if split and split.span_ns else 0.0
    return shares


def _exposed(concerned: list[Concerned], bandwidth: Sequence[BandwidthRow]) -> Finding:
    worst = most_of(concerned)
    assert worst.device is not None
    split = worst.device.split
    hidden = split.overlapped_communication_ns / max(split.communication_ns, 1)
    evidence = [
        f"{ms(split.communication_ns)} of communication, {pct(hidden)} of it hidden behind computing (rank {worst.rank.rank})"
    ]
    names = [row for row in worst.rank.kernels if is_communication(row.name)][:2]
    evidence += [f"{short(row.name)}: {row.count} × {ms(row.mean_us * 1000)}" for row in names]
    evidence += map(_speed, bandwidth[:2])
    advice = [*([_SLOW_LINK] if any(map(_is_slow, bandwidth[:2])) else []), *_ADVICE]
    title = f"Exposed communication: {mean_share(concerned)} of the time nothing computes meanwhile"
    return finding("exposed_communication", concerned, title, evidence, advice)


def _speed(row: BandwidthRow) -> str:
    text = f"{row.kind} of {size(row.size_bytes)} on {row.group_size} ranks: bus bandwidth {rate(row.bus_bytes_per_s)}"
    if row.link_bytes_per_s:
        text += f", {pct(row.bus_bytes_per_s / row.link_bytes_per_s)} of the GPU's links"
    return text if row.without_waiting else f"{text}, waiting for others included"


def _is_slow(row: BandwidthRow) -> bool:
    link = row.link_bytes_per_s
    return (
        link is not None
        and row.without_waiting
        and row.size_bytes >= _LARGE_BYTES
        and row.bus_bytes_per_s < _SLOW_SHARE * link
    )
