"""What can be done to a trace: cut a time out, leave out what is big and seldom needed, give overlapping events lanes, move its clock."""

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec
import numpy as np

from dynolog.analysis.editing.event_texts import EventText, TextBatch, arguments, microseconds
from dynolog.analysis.editing.lanes import Lanes, lanes_of
from dynolog.analysis.editing.rewriting import Fields, Filter
from dynolog.analysis.editing.viewer_limits import viewer_number, viewer_thread
from dynolog.analysis.reading.categories import Category, category
from dynolog.analysis.reading.columns import NONE, Integers, Mask, TraceColumns, TrackName
from dynolog.analysis.reading.mark_builder import key

# What --drop can name, and the arguments that it means.
DROPPABLE_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "stacks": ("Call stack", "Module Hierarchy"),
    "shapes": ("Input Dims", "Input Strides", "Input type", "Concrete Inputs"),
}
_FLOWS = frozenset({"s", "t", "f"})
# What these say stands in their arguments.
_NEED_ARGUMENTS = frozenset({"M", "C"})
# Above every thread id of a kernel (at most 2^22), and every stream.
_LANE_STRIDE = 10_000_000
_NUMBERS = 1 << 32


def keep_time(from_ns: int, to_ns: int) -> Filter:
    """Events that touch a time, in ns as in the file; names of tracks always stay, the recording's own spans never do."""

    def passes(batch: TextBatch) -> Mask:
        inside = (batch.at_ns != NONE) & (batch.end_ns >= from_ns) & (batch.at_ns <= to_ns)
        spans = _each(batch, lambda event: event.cat == "Trace")
        names: Mask = _each(batch, lambda event: event.ph == "M") | (inside & ~spans)
        return names

    return passes


def drop_events(kinds: Collection[Category] = (), *, flows: bool = False, shorter_than_ns: int = 0) -> Filter:
    """Leaves out whole kinds of events, arrows, and complete events that are short."""
    dropped = frozenset(kinds)

    def stays(event: EventText) -> bool:
        if event.ph in _FLOWS:
            return not flows
        return event.ph == "M" or not isinstance(event.cat, str) or category(event.cat) not in dropped

    def passes(batch: TextBatch) -> Mask:
        mask = _each(batch, stays)
        if shorter_than_ns:
            mask &= ~(batch.complete & (batch.end_ns - batch.at_ns < shorter_than_ns))
        return mask

    return passes


def _each(batch: TextBatch, judge: Callable[[EventText], bool]) -> Mask:
    return np.fromiter(map(judge, batch.events), np.bool_, len(batch.events))


class DropArguments:
    """Leaves out arguments, by name; None: all of them."""

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = names
        self._needles = [msgspec.json.encode(name) for name in names or ()]

    def touches(self, batch: TextBatch) -> Mask:
        """Those that have such arguments."""
        return _each(batch, self._has)

    def _has(self, event: EventText) -> bool:
        if event.ph in _NEED_ARGUMENTS:
            return False
        text = bytes(event.text)
        return self._names is None or any(needle in text for needle in self._needles)

    def change(self, fields: Fields, _row: int, /) -> None:
        """Without them."""
        if self._names is None:
            fields.pop("args", None)
            return
        kept = {name: value for name, value in arguments(fields).items() if name not in self._names}
        fields["args"] = msgspec.Raw(msgspec.json.encode(kept))


# Process, thread, and ns as in the file.
Begin = tuple[int | str, int | str, int]


class SplitOverlaps:
    """Puts events into their lanes, which are threads beside their own, and the ends of arrows with them.

    `lanes` has the complete events in the order of the file; `begins` says in which lane an arrow belongs that ends where an event begins.
    """

    def __init__(
        self, lanes: Lanes, names: Mapping[tuple[int | str, int | str], TrackName], begins: Mapping[Begin, int]
    ) -> None:
        self._lanes = lanes
        self._names = names
        self._begins = begins
        self._arrows: dict[int, int] = {}
        self._rows = 0
        self._here: dict[int, int] = {}
        self._batch = TextBatch(())
        self._extra: dict[tuple[object, object, int], None] = {}

    def touches(self, batch: TextBatch) -> Mask:
        """Those that overlap others."""
        places = np.flatnonzero(batch.complete & (batch.at_ns != NONE))
        rows = np.arange(self._rows, self._rows + len(places))
        self._rows += len(places)
        changed = self._lanes.changed[rows]
        self._here = dict(zip(places[changed].tolist(), rows[changed].tolist(), strict=True))
        self._batch = batch
        self._arrows = dict(self._moved_arrows(batch))
        mask = np.zeros(len(batch.events), np.bool_)
        mask[places[changed]] = True
        mask[list(self._arrows)] = True
        return mask

    def _moved_arrows(self, batch: TextBatch) -> Iterator[tuple[int, int]]:
        if self._begins:
            for row, event in enumerate(batch.events):
                if event.ph in _FLOWS and (
                    lane := self._begins.get((key(event.pid), key(event.tid), int(batch.at_ns[row])))
                ):
                    yield row, lane

    def change(self, fields: Fields, row: int, /) -> None:
        """Its lane, and its duration where rounding made it outlast what it lies in."""
        event = self._batch.events[row]
        if (at := self._here.get(row)) is None:
            lane = self._arrows[row]
        else:
            lane = int(self._lanes.lane[at])
            fields["dur"] = microseconds(int(self._lanes.duration_ns[at]))
        if lane:
            self._extra[event.pid, event.tid, lane] = None
            fields["tid"] = msgspec.Raw(msgspec.json.encode(_lane_thread(event.tid, lane)))

    def names(self, new_pid: Callable[[int | str], object] = viewer_number) -> Iterator[bytes]:
        """Metadata events that name the lanes; `new_pid` is what became of a process's number."""
        for pid, tid, lane in self._extra:
            known = self._names.get((key(pid), key(tid)), TrackName())
            thread, process = _lane_thread(tid, lane), new_pid(key(pid))
            yield metadata("thread_name", process, thread, "name", f"{known.name.strip() or tid} (lane {lane + 1})")
            if known.sort_index is not None:
                yield metadata("thread_sort_index", process, thread, "sort_index", known.sort_index)


def split_overlaps(columns: TraceColumns) -> tuple[SplitOverlaps | None, int]:
    """What puts the events of a surveyed trace into lanes, and how many move; None for a file with begin and end events, whose
    complete ones are not the rows of its columns."""
    if "B" in columns.report.phases:
        return None, 0
    lanes = lanes_of(columns)
    return SplitOverlaps(lanes, columns.thread_names, _begins(columns, lanes)), lanes.moved


def _begins(columns: TraceColumns, lanes: Lanes) -> dict[Begin, int]:
    """Where moved events begin and no other of their track does."""

    def begins(rows: Integers) -> Iterator[tuple[Begin, int]]:
        for row in rows.tolist():
            process, thread = columns.processes[columns.process[row]], columns.threads[columns.thread[row]]
            yield (process, thread, int(columns.begin_ns[row]) - columns.head.base_ns), int(lanes.lane[row])

    moved = np.flatnonzero(lanes.lane)
    found = dict(begins(moved[::-1]))
    stay = np.flatnonzero((lanes.lane == 0) & np.isin(columns.begin_ns, columns.begin_ns[moved]))
    for begin, _ in begins(stay):
        found.pop(begin, None)
    return found


def _lane_thread(tid: object, lane: int) -> int | str:
    number = viewer_thread(tid)
    if not isinstance(number, int):
        return f"{number} lane {lane + 1}"
    return (number + lane * _LANE_STRIDE) % _NUMBERS


def metadata(name: str, pid: object, tid: object, member: str, value: object) -> bytes:
    """An event that describes a track."""
    return msgspec.json.encode({"ph": "M", "ts": 0, "name": name, "pid": pid, "tid": tid, "args": {member: value}})


class MoveClock:
    """Writes every time anew: `shift_ns` is added to what the file says."""

    def __init__(self, shift_ns: int) -> None:
        self._shift_ns = shift_ns
        self._batch = TextBatch(())

    def touches(self, batch: TextBatch) -> Mask:
        """All that have a time."""
        self._batch = batch
        mask: Mask = batch.at_ns != NONE
        return mask

    def change(self, fields: Fields, row: int, /) -> None:
        """Its new time."""
        fields["ts"] = microseconds(int(self._batch.at_ns[row]) + self._shift_ns)
