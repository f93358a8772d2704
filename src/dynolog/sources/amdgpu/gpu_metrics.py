"""The binary table `gpu_metrics` of amdgpu (Documentation/gpu/amdgpu/thermal.rst): what the firmware measured, at one moment."""

import struct

import msgspec

from dynolog.sources.amdgpu.metrics_layout import EMPTY_REVISIONS, LAYOUTS, PARTITION_BUSY, PARTITIONS, Field, Layout

_HEADER = struct.Struct("<HBB")
_BITS = {"H": 16, "I": 32, "Q": 64}


class MetricsTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table. What the chip does not measure (all bits set) is a missing key, or None in a row of links or dies.

    `energy` of v1.4 and later is in 2^-16 J; of older ones the unit is the chip's. `*_cycles` are of 32 bits and wrap. `throttle_bits`
    have the meaning of SMU_THROTTLER_* in amdgpu_smu.h. `partition_busy_pct` is the mean of each partition's dies.
    """

    revision: tuple[int, int]
    numbers: dict[str, int]
    rows: dict[str, tuple[int | None, ...]]
    partition_busy_pct: tuple[float | None, ...] = ()


class UnknownRevision(ValueError):  # noqa: N818 - a table of a newer driver, not a mistake
    """A table whose layout is not known."""

    def __init__(self, revision: tuple[int, int]) -> None:
        super().__init__(f"gpu_metrics of version {revision[0]}.{revision[1]} is not known")
        self.revision = revision


class _Reader:
    """Unpacks the fields of one revision."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._numbers = [_unpacker(name, field) for name, field in layout.fields.items() if field.count == 1]
        self._rows = [_unpacker(name, field) for name, field in layout.fields.items() if field.count > 1]

    def numbers(self, table: bytes) -> dict[str, int]:
        return {
            name: value
            for name, offset, unpack, blank in self._numbers
            if (value := unpack.unpack_from(table, offset)[0]) != blank
        }

    def rows(self, table: bytes) -> dict[str, tuple[int | None, ...]]:
        return {
            name: tuple(None if value == blank else value for value in unpack.unpack_from(table, offset))
            for name, offset, unpack, blank in self._rows
        }

    def busy(self, table: bytes, partitions: int) -> tuple[float | None, ...]:
        """Mean over the dies of each partition that there is."""
        if not self.layout.partition_bytes:
            return ()
        _, offset, unpack, blank = _unpacker("", PARTITION_BUSY)
        shares: list[float | None] = []
        for partition in range(min(partitions, PARTITIONS)):
            start = self.layout.partition_offset + partition * self.layout.partition_bytes + offset
            dies = [share for share in unpack.unpack_from(table, start) if share != blank and share <= 100]
            shares.append(sum(dies) / len(dies) if dies else None)
        return tuple(shares)


def _unpacker(name: str, field: Field) -> tuple[str, int, struct.Struct, int]:
    return name, field.offset, struct.Struct(f"<{field.count}{field.code}"), (1 << _BITS[field.code]) - 1


_READERS = {revision: _Reader(layout) for revision, layout in LAYOUTS.items()}


def parse(table: bytes) -> MetricsTable:
    """Parse a table. Raises UnknownRevision for a layout that is not known, ValueError for one that is cut or says a wrong size."""
    if len(table) < _HEADER.size:
        raise ValueError("gpu_metrics is empty or cut")
    size, *numbers = _HEADER.unpack_from(table)
    revision = (numbers[0], numbers[1])
    if revision in EMPTY_REVISIONS:
        return MetricsTable(revision=revision, numbers={}, rows={})
    reader = _READERS.get(revision)
    if reader is None:
        raise UnknownRevision(revision)
    if size < reader.layout.size or len(table) < reader.layout.size:
        raise ValueError(
            f"gpu_metrics {revision[0]}.{revision[1]} has {min(size, len(table))} bytes, not {reader.layout.size}"
        )
    found = reader.numbers(table)
    return MetricsTable(
        revision=revision,
        numbers=found,
        rows=reader.rows(table),
        partition_busy_pct=reader.busy(table, found.get("partitions", 0)),
    )
