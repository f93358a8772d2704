"""Times, rates and ranks as findings say them."""

from collections.abc import Sequence


def ms(duration_ns: float) -> str:
    """`0.012 ms`, `3.4 ms`, `1,230 ms`: one unit for all, three digits."""
    value = duration_ns / 1e6
    if abs(value) >= 100:
        return f"{value:,.0f} ms"
    if abs(value) >= 10:
        return f"{value:.1f} ms"
    return f"{value:.2f} ms" if abs(value) >= 0.1 else f"{value:.3f} ms"


def rate(bytes_per_s: float) -> str:
    """`1.9 GB/s`, `250 MB/s`."""
    return f"{bytes_per_s / 1e9:.1f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.0f} MB/s"


def size(size_bytes: float) -> str:
    """`50.0 MB`, `1.2 GB`, `4 kB`."""
    if size_bytes >= 1e9:
        return f"{size_bytes / 1e9:.1f} GB"
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.0f} kB"


def pct(share: float) -> str:
    """`31 %`; below ten with one decimal."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def rank_list(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-5, 7`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    spelled = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    shown = ", ".join(spelled[:8]) + (f" and {len(spelled) - 8} more ranges" if len(spelled) > 8 else "")
    return ("rank " if len(ranks) == 1 else "ranks ") + shown


def short(name: str, width: int = 60) -> str:
    """A kernel's name without its middle."""
    if len(name) <= width:
        return name
    head = width * 2 // 3
    return f"{name[:head]}…{name[-(width - head - 1) :]}"
