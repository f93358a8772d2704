"""The traces of several ranks in one file, on one clock."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from dynolog.analysis.editing.edits import MoveClock, metadata, split_overlaps
from dynolog.analysis.editing.event_texts import TextBatch
from dynolog.analysis.editing.exporting import UNSPLIT, Exported, NotReadable, base_before
from dynolog.analysis.editing.host_processes import HostProcesses
from dynolog.analysis.editing.rewriting import Change, Fields, Rewriting
from dynolog.analysis.editing.trace_writer import writing
from dynolog.analysis.rank.collective_clock import Agreement, Ends, agree, collective_ends
from dynolog.analysis.reading.columns import Mask, TraceColumns
from dynolog.analysis.reading.load import LoadOptions, load
from dynolog.analysis.reading.mark_builder import key
from dynolog.analysis.reading.trace_folder import TraceFileHead
from dynolog.profiling.trace_bytes import TraceUnreadable

PASSES = 3  # over each file: its clock, its tracks, and writing
# So many tracks of processes a rank may have; more are counted on from there all the same, into the next rank's.
_PIDS_A_RANK = 1_000
# Ids of arrows are 64 bits wide, and as numbers exact up to 2^53 in viewers.
_ID_BITS = 44
_DOUBTFUL_NS = 100_000_000


class RankClock(msgspec.Struct, frozen=True, kw_only=True):
    """How a rank's clock was set right: `offset_ns` was subtracted from its times. `source` is "manifest", "same host",
    "collectives" (then `residual_ns` and `matched` tell how well), "as it was", or "none": nothing told it."""

    rank: int
    path: str
    host: str
    offset_ns: int
    source: str
    residual_ns: int | None = None
    matched: int = 0


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, and by which clocks."""

    exported: Exported
    clocks: list[RankClock]


class NewNumbers:
    """Makes processes and arrows of one rank its own: viewers join what has the same number."""

    def __init__(self, rank: int, place: int, shared: Mapping[int | str, int]) -> None:
        self._rank = rank
        self._place = place
        self._shared = shared
        self._pids: dict[int | str, int] = {}
        self._batch = TextBatch(())
        self._pid: list[int | str] = []

    def touches(self, batch: TextBatch) -> Mask:
        """All events."""
        self._batch = batch
        return np.ones(len(batch.events), np.bool_)

    def change(self, fields: Fields, row: int, /) -> None:
        """Its process, and its id when it is an arrow or another thing that is joined by one."""
        event = self._batch.events[row]
        fields["pid"] = msgspec.Raw(b"%d" % self.pid(key(event.pid)))
        if "id" in fields and event.ph != "X":
            fields["id"] = self._own_id(fields["id"])

    def pid(self, pid: int | str) -> int:
        """The new number of a process of this rank, or of one that it shares with others."""
        if pid in self._shared:
            return self._shared[pid]
        return self._pids.setdefault(pid, (self._place + 1) * _PIDS_A_RANK + len(self._pids))

    def _own_id(self, text: msgspec.Raw) -> msgspec.Raw:
        value = msgspec.json.decode(text)
        if isinstance(value, int) and 0 <= value < 1 << _ID_BITS and self._place < 1 << (63 - _ID_BITS):
            return msgspec.Raw(b"%d" % (value + (self._place << _ID_BITS)))
        return msgspec.Raw(msgspec.json.encode(f"rank {self._rank}: {value}"))

    def names(self, host: str) -> list[bytes]:
        """Metadata events for all its own processes, instead of those of the file."""
        name = f"rank {self._rank}" + (f" · {host}" if host else "")
        texts: list[bytes] = []
        for old, pid in self._pids.items():
            what = f"{name} · {old}" if isinstance(old, str) and old else name
            texts.append(metadata("process_name", pid, 0, "name", what))
            texts.append(metadata("process_sort_index", pid, 0, "sort_index", pid))
        return texts


def merge(
    heads: Sequence[TraceFileHead],
    output: str,
    *,
    align: str = "auto",
    progress: Callable[[str, int], None] | None = None,
) -> Merged:
    """Write the traces of `heads` as one, in the order of their ranks; PASSES over each, one file at a time in memory.

    `align`: "auto" takes offsets of a manifest when it has them for all, nothing when all are of one host, else collectives;
    or one of "manifest", "collectives", "none". Raises NotReadable and CannotWrite.
    """
    clocks = _clocks(heads, align, progress)
    base_ns = base_before(min((clock[1] for clock in clocks), default=0))
    before, file_bytes, moved = 0, 0, 0
    notes = [note for clock, _ in clocks for note in _doubts(clock)]
    hosts = HostProcesses()
    with writing(output, [head.path for head in heads]) as writer:
        # In the head, by which a folder's traces are told apart.
        merged = {"dynolog": {"merged": len(heads)}}
        writer.begin({"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns, **merged})
        for place, (head, (clock, _)) in enumerate(zip(heads, clocks, strict=True)):
            columns = _loaded(head.path, progress)
            split, its_moved = split_overlaps(columns)
            if split is None:
                notes.append(f"rank {clock.rank}: {UNSPLIT}")
            host = clock.host or f"rank {clock.rank}"
            counters = hosts.of(host, columns.process_names)
            numbers = NewNumbers(clock.rank, place, counters)
            shift_ns = columns.head.base_ns - clock.offset_ns - base_ns
            del columns
            changes: list[Change] = [numbers, MoveClock(shift_ns)]
            filters = [_without_process_names, hosts.once(host, counters, shift_ns)]
            told = None if progress is None else partial(progress, head.path)
            rewriting = Rewriting(head.path, filters, [split, *changes] if split else changes, told)
            rewriting.run(writer, lambda _: None)
            if split is not None:
                writer.add(split.names(numbers.pid))
            writer.add(numbers.names(clock.host))
            before += rewriting.report.events
            file_bytes += rewriting.report.file_bytes
            moved += its_moved
            notes += [f"rank {clock.rank}: {sentence}" for sentence in rewriting.report.sentences()]
        writer.add(hosts.names())
        writer.end(msgspec.to_builtins({"ranks": [clock for clock, _ in clocks]}))
    exported = Exported(
        output=output,
        events_before=before,
        events_after=writer.events,
        file_bytes_before=file_bytes,
        file_bytes_after=writer.written_bytes,
        moved=moved,
        notes=notes,
    )
    return Merged(exported=exported, clocks=[clock for clock, _ in clocks])


def _doubts(clock: RankClock) -> Iterator[str]:
    if clock.source == "none":
        yield f"rank {clock.rank}: nothing tells how far its clock is off; its times are as they were"
    if clock.source == "collectives" and abs(clock.offset_ns) > _DOUBTFUL_NS:
        yield (
            f"rank {clock.rank}: by its collectives its clock is {clock.offset_ns / 1e6:+,.1f} ms off, which no clock that is "
            "kept by NTP is: were the same iterations recorded?"
        )


def _without_process_names(batch: TextBatch) -> Mask:
    renamed = ("process_name", "process_sort_index")
    return np.fromiter(
        (event.ph != "M" or event.name not in renamed for event in batch.events), np.bool_, len(batch.events)
    )


def _loaded(path: str, progress: Callable[[str, int], None] | None) -> TraceColumns:
    options = LoadOptions(python_frames=True, flows=False, counters=False)
    try:
        return load(path, options, None if progress is None else partial(progress, path))
    except TraceUnreadable as error:
        raise NotReadable(f"{path}: {error.reason}") from error
    except OSError as error:
        raise NotReadable(f"{path}: {error.strerror or error}") from error


def _clocks(
    heads: Sequence[TraceFileHead], align: str, progress: Callable[[str, int], None] | None
) -> list[tuple[RankClock, int]]:
    """Each rank's clock, and its first event's time by the common one."""
    first: dict[str, Ends] | None = None
    hosts: set[str] = {head.host for head in heads}
    by_manifest = align == "manifest" or (align == "auto" and all(head.offset_ns is not None for head in heads))
    one_host = align == "auto" and len(hosts) == 1 and "" not in hosts
    clocks: list[tuple[RankClock, int]] = []
    for head in heads:
        columns = _loaded(head.path, progress)
        agreement: Agreement | None = None
        offset_ns, source = 0, "none"
        if by_manifest and head.offset_ns is not None:
            offset_ns, source = head.offset_ns, "manifest"
        elif one_host:
            source = "same host"
        elif align == "none":
            source = "as it was"
        elif align in ("auto", "collectives"):
            ends = collective_ends(columns)
            first = ends if first is None else first
            agreement = agree(first, ends)
            if agreement is not None:
                offset_ns, source = agreement.offset_ns, "collectives"
        clock = RankClock(
            rank=head.rank or 0,
            path=head.path,
            host=head.host or columns.head.host,
            offset_ns=offset_ns,
            source=source,
            residual_ns=agreement.residual_ns if agreement else None,
            matched=agreement.matched if agreement else 0,
        )
        begins = int(columns.begin_ns.min()) if len(columns) else columns.head.base_ns
        clocks.append((clock, begins - offset_ns))
    return clocks
