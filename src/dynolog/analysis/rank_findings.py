"""What stands out in single ranks; ranks that have the same are one finding."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dynolog.analysis.finding import Finding
from dynolog.analysis.host_wording import host_words
from dynolog.analysis.idle_causes import LAUNCH_GAP_NS
from dynolog.analysis.rank_summary import DeviceSummary, RankSummary
from dynolog.analysis.step_times import StepTime
from dynolog.analysis.wording import ms, pct, rate, short

# The share of a rank's time from which on something stands out.
LEAST_SHARE = {
    "data_loader": 0.05,
    "launch_bound": 0.10,
    "host_wait": 0.10,
    "host_collective": 0.05,
    "queued": 0.10,
    "exposed_communication": 0.10,
    "memory_copies": 0.05,
    "clock_drop": 0.03,
    "step_spread": 0.03,
}
_FEWEST_STEPS = 5
_SPREAD = 1.3  # the longest step against the median
_SLOW_COPY_BYTES_PER_S = 8e9
_COLLECTIVE_ADVICE = [
    "overlap it with computing: larger gradient buckets, prefetching in FSDP, asynchronous collectives",
    "move fewer bytes: lower precision of gradients, sharding within hosts, accumulating gradients",
]


class Concerned(msgspec.Struct, frozen=True):
    """A rank that has something, the share of its time, and the device it is about."""

    rank: RankSummary
    share: float
    device: DeviceSummary | None


def rank_findings(ranks: Sequence[RankSummary], waited_ns: Mapping[int, int]) -> list[Finding]:
    """`waited_ns`: how long a rank waited in collectives for others; that is not the fault of communication, nor of this rank."""
    found: list[Finding] = []
    for kind, (share_of, build) in _KINDS.items():
        concerned = [
            Concerned(rank, share, rank.main)
            for rank in ranks
            if (share := share_of(rank, waited_ns.get(rank.rank, 0))) >= LEAST_SHARE[kind]
        ]
        if concerned:
            found.append(build(kind, concerned))
    return found


def gain(rank: RankSummary, share: float) -> tuple[float, str]:
    """A share of a rank's time as ns of a step, or of the recording where steps are unknown."""
    if rank.steps.median_ns:
        return share * rank.steps.median_ns, "step"
    return share * (rank.main.split.span_ns if rank.main else rank.span_ns), "recording"


def _finding(kind: str, concerned: list[Concerned], title: str, evidence: list[str], advice: list[str]) -> Finding:
    gains = [gain(one.rank, one.share) for one in concerned]
    return Finding(
        kind=kind,
        title=title,
        gain_ns=statistics.mean(value for value, _ in gains),
        per=gains[0][1],
        share=statistics.mean(one.share for one in concerned),
        ranks=[one.rank.rank for one in concerned],
        evidence=evidence,
        advice=advice,
    )


def _worst(concerned: list[Concerned]) -> Concerned:
    return max(concerned, key=lambda one: one.share)


def _mean_share(concerned: list[Concerned]) -> str:
    return pct(statistics.mean(one.share for one in concerned))


def _host_while(concerned: list[Concerned], cause: str) -> list[str]:
    device = _worst(concerned).device
    return host_words(device.host_while.get(cause, device.host_while.get("all", {}))) if device else []


def _share_of(cause: str) -> Callable[[RankSummary, int], float]:
    def share(rank: RankSummary, _waited_ns: int) -> float:
        if rank.main is None or not rank.main.split.span_ns:
            return 0.0
        return float(getattr(rank.main.split.idle, f"{cause}_ns")) / rank.main.split.span_ns

    return share


def _data_loader_share(rank: RankSummary, waited_ns: int) -> float:
    if rank.main is not None:
        return _share_of("data_loader")(rank, waited_ns)
    return rank.data_loader_ns / rank.span_ns if rank.span_ns else 0.0


def _data_loader(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    words = _host_while(concerned, "data_loader")
    what = "GPU idle" if worst.device else "The loop waits"
    title = f"{what} {_mean_share(concerned)}: data loader" + (f"; {', '.join(words)}" if words else "")
    evidence = [
        (
            f"the loop is in the data loader's `__next__` for {ms(worst.rank.data_loader_ns)} of {ms(worst.rank.span_ns)} "
            f"(rank {worst.rank.rank})"
        )
    ]
    if not words:
        evidence.append("host counters in the trace (`dyno gputrace --with-host`) would tell CPU from disk")
    advice = [
        "more workers (`num_workers`), `persistent_workers`, a larger `prefetch_factor`",
        "cheaper samples: decode and augment before training, larger files, a faster disk or cache",
    ]
    return _finding(kind, concerned, title, evidence, advice)


def _launch_bound(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    assert worst.device is not None
    idle = worst.device.split.idle
    kernels = sum(row.count for row in worst.rank.kernels)
    mean_us = sum(row.total_us for row in worst.rank.kernels) / max(kernels, 1)
    evidence = [
        (
            f"{idle.gaps:,} gaps; {kernels:,} kernels of {mean_us:.1f} µs on average: the host needs longer to launch one "
            f"than the device to run it (rank {worst.rank.rank})"
        )
    ]
    if facts := worst.device.launches:
        evidence.append(
            f"on average {facts.queue_mean:.1f} launches are queued; half of them begin within {facts.delay_p50_us:.0f} µs"
        )
    advice = [
        "CUDA graphs, or `torch.compile(mode='reduce-overhead')`: one launch for many kernels",
        "fewer, larger kernels: fused optimizers (`fused=True`), larger batches, fused operators",
    ]
    title = f"GPU idle {_mean_share(concerned)}: launch-bound, kernels are shorter than their launches"
    return _finding(kind, concerned, title, evidence, advice)


def _host_wait(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    assert worst.device is not None
    idle = worst.device.split.idle
    words = _host_while(concerned, "cpu")
    synced = idle.after_sync_ns * 2 >= idle.cpu_ns
    why = "it waits for the device, then begins anew" if synced else "it launches nothing for long"
    title = f"GPU idle {_mean_share(concerned)}: the host, {why}" + (f"; {', '.join(words)}" if words else "")
    evidence = [
        (
            f"gaps of more than {LAUNCH_GAP_NS // 1000} µs add up to {ms(idle.cpu_ns)}, the longest gap lasts {ms(idle.longest_ns)}, "
            f"{pct(idle.after_sync_ns / max(idle.cpu_ns, 1))} of it follow a synchronisation (rank {worst.rank.rank})"
        )
    ]
    evidence += [f"{sync.count} waits for the device in {short(sync.name)}" for sync in worst.rank.syncs[:2] if synced]
    slowest = max(worst.rank.operators, key=lambda row: row.self_us, default=None)
    if slowest is not None and not synced:
        evidence.append(
            f"most host time of operators: {short(slowest.name)}, {ms(slowest.self_us * 1000)} in {slowest.count} calls"
        )
    advice = (
        ["avoid `.item()`, `.cpu()`, `print` of tensors and `nonzero` in the loop, or ask for them every few steps"]
        if synced
        else ["move work of Python out of the loop (logging, metrics, checkpoints), or to another thread"]
    )
    return _finding(
        kind, concerned, title, evidence, [*advice, "record with Python stacks (`--with-stacks`) to see the lines"]
    )


def _host_collective(kind: str, concerned: list[Concerned]) -> Finding:
    title = f"GPU idle {_mean_share(concerned)}: the host waits for other ranks in a collective of the CPU"
    advice = ["fewer barriers and object collectives (`all_gather_object`) in the loop", "look at the slowest rank"]
    return _finding(kind, concerned, title, ["gloo, MPI or barrier calls cover these gaps"], advice)


def _queued(kind: str, concerned: list[Concerned]) -> Finding:
    title = f"GPU idle {_mean_share(concerned)} although work was queued"
    evidence = ["the launch that ends such a gap was made before the gap began"]
    advice = [
        "the stream waits for something that is not in the trace: events of other processes, host functions, or a peer's memory",
        "or the trace is a sample, with kernels left out",
    ]
    return _finding(kind, concerned, title, evidence, advice)


def _exposed_share(rank: RankSummary, waited_ns: int) -> float:
    if rank.main is None or not rank.main.split.span_ns:
        return 0.0
    return max(rank.main.split.exposed_communication_ns - waited_ns, 0) / rank.main.split.span_ns


def _exposed_communication(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    assert worst.device is not None
    split = worst.device.split
    hidden = split.overlapped_communication_ns / max(split.communication_ns, 1)
    evidence = [
        f"{ms(split.communication_ns)} of communication, {pct(hidden)} of it hidden behind computing (rank {worst.rank.rank})"
    ]
    names = [row for row in worst.rank.kernels if "ccl" in row.name.lower()][:2]
    evidence += [f"{short(row.name)}: {row.count} × {ms(row.mean_us * 1000)}" for row in names]
    title = f"Exposed communication: {_mean_share(concerned)} of the time nothing computes meanwhile"
    return _finding(kind, concerned, title, evidence, list(_COLLECTIVE_ADVICE))


def _memory_share(rank: RankSummary, _waited_ns: int) -> float:
    if rank.main is None or not rank.main.split.span_ns:
        return 0.0
    return rank.main.split.exposed_memory_ns / rank.main.split.span_ns


def _memory_copies(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    assert worst.device is not None
    copies = sorted(worst.device.copies, key=lambda row: -row.exposed_us)[:2]
    evidence = []
    for row in copies:
        speed = f" at {rate(row.bytes_per_s)}" if row.bytes_per_s is not None else ""
        evidence.append(
            f"{row.kind}: {row.count} × {ms(row.total_us * 1000 / row.count)}{speed} (rank {worst.rank.rank})"
        )
    slow = copies[0].bytes_per_s is not None and copies[0].bytes_per_s < _SLOW_COPY_BYTES_PER_S
    advice = ["copy on a stream of its own while the last step computes (prefetch), with `non_blocking=True`"]
    if "Pageable" in copies[0].kind or slow:
        advice.insert(0, "pinned host memory (`pin_memory=True`): pageable memory is copied twice, and waits")
    title = f"Memory copies take {_mean_share(concerned)} of the time while nothing computes"
    return _finding(kind, concerned, title, evidence, advice)


def _clock_share(rank: RankSummary, _waited_ns: int) -> float:
    if rank.main is None or rank.main.clock_drop is None or not rank.main.split.span_ns:
        return 0.0
    return rank.main.clock_drop.lost_ns / rank.main.split.span_ns


def _clock_drop(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    assert worst.device is not None
    drop = worst.device.clock_drop
    assert drop is not None
    title = f"GPU clock dropped to {drop.low_mhz:,.0f} MHz" + (f": {drop.reason}" if drop.reason else "")
    evidence = [
        (
            f"{ms(drop.low_ns)} of busy time below {drop.full_mhz:,.0f} MHz on device {drop.device} (rank {worst.rank.rank}); "
            "lost is what the full clock would have saved, if all work followed the clock"
        )
    ]
    advice = [
        "power brake, hardware slowdown: the node's power supply or its cabling; ask who runs the machine",
        "heat: cooling, neighbours; power cap: `nvidia-smi -q -d POWER`",
    ]
    return _finding(kind, concerned, title, evidence, advice)


def _spread_share(rank: RankSummary, _waited_ns: int) -> float:
    whole, median = rank.steps.whole, rank.steps.median_ns
    if len(whole) < _FEWEST_STEPS or not median or (rank.steps.max_ns or 0) < _SPREAD * median:
        return 0.0
    return max(statistics.mean(step.duration_ns for step in whole) / median - 1, 0.0)


def _step_spread(kind: str, concerned: list[Concerned]) -> Finding:
    worst = _worst(concerned)
    steps = worst.rank.steps
    slowest = max(steps.whole, key=lambda step: step.duration_ns)
    assert steps.median_ns is not None
    slow = [step for step in steps.whole if step.duration_ns >= _SPREAD * steps.median_ns]
    parts: dict[str, Callable[[StepTime], int]] = {
        "computing": lambda step: step.compute_ns,
        "exposed communication": lambda step: step.exposed_communication_ns,
        "the data loader": lambda step: step.data_loader_ns,
    }
    evidence = [
        f"steps {', '.join(str(step.number) for step in slow[:10])} of {len(steps.whole)} (rank {worst.rank.rank})"
    ]
    for what, of in parts.items():
        more = of(slowest) - statistics.median(of(step) for step in steps.whole)
        if more >= 0.2 * (slowest.duration_ns - steps.median_ns):
            evidence.append(f"step {slowest.number} spends {ms(more)} more than the median step in {what}")
    title = f"Steps vary: the median lasts {ms(steps.median_ns)}, the longest {ms(slowest.duration_ns)}"
    advice = [
        "what happens every so many steps: logging, evaluation, checkpoints, garbage collection (`gc.freeze()`), allocator"
    ]
    return _finding(kind, concerned, title, evidence, advice)


_KINDS: dict[str, tuple[Callable[[RankSummary, int], float], Callable[[str, list[Concerned]], Finding]]] = {
    "data_loader": (_data_loader_share, _data_loader),
    "launch_bound": (_share_of("launch"), _launch_bound),
    "host_wait": (_share_of("cpu"), _host_wait),
    "host_collective": (_share_of("other_ranks"), _host_collective),
    "queued": (_share_of("queued"), _queued),
    "exposed_communication": (_exposed_share, _exposed_communication),
    "memory_copies": (_memory_share, _memory_copies),
    "clock_drop": (_clock_share, _clock_drop),
    "step_spread": (_spread_share, _step_spread),
}
