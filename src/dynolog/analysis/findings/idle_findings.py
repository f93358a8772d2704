"""Findings about a device that has nothing to do, by cause."""

import re
from collections.abc import Callable, Mapping

from dynolog.analysis.findings.concerned import Concerned, finding, mean_share, most_of
from dynolog.analysis.findings.finding import Finding
from dynolog.analysis.findings.host_wording import host_words, quiet_words
from dynolog.analysis.rank.gap_work import GapWork
from dynolog.analysis.rank.idle_causes import LAUNCH_GAP_NS
from dynolog.analysis.rank.rank_summary import RankSummary
from dynolog.analysis.wording import ms, pct, short

_WORTH_NAMING, _MOSTLY = 0.1, 0.3  # of the gaps
_LAUNCH = re.compile(r"\A(cuda|hip)(\w*Launch|GraphLaunch)|\Acu\w*Launch", re.IGNORECASE)
_MEMORY_CALL = re.compile(r"\A(cuda|hip)(Malloc|Free)|\Acu(Mem|Address)|emptyCache", re.IGNORECASE)


def _host_while(concerned: list[Concerned], cause: str) -> Mapping[str, float]:
    """What the host's counters were in the gaps of that cause, else in all the time; {} without counters."""
    device = most_of(concerned).device
    return device.host_while.get(cause, device.host_while.get("all", {})) if device else {}


def share_of(cause: str) -> Callable[[RankSummary], float]:
    """The share of the device's time that is idle for one cause."""

    def share(rank: RankSummary) -> float:
        if rank.main is None or not rank.main.split.span_ns:
            return 0.0
        return float(getattr(rank.main.split.idle, f"{cause}_ns")) / rank.main.split.span_ns

    return share


def data_loader_share(rank: RankSummary) -> float:
    """Idle time of the device for the data loader; without a device, the loop's time in it."""
    if rank.main is not None:
        return share_of("data_loader")(rank)
    return rank.data_loader_ns / rank.span_ns if rank.span_ns else 0.0


def data_loader(kind: str, concerned: list[Concerned]) -> Finding:
    """The device has nothing to do because the next batch is not there."""
    worst = most_of(concerned)
    values = _host_while(concerned, "data_loader") if worst.device else worst.rank.host_loading
    words = host_words(values)
    what = "GPU idle" if worst.device else "The loop waits"
    title = f"{what} {mean_share(concerned)}: data loader" + (f"; {', '.join(words)}" if words else "")
    evidence = [
        (
            f"the loop is in the data loader's `__next__` for {ms(worst.rank.data_loader_ns)} of {ms(worst.rank.span_ns)} "
            f"(rank {worst.rank.rank})"
        )
    ]
    if quiet := quiet_words(values):
        evidence.append(
            f"meanwhile the host was not busy ({quiet}): few workers are slow by themselves, or wait for something else"
        )
    elif not words:
        evidence.append("host counters in the trace (`dyno gputrace --with-host`) would tell CPU from disk")
    advice = [
        "more workers (`num_workers`), `persistent_workers`, a larger `prefetch_factor`",
        "cheaper samples: decode and augment before training, larger files, a faster disk or cache",
    ]
    return finding(kind, concerned, title, evidence, advice)


def launch_bound(kind: str, concerned: list[Concerned]) -> Finding:
    """Short gaps between short kernels."""
    worst = most_of(concerned)
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
    title = f"GPU idle {mean_share(concerned)}: launch-bound, kernels are shorter than their launches"
    return finding(kind, concerned, title, evidence, advice)


def host_wait(kind: str, concerned: list[Concerned]) -> Finding:
    """Long gaps in which the host launches nothing."""
    worst = most_of(concerned)
    assert worst.device is not None
    idle = worst.device.split.idle
    words = host_words(_host_while(concerned, "cpu"))
    synced = idle.after_sync_ns * 2 >= idle.cpu_ns
    why = "waits for the device, then begins anew" if synced else "launches nothing for long"
    title = f"GPU idle {mean_share(concerned)}: the host {why}" + (f"; {', '.join(words)}" if words else "")
    evidence = [
        (
            f"gaps of more than {LAUNCH_GAP_NS // 1000} µs or after a synchronisation add up to {ms(idle.cpu_ns)}, "
            f"{pct(idle.after_sync_ns / max(idle.cpu_ns, 1))} of it after one; the longest gap lasts {ms(idle.longest_ns)} "
            f"(rank {worst.rank.rank})"
        )
    ]
    # Each wait costs a gap, however long it lasts: a step's last one covers all of its work.
    often = sorted(worst.rank.syncs, key=lambda sync: -sync.count)[:2]
    evidence += [f"{sync.count} waits for the device in {short(sync.name)}" for sync in often if synced]
    meanwhile, tries = _meanwhile(worst.device.cpu_gaps)
    evidence += meanwhile
    advice = (
        ["avoid `.item()`, `.cpu()`, `print` of tensors and `nonzero` in the loop, or ask for them every few steps"]
        if synced
        else tries
    )
    return finding(
        kind, concerned, title, evidence, [*advice, "record with Python stacks (`--with-stacks`) to see the lines"]
    )


def _meanwhile(gaps: GapWork) -> tuple[list[str], list[str]]:
    """What the host did in the gaps, and what to try against that."""
    evidence, advice = [], []
    calls = [row for row in gaps.calls if row.total_us * 1000 >= _WORTH_NAMING * gaps.gaps_ns][:2]
    if calls:
        named = ", ".join(f"{short(row.name)} for {ms(row.total_us * 1000)} ({row.count} calls)" for row in calls)
        evidence.append(f"meanwhile the host is in {named}")
    memory_us = sum(row.total_us for row in gaps.calls if _MEMORY_CALL.search(row.name))
    if memory_us * 1000 >= _MOSTLY * gaps.gaps_ns:
        advice.append(
            "memory of the device is allocated and freed in the loop: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, fewer "
            "different shapes, less memory in use, no `empty_cache()`"
        )
    launching_us = sum(row.total_us for row in gaps.calls if _LAUNCH.search(row.name))
    if launching_us * 1000 >= _MOSTLY * gaps.gaps_ns:
        advice.append(
            "launches themselves take long: the first of a kernel loads its code, so record later (NVIDIA: or set "
            "`CUDA_MODULE_LOADING=EAGER`); if they always do, a tool or the driver holds them up"
        )
    if gaps.outside_ns >= _MOSTLY * gaps.gaps_ns:
        evidence.append(f"for {ms(gaps.outside_ns)} the host is in no operator and no call: Python itself")
        advice.append("garbage collection: `gc.freeze()` after the set-up, `gc.disable()` and `gc.collect()` by hand")
    return evidence, [
        *advice,
        "move work of Python out of the loop (logging, metrics, checkpoints), or to another thread",
    ]


def unused_share(rank: RankSummary) -> float:
    """The share of the recording before the device's first work and after its last."""
    if rank.main is None or not rank.span_ns:
        return 0.0
    return 1 - min(rank.main.split.span_ns / rank.span_ns, 1.0)


def unused_device(kind: str, concerned: list[Concerned]) -> Finding:
    """The device works for a part of the recording only: all other shares are of that part."""
    worst = most_of(concerned)
    assert worst.device is not None
    split, rank = worst.device.split, worst.rank
    before_ns = split.begin_ns - rank.begin_ns
    after_ns = rank.span_ns - before_ns - split.span_ns
    evidence = [
        (
            f"of {ms(rank.span_ns)} recorded, {ms(before_ns)} are before its first work, {ms(after_ns)} after its last "
            f"(rank {rank.rank}); all other shares are of the {ms(split.span_ns)} between"
        )
    ]
    slowest = max(rank.operators, key=lambda row: row.self_us, default=None)
    if slowest is not None:
        evidence.append(
            f"most time of the host's operators: {short(slowest.name)}, {ms(slowest.self_us * 1000)} in {slowest.count} calls"
        )
    advice = [
        "what the host does then (operators below, or record with Python stacks): compiling, loading, evaluation on the CPU",
        "when it is only how a run begins or ends: record later",
    ]
    return finding(
        kind, concerned, f"The GPU has no work for {mean_share(concerned)} of the recording", evidence, advice
    )


def host_collective(kind: str, concerned: list[Concerned]) -> Finding:
    """Gaps that a collective of the CPU covers."""
    title = f"GPU idle {mean_share(concerned)}: the host waits for other ranks in a collective of the CPU"
    advice = ["fewer barriers and object collectives (`all_gather_object`) in the loop", "look at the slowest rank"]
    return finding(kind, concerned, title, ["gloo, MPI or barrier calls cover these gaps"], advice)


def queued(kind: str, concerned: list[Concerned]) -> Finding:
    """Gaps before work that had been handed over."""
    title = f"GPU idle {mean_share(concerned)} although work was queued"
    evidence = ["the launch that ends such a gap was made before the gap began"]
    advice = [
        "the stream waits for something that is not in the trace: events of other processes, host functions, or a peer's memory",
        "or the trace is a sample, with kernels left out",
    ]
    return finding(kind, concerned, title, evidence, advice)
