"""Every collective of one rank: which, of which group, how much, and when it began and ended."""

import re

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynolog.analysis.rank.gpu_work import communication_names
from dynolog.analysis.reading.categories import Category
from dynolog.analysis.reading.columns import NONE, Integers, TraceColumns

# Only these annotations of the host last until the collective is done.
_HOST = ("gloo:", "mpi:")
# First what contains the others' names.
_KINDS = (
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_reduce", re.compile(r"all_?reduce|cross_device_reduce", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
    ("send_recv", re.compile(r"send|recv", re.IGNORECASE)),
)
_ELEMENT_BYTES = {
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "float16"), 2),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("double", "long", "float64", "int64", "complexfloat"), 8),
}
_BUS_FACTOR = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}


class CollectiveCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Arrays of one rank, by begin, in its own clock. `key` numbers `keys`: kernel (or annotation) and group, what ranks have in
    common. `kind` numbers `kinds`. `size_bytes`, `sequence` and `group_size` are NONE where the trace is silent."""

    begin_ns: Integers
    end_ns: Integers
    key: Integers
    keys: list[str]
    kind: Integers
    kinds: list[str]
    size_bytes: Integers
    sequence: Integers
    group_size: Integers
    on_device: bool

    def __len__(self) -> int:
        return len(self.begin_ns)


def collective_calls(trace: TraceColumns) -> CollectiveCalls:
    """Those on devices when there are any, else those of the host that last until they are done."""
    kernels = trace.rows_of(Category.KERNEL)
    rows = kernels[communication_names(trace)[trace.name[kernels]]]
    on_device = bool(len(rows))
    if not on_device:
        annotations = trace.rows_of(Category.USER_ANNOTATION)
        rows = annotations[trace.names_matching(*_HOST)[trace.name[annotations]]]
    rows = rows[np.argsort(trace.begin_ns[rows], kind="stable")]
    described = _described_by(trace, rows)
    groups, grouped = _labels(trace, "group_name", described)
    named, is_named = _labels(trace, "collective", described)
    names = [trace.names[int(name)] for name in trace.name[rows]]
    key_texts = [f"{name}|{group if known else ''}" for name, group, known in zip(names, groups, grouped, strict=True)]
    kind_texts = [kind_of(text if known else name) for text, known, name in zip(named, is_named, names, strict=True)]
    key_numbers = {text: number for number, text in enumerate(dict.fromkeys(key_texts))}
    kind_numbers = {text: number for number, text in enumerate(dict.fromkeys(kind_texts))}
    return CollectiveCalls(
        begin_ns=trace.begin_ns[rows],
        end_ns=trace.end_ns[rows],
        key=np.array([key_numbers[text] for text in key_texts], np.int64),
        keys=list(key_numbers),
        kind=np.array([kind_numbers[text] for text in kind_texts], np.int64),
        kinds=list(kind_numbers),
        size_bytes=_sizes(trace, rows, described),
        sequence=_argument(trace, "collective_sequence", described),
        group_size=_argument(trace, "group_size", described),
        on_device=on_device,
    )


def kind_of(name: str) -> str:
    """`all_reduce`, `send_recv`...: what a kernel's or a collective's name stands for; `other` when it says nothing."""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")


def bus_bytes(kind: str, size_bytes: int, group_size: int) -> float:
    """What the busiest link of a rank must carry, in bytes, whatever the algorithm: the `busbw` that NCCL's tests define.

    `size_bytes` is the larger of a rank's input and output. Groups of one move nothing.
    """
    factor = _BUS_FACTOR.get(kind)
    if factor is None:
        return float(size_bytes)
    return size_bytes * factor * (group_size - 1) / max(group_size, 1)


def _described_by(trace: TraceColumns, rows: Integers) -> Integers:
    """The row that carries the collective's arguments: the kernel's own, else the operator that launched it; the row itself if none."""
    column = trace.argument("in_elements")
    _, own = column.at(rows)
    if own.all() or not len(column.rows):
        return rows
    carriers = column.rows[trace.external_id[column.rows] != NONE]
    if not len(carriers):
        return rows
    order = np.argsort(trace.external_id[carriers], kind="stable")
    carriers = carriers[order]
    numbers = trace.external_id[carriers]
    wanted = trace.external_id[rows]
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    matches = (numbers[place] == wanted) & ~own & (wanted != NONE)
    return np.where(matches, carriers[place], rows)


def _labels(trace: TraceColumns, argument: str, rows: Integers) -> tuple[list[str], NDArray[np.bool_]]:
    column = trace.argument(argument)
    values, known = column.at(rows)
    if column.labels is None:
        return [""] * len(rows), np.zeros(len(rows), np.bool_)
    return [column.labels[int(value)] if one else "" for value, one in zip(values, known, strict=True)], known


def _argument(trace: TraceColumns, argument: str, rows: Integers) -> Integers:
    values, known = trace.argument(argument).at(rows)
    return np.where(known, values.astype(np.int64), NONE)


def _sizes(trace: TraceColumns, rows: Integers, described: Integers) -> Integers:
    elements = np.maximum(_argument(trace, "in_elements", described), _argument(trace, "out_elements", described))
    types, typed = _labels(trace, "element_type", described)
    widths = np.array([_width(text) if known else 0 for text, known in zip(types, typed, strict=True)], np.int64)
    sizes = np.where((elements != NONE) & (widths > 0), elements * widths, NONE)
    shapes = trace.argument("input_dims")
    for place in np.flatnonzero(sizes == NONE).tolist() if shapes.labels is not None else ():
        dims, element = shapes.label(int(rows[place])), trace.argument("input_types").label(int(rows[place]))
        if dims and element and (size := size_of_shapes(dims, element)):
            sizes[place] = size
    return sizes


def size_of_shapes(dims: str, types: str) -> int:
    """Bytes of tensors by `Input Dims` and `Input type`, as JSON; 0 where they cannot be told."""
    try:
        shapes = msgspec.json.decode(dims)
        elements = msgspec.json.decode(types)
    except msgspec.DecodeError:
        return 0
    if not isinstance(shapes, list) or not isinstance(elements, list):
        return 0
    return sum(_count(shape) * _width(str(element)) for shape, element in zip(shapes, elements, strict=False))


def _count(shape: object) -> int:
    if not isinstance(shape, list) or not shape:
        return 0
    if isinstance(shape[0], list):
        return sum(map(_count, shape))
    count = 1
    for extent in shape:
        count *= extent if isinstance(extent, int) else 0
    return count


def _width(element: str) -> int:
    lowered = element.lower().removeprefix("c10::")
    return 1 if lowered.startswith("float8") else _ELEMENT_BYTES.get(lowered, 0)
