"""Findings about a device that has nothing to do, by cause."""

from collections.abc import Callable

from dynolog.analysis.concerned import Concerned, finding, mean_share, most_of
from dynolog.analysis.finding import Finding
from dynolog.analysis.host_wording import host_words
from dynolog.analysis.idle_causes import LAUNCH_GAP_NS
from dynolog.analysis.rank_summary import RankSummary
from dynolog.analysis.wording import ms, pct, short


def _host_while(concerned: list[Concerned], cause: str) -> list[str]:
    device = most_of(concerned).device
    return host_words(device.host_while.get(cause, device.host_while.get("all", {}))) if device else []


def share_of(cause: str) -> Callable[[RankSummary, int], float]:
    """The share of the device's time that is idle for one cause."""

    def share(rank: RankSummary, _waited_ns: int) -> float:
        if rank.main is None or not rank.main.split.span_ns:
            return 0.0
        return float(getattr(rank.main.split.idle, f"{cause}_ns")) / rank.main.split.span_ns

    return share


def data_loader_share(rank: RankSummary, waited_ns: int) -> float:
    """Idle time of the device for the data loader; without a device, the loop's time in it."""
    if rank.main is not None:
        return share_of("data_loader")(rank, waited_ns)
    return rank.data_loader_ns / rank.span_ns if rank.span_ns else 0.0


def data_loader(kind: str, concerned: list[Concerned]) -> Finding:
    """The device has nothing to do because the next batch is not there."""
    worst = most_of(concerned)
    words = _host_while(concerned, "data_loader")
    what = "GPU idle" if worst.device else "The loop waits"
    title = f"{what} {mean_share(concerned)}: data loader" + (f"; {', '.join(words)}" if words else "")
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
    words = _host_while(concerned, "cpu")
    synced = idle.after_sync_ns * 2 >= idle.cpu_ns
    why = "it waits for the device, then begins anew" if synced else "it launches nothing for long"
    title = f"GPU idle {mean_share(concerned)}: the host, {why}" + (f"; {', '.join(words)}" if words else "")
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
    return finding(
        kind, concerned, title, evidence, [*advice, "record with Python stacks (`--with-stacks`) to see the lines"]
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
