"""Samples as they are kept, and pages of them in columns for the wire."""

from array import array
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dynolog.model.host_samples import HostSeries, SampleBlock, SamplePage

# 2 ms to put together and to encode: this runs on the thread that answers trainers.
PAGE_VALUES = 20_000
# What was measured longer ago says nothing of now.
LONGEST_HELD_NS = 60 * 10**9


class Row(msgspec.Struct, frozen=True, gc=False):
    """One sample: Unix ns and monotonic ns of its begin, how long it is (0: from then on), and values by their names."""

    wall_ns: int
    monotonic_ns: int
    elapsed_ns: int
    names: tuple[str, ...]
    values: "array[float]"


def page(rows: Sequence[Row], begin_wall_ns: int, end_wall_ns: int) -> SamplePage:
    """Rows that reach into a time, oldest first, up to PAGE_VALUES values and one row at least; those of one moment are never torn apart.

    Of those without a length the last one in the minute before the time counts too: it still held.
    """
    chosen = _within(rows, begin_wall_ns, end_wall_ns)
    kept: list[Row] = []
    values = 0
    next_wall_ns = 0
    for row in chosen:
        values += len(row.values)
        if values > PAGE_VALUES and kept and row.wall_ns > kept[-1].wall_ns:
            next_wall_ns = row.wall_ns
            break
        kept.append(row)
    return SamplePage(blocks=tuple(_blocks(kept)), next_wall_ns=next_wall_ns)


def _within(rows: Sequence[Row], begin_wall_ns: int, end_wall_ns: int) -> list[Row]:
    chosen = []
    held: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row.wall_ns > end_wall_ns:
            continue
        if row.wall_ns + row.elapsed_ns > begin_wall_ns or row.wall_ns >= begin_wall_ns:
            chosen.append(row)
        elif not row.elapsed_ns and row.wall_ns >= begin_wall_ns - LONGEST_HELD_NS:
            held[row.names] = row
    return sorted([*held.values(), *chosen], key=lambda row: row.wall_ns)


def _blocks(rows: Iterable[Row]) -> Iterator[SampleBlock]:
    # Samples and what is held come in turns: each kind is put together by itself, or every row would be a block.
    kinds: dict[tuple[bool, tuple[str, ...]], list[Row]] = {}
    for row in rows:
        kinds.setdefault((row.elapsed_ns > 0, row.names), []).append(row)
    for (_, names), members in kinds.items():
        columns = zip(*(row.values for row in members), strict=True)
        yield SampleBlock(
            begin_wall_ns=tuple(row.wall_ns for row in members),
            begin_monotonic_ns=tuple(row.monotonic_ns for row in members),
            elapsed_ns=tuple(row.elapsed_ns for row in members),
            series=tuple(HostSeries(name, column) for name, column in zip(names, columns, strict=True)),
        )
