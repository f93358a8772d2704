"""The iterations of a training loop, as far as a trace tells them."""

import re
from collections.abc import Sequence

import msgspec
import numpy as np

from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import Integers, TraceColumns

_NUMBERED = re.compile(r"ProfilerStep\s*#\s*([0-9]{1,18})\Z")
_OPTIMIZER = re.compile(r"Optimizer\.step#")
_BACKWARD = re.compile(r"autograd::engine::evaluate_function|Backward\d*\Z")


class StepSpan(msgspec.Struct, frozen=True):
    """One iteration, in absolute ns: from its first mark's begin to its last one's end, those of devices included."""

    number: int
    begin_ns: int
    end_ns: int


class Steps(msgspec.Struct, frozen=True):
    """`source` is "ProfilerStep", "optimizer" (numbered from 0, each ends with an optimizer's step), or "" when nothing tells them."""

    spans: list[StepSpan]
    source: str = ""


def find_steps(columns: TraceColumns) -> Steps:
    """By the profiler's own marks, which only the Python API makes, else by the ends of optimizer steps."""
    marks = columns.rows_of(Category.USER_ANNOTATION, Category.GPU_USER_ANNOTATION, Category.CPU_OP)
    numbers = step_numbers(columns.names)
    spans: dict[int, StepSpan] = {}
    for row in marks[np.isin(columns.name[marks], list(numbers))].tolist():
        number = numbers[int(columns.name[row])]
        begin, end = int(columns.begin_ns[row]), int(columns.begin_ns[row] + columns.duration_ns[row])
        known = spans.get(number, StepSpan(number, begin, end))
        spans[number] = StepSpan(number, min(begin, known.begin_ns), max(end, known.end_ns))
    if spans:
        return Steps([spans[number] for number in sorted(spans)], "ProfilerStep")
    return _by_optimizer(columns)


def step_numbers(names: Sequence[str]) -> dict[int, int]:
    """Which of a trace's names are marks of the profiler, and the iteration that each is of."""
    return {i: int(match[1]) for i, name in enumerate(names) if (match := _NUMBERED.match(name))}


def _by_optimizer(columns: TraceColumns) -> Steps:
    marks = columns.rows_of(Category.USER_ANNOTATION, Category.CPU_OP)
    named = np.fromiter((bool(_OPTIMIZER.match(name)) for name in columns.names), np.bool_, len(columns.names))
    chosen = marks[named[columns.name[marks]]]
    span = columns.span_ns
    if not len(chosen) or span is None:
        return Steps([])
    # Several optimizers may step in one iteration: then the first one's name tells the iterations.
    chosen = chosen[columns.name[chosen] == columns.name[chosen[np.argmin(columns.begin_ns[chosen])]]]
    ends = _last_of_iterations(columns, chosen)
    begins = [span[0], *ends[:-1]]
    return Steps(
        [StepSpan(i, begin, end) for i, (begin, end) in enumerate(zip(begins, ends, strict=True))], "optimizer"
    )


def _last_of_iterations(columns: TraceColumns, optimizers: Integers) -> list[int]:
    """When the last optimizer of each iteration ended: between two of the same iteration nothing is differentiated. Where a trace has no
    operators of that kind, each is an iteration."""
    order = np.argsort(columns.begin_ns[optimizers], kind="stable")
    begins = columns.begin_ns[optimizers][order]
    ends = np.maximum.accumulate(columns.end_ns[optimizers][order])
    operators = columns.rows_of(Category.CPU_OP)
    backward = np.fromiter((bool(_BACKWARD.search(name)) for name in columns.names), np.bool_, len(columns.names))
    at_ns = np.sort(columns.begin_ns[operators[backward[columns.name[operators]]]])
    if len(at_ns):
        before = np.searchsorted(at_ns, ends[:-1]) < np.searchsorted(at_ns, begins[1:])
        ends = ends[np.append(before, True)]
    found: list[int] = ends.tolist()
    return found
