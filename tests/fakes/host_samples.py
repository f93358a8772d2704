"""Samples of a host as its daemon gives them, and a trace with them in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dynolog.analysis.editing.host_tracks import Window, add_tracks
from dynolog.model.host_samples import HostSeries, SampleBlock
from fakes.traces import operation, trace

MS = 1_000_000
# 2026-11-30 12:00:00 UTC and some ns: a trace's base, as libkineto writes them.
BASE_NS = 1_796_040_000_000_000_123
SHA256 = "ab" * 32


def block(
    begin_wall_ns: int,
    series: Mapping[str, Sequence[float | None]],
    *,
    interval_ns: int = 100 * MS,
    held: bool = False,
) -> SampleBlock:
    """Samples one interval after the other; `held`: what lasts until it changes."""
    count = len(next(iter(series.values())))
    begins = tuple(begin_wall_ns + number * interval_ns for number in range(count))
    return SampleBlock(
        begin_wall_ns=begins,
        begin_monotonic_ns=tuple(begin_ns - BASE_NS for begin_ns in begins),
        elapsed_ns=(0 if held else interval_ns,) * count,
        series=tuple(HostSeries(name, tuple(values)) for name, values in series.items()),
    )


def example(path: Path) -> Path:
    """A trace of one second in which the GPU computes for half a second, then waits while CPU and disk are busy and its clock is low."""
    begin_us = 1000.5
    events = [
        operation("aten::mm", begin_us, 400_000.0, pid=77, tid=77),
        operation("gemm", begin_us + 10, 500_000.0, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7}),
        operation("DataLoader", begin_us + 500_000, 500_000.0, cat="user_annotation", pid=77, tid=77),
    ]
    path.write_bytes(trace(events, {"baseTimeNanoseconds": BASE_NS, "traceName": path.name}))
    begin_ns = BASE_NS + int(begin_us * 1000)
    busy = [10.0] * 6 + [98.0] * 6
    blocks = [
        block(
            begin_ns - 50 * MS,
            {
                "cpu_user_pct": busy,
                "disk_read_bytes_per_s": [0.0] * 6 + [1.9e9] * 6,
                "run_queue": [1.0] * 6 + [40.0] * 6,
                "cpu_count": [32.0] * 12,
            },
        ),
        block(
            begin_ns - 900 * MS,
            {"gpu_clock_mhz.0": [1980.0, 1200.0], "gpu_throttle.0": [0.0, 128.0]},
            interval_ns=1000 * MS,
            held=True,
        ),
    ]
    add_tracks(str(path), blocks, Window(begin_wall_ns=begin_ns, end_wall_ns=begin_ns + 1000 * MS), SHA256, str(path))
    return path
