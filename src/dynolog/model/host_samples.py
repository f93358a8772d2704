"""What the host did while something was recorded: samples in columns, each with the time that it is of."""

from collections.abc import Iterable, Iterator

import msgspec

_PROCESS = "gpu_process."
_HELD = "gpu_held."


class HostSeries(msgspec.Struct, frozen=True):
    """One counter. `name` is its metric with its unit, and its device behind a dot: `nic_rx_bytes_per_s.eth0`. None: not known."""

    name: str
    values: tuple[float | None, ...]


class SampleBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Samples that have the same series, oldest first.

    Each is of the time from `begin_wall_ns` (Unix ns; `begin_monotonic_ns` is the same moment on CLOCK_MONOTONIC) for `elapsed_ns`. With
    0 it is the state of that moment, which lasts until the next one.
    """

    begin_wall_ns: tuple[int, ...]
    begin_monotonic_ns: tuple[int, ...]
    elapsed_ns: tuple[int, ...]
    series: tuple[HostSeries, ...]


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of a time, and where to go on (`next_wall_ns`, Unix ns; 0: that was all)."""

    blocks: tuple[SampleBlock, ...] = ()
    next_wall_ns: int = 0


def process_series(device: str, pid: int) -> str:
    """The name of the series that is 1 while the driver lists this process (the host's pid) on a device."""
    return f"{_PROCESS}{device}.{pid}"


def of_process(blocks: Iterable[SampleBlock], pid: int) -> Iterator[SampleBlock]:
    """The samples as a trace of one process has them: `gpu_held.DEVICE` for each device that it works on, nothing of other processes."""
    for block in blocks:
        series = tuple(kept for one in block.series if (kept := _of_process(one, pid)) is not None)
        if series:
            yield msgspec.structs.replace(block, series=series)


def _of_process(series: HostSeries, pid: int) -> HostSeries | None:
    if not series.name.startswith(_PROCESS):
        return series
    device, _, whose = series.name.removeprefix(_PROCESS).rpartition(".")
    return HostSeries(f"{_HELD}{device}", series.values) if whose == str(pid) else None
