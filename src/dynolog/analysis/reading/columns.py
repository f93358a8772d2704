"""A trace in memory: one array a field instead of one object an event, so that a million events take tens of megabytes.

The arrays are numpy's: sorting, unions of intervals and percentiles over them run at memory speed, which no structure of Python
objects does. Times are integers in ns, absolute (`baseTimeNanoseconds` included), and exact to the last digit of the file.

    from dynolog.analysis.reading.load import LoadOptions, load
    trace = load("rank3.json.gz", LoadOptions())
    kernels = trace.rows_of(Category.KERNEL)              # row numbers, in file order
    busy_ns = trace.duration_ns[kernels].sum()
    sizes, known = trace.argument("bytes").at(kernels)    # values, and a mask of the rows that have one
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.read_report import ReadReport

# What stands in an integer column where the trace says nothing. Missing is never 0 or -1: both are streams, and ids.
NONE = int(np.iinfo(np.int64).min)

Integers = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]


class ArgumentColumn(msgspec.Struct, frozen=True):
    """One argument, for the rows that have it. `values` are int64, float64 or, when `labels` is given, numbers of labels."""

    rows: Integers
    values: NDArray[Any]
    labels: list[str] | None = None

    def at(self, rows: Integers) -> tuple[NDArray[Any], Mask]:
        """The values at some rows, and which of the rows have one; the value of the others means nothing."""
        if not len(self.rows):
            return np.zeros(len(rows), dtype=self.values.dtype), np.zeros(len(rows), dtype=np.bool_)
        places = np.searchsorted(self.rows, rows)
        places[places == len(self.rows)] = 0
        return self.values[places], self.rows[places] == rows

    def label(self, row: int) -> str | None:
        """The text at one row, None when it has none."""
        values, known = self.at(np.array([row]))
        return self.labels[int(values[0])] if self.labels is not None and known[0] else None


class Flows(msgspec.Struct, frozen=True):
    """Arrows between events: `phase` is the byte of `s`, `t` or `f`; `kind` numbers `kinds` (`ac2g`, `fwdbwd`...)."""

    at_ns: Integers
    phase: NDArray[np.uint8]
    id: Integers
    kind: Ids
    process: Ids
    thread: Ids
    kinds: list[str]


class Counters(msgspec.Struct, frozen=True):
    """Samples of counter tracks: `series` numbers (counter name, name of the value in it, process)."""

    at_ns: Integers
    series: Ids
    value: NDArray[np.float64]
    series_names: list[tuple[str, str, int | str]]


class Instants(msgspec.Struct, frozen=True):
    """Marks without a duration (`ph` i or I); `name` numbers the trace's `names`."""

    at_ns: Integers
    name: Ids
    process: Ids
    thread: Ids


class TrackName(msgspec.Struct, kw_only=True):
    """What metadata events say of a process (thread None) or a thread."""

    name: str = ""
    labels: str = ""
    sort_index: int | None = None


class TraceHead(msgspec.Struct, kw_only=True):
    """What stands beside the events. `rank` comes from `distributedInfo`; None when the file does not say.

    `base_ns` is `baseTimeNanoseconds` (0: times are absolute as they are). `members` are all members of the document but the events.
    """

    rank: int | None = None
    world_size: int | None = None
    backend: str = ""
    host: str = ""
    base_ns: int = 0
    devices: list[dict[str, object]] = []
    distributed_info: dict[str, object] = {}
    members: dict[str, object] = {}


class TraceColumns(msgspec.Struct, kw_only=True):
    """One trace. Row i of every array is the same complete event; rows are in the order of the file.

    `name`, `process`, `thread`, `raw_category` number `names`, `processes`, `threads`, `raw_categories`. `device`, `stream`,
    `correlation` and `external_id` are NONE where the event has none. `arguments` has the rest (ARGUMENTS in event_fields.py).
    Durations that the file lacks are 0; negative ones are kept, and counted in `report.warnings`.
    """

    begin_ns: Integers
    duration_ns: Integers
    category: NDArray[np.uint8]
    raw_category: Ids
    name: Ids
    process: Ids
    thread: Ids
    device: Integers
    stream: Integers
    correlation: Integers
    external_id: Integers
    names: list[str]
    raw_categories: list[str]
    processes: list[int | str]
    threads: list[int | str]
    arguments: dict[str, ArgumentColumn]
    flows: Flows
    counters: Counters
    instants: Instants
    process_names: dict[int | str, TrackName]
    thread_names: dict[tuple[int | str, int | str], TrackName]
    head: TraceHead
    report: ReadReport

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def end_ns(self) -> Integers:
        """Where each event ends."""
        return self.begin_ns + self.duration_ns

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """From the first begin to the last end of all rows but the recording's own span; None without rows."""
        rows = self.category != Category.SPAN
        if not rows.any():
            return None
        return int(self.begin_ns[rows].min()), int(self.end_ns[rows].max())

    def rows_of(self, *categories: Category) -> Integers:
        """The rows of some kinds."""
        mask = np.zeros(max(Category) + 1, dtype=np.bool_)
        mask[list(categories)] = True
        return np.flatnonzero(mask[self.category])

    def argument(self, name: str) -> ArgumentColumn:
        """The column of an argument; an empty one when no event has it."""
        found = self.arguments.get(name)
        return found if found is not None else ArgumentColumn(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def names_matching(self, *prefixes: str) -> Mask:
        """Which numbers of names begin with one of some texts: `trace.names_matching("ProfilerStep#")[trace.name]` masks rows."""
        return np.fromiter((name.startswith(prefixes) for name in self.names), np.bool_, len(self.names))

    def count_by_raw_category(self) -> dict[str, int]:
        """How many rows each category has, as the file names it; most first."""
        counts = np.bincount(self.raw_category, minlength=len(self.raw_categories))
        return {self.raw_categories[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable") if counts[i]}

    def memory_bytes(self) -> int:
        """What the arrays and tables take."""
        return sum(array.nbytes for array in self._arrays()) + sum(map(len, self.names)) + 60 * len(self.names)

    def _arrays(self) -> Iterable[NDArray[np.generic]]:
        for holder in (self, self.flows, self.counters, self.instants, *self.arguments.values()):
            for field in holder.__struct_fields__:
                if isinstance(value := getattr(holder, field), np.ndarray):
                    yield value
