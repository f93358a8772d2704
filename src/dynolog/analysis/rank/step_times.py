"""How long iterations took, and what the device did in each."""

import statistics

import msgspec
import numpy as np

from dynolog.analysis.rank.step_spans import find_steps, step_numbers
from dynolog.analysis.rank.time_split import Occupation
from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import Integers, TraceColumns
from dynolog.analysis.reading.intervals import Intervals


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """One iteration by the host's clock. It lasts until the next one begins, the last until its own mark ends.

    `whole` is false for one that the recording cuts. The times of the device are what it did between begin and end.
    """

    number: int
    begin_ns: int
    duration_ns: int
    whole: bool = True
    compute_ns: int = 0
    exposed_communication_ns: int = 0
    data_loader_ns: int = 0


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`source` is "ProfilerStep", "optimizer", or "" when nothing tells steps. The spread is over whole steps; None without any."""

    source: str
    steps: list[StepTime]
    median_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    stdev_ns: float | None = None

    @property
    def mean_ns(self) -> float | None:
        """Of whole steps; None without any."""
        return statistics.mean(step.duration_ns for step in self.whole) if self.whole else None

    @property
    def whole(self) -> list[StepTime]:
        """Those that the recording does not cut."""
        return [step for step in self.steps if step.whole]


def step_facts(trace: TraceColumns, parts: Occupation | None, loader: Intervals) -> StepFacts:
    """The steps of a trace; `parts` is what the device did, None for traces of the CPU alone."""
    found = find_steps(trace)
    if not found.spans:
        return StepFacts(source="", steps=[])
    if found.source == "ProfilerStep":
        numbers, begins, ends, whole = _profiler_steps(trace)
    else:
        numbers = [span.number for span in found.spans]
        begins = np.array([span.begin_ns for span in found.spans])
        ends = np.array([span.end_ns for span in found.spans])
        whole = [number > 0 for number in numbers]  # the first began before the recording
    nothing = Intervals()
    compute = parts.compute if parts is not None else nothing
    exposed = parts.exposed_communication if parts is not None else nothing
    inside = [spans.within(begins, ends) for spans in (compute, exposed, loader)]
    steps = [
        StepTime(
            number=number,
            begin_ns=int(begins[i]),
            duration_ns=max(int(ends[i] - begins[i]), 0),
            whole=whole[i] and bool(ends[i] > begins[i]),  # a damaged mark tells no time
            compute_ns=int(inside[0][i]),
            exposed_communication_ns=int(inside[1][i]),
            data_loader_ns=int(inside[2][i]),
        )
        for i, number in enumerate(numbers)
    ]
    return _with_spread(found.source, steps)


def _with_spread(source: str, steps: list[StepTime]) -> StepFacts:
    durations = [step.duration_ns for step in steps if step.whole]
    if not durations:
        return StepFacts(source=source, steps=steps)
    return StepFacts(
        source=source,
        steps=steps,
        median_ns=int(statistics.median(durations)),
        min_ns=min(durations),
        max_ns=max(durations),
        stdev_ns=statistics.stdev(durations) if len(durations) > 1 else None,
    )


def _profiler_steps(trace: TraceColumns) -> tuple[list[int], Integers, Integers, list[bool]]:
    """By the marks of the host; those of the device only where the host has none. A step that is not followed lasts as its mark."""
    number_of = step_numbers(trace.names)
    marks = trace.rows_of(Category.USER_ANNOTATION, Category.CPU_OP)
    rows = marks[np.isin(trace.name[marks], list(number_of))]
    if not len(rows):
        marks = trace.rows_of(Category.GPU_USER_ANNOTATION)
        rows = marks[np.isin(trace.name[marks], list(number_of))]
    numbers = np.array([number_of[name] for name in trace.name[rows].tolist()])
    numbers, first = np.unique(numbers, return_index=True)
    begins, ends = trace.begin_ns[rows[first]], trace.end_ns[rows[first]].copy()
    follows = np.flatnonzero(np.diff(numbers) == 1)
    ends[follows] = np.maximum(begins[follows + 1], begins[follows])
    return numbers.tolist(), begins, ends, [True] * len(numbers)
