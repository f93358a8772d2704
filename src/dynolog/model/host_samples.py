"""What the host did while something was recorded: samples in columns, each with the time that it is of."""

import msgspec


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
