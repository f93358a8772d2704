"""Copies and sets by kind: how many bytes, how fast, and how much of the time nothing else ran."""

import re

import msgspec
import numpy as np

from dynolog.analysis.rank.gpu_work import GpuWork
from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import TraceColumns
from dynolog.analysis.reading.intervals import Intervals, intersection

_KIND = re.compile(r"\((\w+ -> \w+|\w+)\)\Z")
_COPY_KINDS = {0: "HtoH", 1: "HtoD", 2: "DtoH", 3: "DtoD", 4: "default"}  # hipMemcpyKind, as ROCm's traces spell it


class CopyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind, as the trace names it (`Memcpy HtoD (Pageable -> Device)`). `bytes` and the rate are None where sizes are unknown.

    `bytes_per_s` is of all bytes over the sum of durations. `exposed_us` is how long such copies ran alone.
    """

    kind: str
    count: int
    total_us: float
    exposed_us: float
    bytes: int | None
    bytes_per_s: float | None


def memory_traffic(trace: TraceColumns, work: GpuWork, exposed: Intervals) -> list[CopyRow]:
    """The kinds of one device, the longest first."""
    memory = np.flatnonzero(work.memory)
    rows = work.rows[memory]
    rows_found = []
    kinds = [_kind(trace, int(row)) for row in rows]
    for kind in dict.fromkeys(kinds):
        places = memory[[one == kind for one in kinds]]
        lasts_ns = int((work.end_ns - work.begin_ns)[places].sum())
        sizes, known = trace.argument("bytes").at(work.rows[places])
        size = int(sizes[known].sum()) if known.all() else None
        mask = np.zeros(len(work.rows), np.bool_)
        mask[places] = True
        rows_found.append(
            CopyRow(
                kind=kind,
                count=len(places),
                total_us=lasts_ns / 1000,
                exposed_us=intersection(work.covered(mask), exposed).total_ns / 1000,
                bytes=size,
                bytes_per_s=size / lasts_ns * 1e9 if size is not None and lasts_ns else None,
            )
        )
    return sorted(rows_found, key=lambda row: -row.total_us)


def _kind(trace: TraceColumns, row: int) -> str:
    name = trace.names[int(trace.name[row])]
    if trace.category[row] == Category.MEMSET or _KIND.search(name) or "to" in name:
        return name
    label = trace.argument("copy_kind").label(row)
    return f"{name} {label}" if label else name
