"""What stands out in single ranks; ranks that have the same are one finding."""

import statistics
from collections.abc import Callable, Sequence

from dynolog.analysis.findings.concerned import Concerned, finding, mean_share, most_of
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.findings.idle_findings import (
    data_loader,
    data_loader_share,
    host_collective,
    host_wait,
    launch_bound,
    queued,
    share_of,
    unused_device,
    unused_share,
)
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.rank.step_times import StepTime
from dynolog.analysis.wording import ms, rate

# The share of a rank's time from which on something stands out.
LEAST_SHARE = {
    "data_loader": 0.05,
    "launch_bound": 0.10,
    "host_wait": 0.10,
    "host_collective": 0.05,
    "queued": 0.10,
    "memory_copies": 0.05,
    "clock_drop": 0.03,
    "step_spread": 0.03,
    "unused_device": 0.20,
}
_FEWEST_STEPS = 5
_SPREAD = 1.3  # the longest step against the median
_SLOW_COPY_BYTES_PER_S = 8e9
# By what THROTTLE_REASONS names; all of it where the trace tells no reason.
_CLOCK_ADVICE = {
    ("power brake", "hardware slowdown"): (
        "power brake, hardware slowdown: the node's power supply or its cabling; ask who runs the machine"
    ),
    ("heat (hardware)", "heat (software)"): "heat: cooling, fans, neighbours (`dyno gpus`)",
    ("power cap",): "power cap: the limit that is set, beside the highest that can be (`nvidia-smi -q -d POWER`)",
}


def rank_findings(ranks: Sequence[RankSummary]) -> list[Finding]:
    """All but what is about communication."""
    found: list[Finding] = []
    for kind, (measure, build) in _KINDS.items():
        concerned = [
            Concerned(rank, share, rank.main) for rank in ranks if (share := measure(rank)) >= LEAST_SHARE[kind]
        ]
        if concerned:
            found.append(build(kind, concerned))
    return found


def _memory_share(rank: RankSummary) -> float:
    if rank.main is None or not rank.main.split.span_ns:
        return 0.0
    return rank.main.split.exposed_memory_ns / rank.main.split.span_ns


def _memory_copies(kind: str, concerned: list[Concerned]) -> Finding:
    worst = most_of(concerned)
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
    title = f"Memory copies take {mean_share(concerned)} of the time while nothing computes"
    return finding(kind, concerned, title, evidence, advice)


def _clock_share(rank: RankSummary) -> float:
    if rank.main is None or rank.main.clock_drop is None or not rank.main.split.span_ns:
        return 0.0
    return rank.main.clock_drop.lost_ns / rank.main.split.span_ns


def _clock_drop(kind: str, concerned: list[Concerned]) -> Finding:
    worst = most_of(concerned)
    assert worst.device is not None
    drop = worst.device.clock_drop
    assert drop is not None
    title = f"GPU clock dropped to {drop.low_mhz:,.0f} MHz" + (f": {', '.join(drop.reasons)}" if drop.reasons else "")
    never = "" if drop.seen_full else ", which it never reached here"
    evidence = [
        (
            f"{ms(drop.low_ns)} of busy time below {drop.full_mhz:,.0f} MHz on GPU {drop.device} of its host{never} "
            f"(rank {worst.rank.rank}); lost is what the full clock would have saved, if all work followed the clock"
        )
    ]
    advice = [
        sentence for reasons, sentence in _CLOCK_ADVICE.items() if not drop.reasons or set(reasons) & set(drop.reasons)
    ]
    return finding(kind, concerned, title, evidence, advice)


def _spread_share(rank: RankSummary) -> float:
    whole, median = rank.steps.whole, rank.steps.median_ns
    if len(whole) < _FEWEST_STEPS or not median or (rank.steps.max_ns or 0) < _SPREAD * median:
        return 0.0
    return max(1 - median / (rank.steps.mean_ns or median), 0.0)


def _step_spread(kind: str, concerned: list[Concerned]) -> Finding:
    worst = most_of(concerned)
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
        f"{len(slow)} of {len(steps.whole)} steps: {', '.join(str(step.number) for step in slow[:10])} (rank {worst.rank.rank})"
    ]
    for what, of in parts.items():
        more = of(slowest) - statistics.median(of(step) for step in steps.whole)
        if more >= 0.2 * (slowest.duration_ns - steps.median_ns):
            evidence.append(f"step {slowest.number} spends {ms(more)} more than the median step in {what}")
    if slow == steps.whole[:1]:
        title = f"The first step takes {ms(slowest.duration_ns)}, the median {ms(steps.median_ns)}"
        advice = [
            "compiling, autotuning, memory that is first allocated: once a run, or at each new shape; to see the usual step, record later"
        ]
        return finding(kind, concerned, title, evidence, advice)
    title = f"Steps vary: the median lasts {ms(steps.median_ns)}, the longest {ms(slowest.duration_ns)}"
    advice = [
        "what happens every so many steps: logging, evaluation, checkpoints, garbage collection (`gc.freeze()`), allocator"
    ]
    return finding(kind, concerned, title, evidence, advice)


_KINDS: dict[str, tuple[Callable[[RankSummary], float], Callable[[str, list[Concerned]], Finding]]] = {
    "data_loader": (data_loader_share, data_loader),
    "launch_bound": (share_of("launch"), launch_bound),
    "host_wait": (share_of("cpu"), host_wait),
    "host_collective": (share_of("other_ranks"), host_collective),
    "queued": (share_of("queued"), queued),
    "memory_copies": (_memory_share, _memory_copies),
    "clock_drop": (_clock_share, _clock_drop),
    "step_spread": (_spread_share, _step_spread),
    "unused_device": (unused_share, unused_device),
}
