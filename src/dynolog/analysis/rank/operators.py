"""Operators of the framework: how long each took on the host, and how long what it launched took on the device."""

import msgspec
import numpy as np

from dynolog.analysis.rank.call_tree import CallTree, call_tree
from dynolog.analysis.rank.gpu_work import GpuWork
from dynolog.analysis.reading.categories import LAUNCHES, Category
from dynolog.analysis.reading.columns import Integers, TraceColumns

MODULE_FRAME = "nn.Module: "


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """`host_us` counts what an operator calls, `self_us` does not; `device_us` is the work that it, or what it called, launched."""

    name: str
    count: int
    host_us: float
    self_us: float
    device_us: float
    mean_us: float
    p99_us: float


class ModuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A module of the model: the device's time of what was launched within it (forward; backward where operators are numbered)."""

    name: str
    launches: int
    device_us: float


def host_tree(trace: TraceColumns) -> CallTree:
    """Operators, module frames when they were loaded, and the calls that launch."""
    rows = trace.rows_of(Category.CPU_OP, *LAUNCHES)
    frames = trace.rows_of(Category.PYTHON_FUNCTION)
    if len(frames):
        frames = frames[trace.names_matching(MODULE_FRAME)[trace.name[frames]]]
        rows = np.concatenate((rows, frames))
    return call_tree(trace, rows)


def device_ns(tree: CallTree, work: list[GpuWork], launches: list[Integers]) -> Integers:
    """For each place of the tree the time of the work that this call launched."""
    own = np.zeros(len(tree.rows), np.int64)
    by_row = np.argsort(tree.rows)
    for one, calls in zip(work, launches, strict=True):
        matched = calls >= 0
        places = by_row[np.searchsorted(tree.rows, calls[matched], sorter=by_row)]
        np.add.at(own, places, (one.end_ns - one.begin_ns)[matched])
    return own


def operator_table(trace: TraceColumns, tree: CallTree, own_device_ns: Integers) -> list[OperatorRow]:
    """All operators, those whose launches took longest on the device first, then those with the most time of their own."""
    is_operator = trace.category[tree.rows] == Category.CPU_OP
    with_callees = tree.with_callees(own_device_ns.astype(np.float64))[is_operator]
    self_ns = tree.self_ns()[is_operator]
    lasts = tree.duration_ns[is_operator]
    name = trace.name[tree.rows[is_operator]]
    order = np.lexsort((lasts, name))
    rows = []
    starts = np.flatnonzero(np.concatenate(([True], np.diff(name[order]) != 0))) if len(name) else np.zeros(0, np.int64)
    for places in np.split(order, starts[1:]) if len(starts) else ():
        total = int(lasts[places].sum())
        rows.append(
            OperatorRow(
                name=trace.names[int(name[places[0]])],
                count=len(places),
                host_us=total / 1000,
                self_us=int(self_ns[places].sum()) / 1000,
                device_us=float(with_callees[places].sum()) / 1000,
                mean_us=total / len(places) / 1000,
                p99_us=float(np.percentile(lasts[places], 99)) / 1000,
            )
        )
    return sorted(rows, key=lambda row: (-row.device_us, -row.self_us))


def module_table(trace: TraceColumns, tree: CallTree, own_device_ns: Integers) -> list[ModuleRow]:
    """The device's time by innermost module, the longest first; empty when the trace names none."""
    own, labels = _modules(trace, tree)
    if not labels:
        return []
    module = _with_backward(trace, tree, tree.inherited(own))
    some = (own_device_ns > 0) & (module >= 0)
    total = np.bincount(module[some], weights=own_device_ns[some], minlength=len(labels))
    launches = np.bincount(module[some], minlength=len(labels))
    rows = [
        ModuleRow(name=label, launches=int(launches[i]), device_us=float(total[i]) / 1000)
        for i, label in enumerate(labels)
        if launches[i]
    ]
    return sorted(rows, key=lambda row: -row.device_us)


def _modules(trace: TraceColumns, tree: CallTree) -> tuple[Integers, list[str]]:
    """What each place says of its module: `Module Hierarchy` of operators, else frames of modules."""
    column = trace.argument("module")
    values, known = column.at(tree.rows)
    if known.any() and column.labels is not None:
        return np.where(known, values, -1).astype(np.int64), column.labels
    is_frame = trace.category[tree.rows] == Category.PYTHON_FUNCTION
    if not is_frame.any():
        return np.full(len(tree.rows), -1, np.int64), []
    numbers = np.unique(trace.name[tree.rows[is_frame]])
    labels = [trace.names[int(number)].removeprefix(MODULE_FRAME) for number in numbers]
    own = np.where(is_frame, np.searchsorted(numbers, trace.name[tree.rows]), -1)
    return own.astype(np.int64), labels


def _with_backward(trace: TraceColumns, tree: CallTree, module: Integers) -> Integers:
    """Backward runs without modules on a thread of its own: an operator there has the sequence number of its forward operator."""
    sequence, known = trace.argument("sequence_number").at(tree.rows)
    forward = known & (module >= 0)
    lost = np.flatnonzero(known & (module < 0))
    if not forward.any() or not len(lost):
        return module
    numbers, first = np.unique(sequence[forward], return_index=True)
    place = np.minimum(np.searchsorted(numbers, sequence[lost]), len(numbers) - 1)
    matches = numbers[place] == sequence[lost]
    found = module.copy()
    found[lost[matches]] = module[forward][first[place[matches]]]
    return tree.inherited(found)
