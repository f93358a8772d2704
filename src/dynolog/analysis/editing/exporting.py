"""One trace written anew: slice, shrink and convert differ only in filters and changes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from dynolog.analysis.editing.edits import MoveClock, SplitOverlaps, split_overlaps
from dynolog.analysis.editing.event_texts import EventTextReader, TextBatch
from dynolog.analysis.editing.rewriting import Change, Filter, Rewriting
from dynolog.analysis.editing.trace_writer import writing
from dynolog.analysis.editing.viewer_limits import lose_digits
from dynolog.analysis.reading.base_time import find_base_ns
from dynolog.analysis.reading.columns import NONE, Integers, TraceColumns
from dynolog.analysis.reading.event_reader import CutText
from dynolog.analysis.reading.load import LoadOptions, load
from dynolog.model.errors import DynologError
from dynolog.profiling.trace_bytes import BLOCK_BYTES, TraceText, TraceUnreadable

Progress = Callable[[int], None]
# A whole second this long before the first event, so that no time is negative: what is no complete event may be earlier than all that are.
_BEFORE_NS = 3600 * 10**9
LOSES_DIGITS = "viewers round times this large with decimals, and drop what then seems to overlap: for them leave out --base and --top"
UNSPLIT = "overlapping events were left as they are: the file has begin and end events"


class NotReadable(DynologError):  # noqa: N818 - it is what the file is
    """A file that cannot be read at all; the text says which and why."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file. `moved` events overlapped others and have lanes of their own; sizes in bytes."""

    output: str
    events_before: int
    events_after: int
    file_bytes_before: int
    file_bytes_after: int
    moved: int = 0
    notes: Sequence[str] = ()


def survey(path: str, progress: Progress | None = None) -> TraceColumns:
    """The first of two passes: the times and tracks of all complete events, about 65 bytes each. Raises NotATrace, and OSError."""
    return load(path, LoadOptions(python_frames=True, arguments=False, flows=False, counters=False), progress)


def survey_or_say(path: str, progress: Progress | None = None) -> TraceColumns:
    """A survey whose errors name the file. Raises NotReadable."""
    try:
        return survey(path, progress)
    except TraceUnreadable as error:
        raise NotReadable(f"{path}: {error.reason}") from error
    except OSError as error:
        raise NotReadable(f"{path}: {error.strerror or error}") from error


def export(
    path: str,
    output: str,
    *,
    filters: Sequence[Filter] = (),
    changes: Sequence[Change] = (),
    columns: TraceColumns | None = None,
    lanes: bool = True,
    absolute: bool | None = None,
    bare_list: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write `path` as `output` (gzip when that ends in .gz), edited.

    With `columns`, its survey, overlapping events get lanes. `absolute` times count from the epoch, relative ones from a
    `baseTimeNanoseconds`; None leaves them, unless viewers would lose digits of them. A bare list has no place for a base, so its times
    are absolute. Raises CannotWrite, NotATrace, and OSError for what cannot be read.
    """
    chosen = list(changes)
    notes: list[str] = []
    moved = 0
    split: SplitOverlaps | None = None
    if columns is not None and lanes:
        split, moved = split_overlaps(columns)
        if split is None:
            notes.append(UNSPLIT)
        else:
            chosen.append(split)
    own_base_ns = columns.head.base_ns if columns is not None else find_base_ns(path)
    begin_ns, duration_ns = _times(path) if columns is None else (columns.begin_ns - own_base_ns, columns.duration_ns)
    absolute = True if bare_list else absolute
    if absolute is None and lose_digits(begin_ns, duration_ns):
        absolute = False
    new_base_ns = _new_base_ns(own_base_ns, begin_ns, absolute)
    if absolute and lose_digits(begin_ns + own_base_ns, duration_ns):
        notes.append(LOSES_DIGITS)
    if new_base_ns != own_base_ns:
        chosen.append(MoveClock(own_base_ns - new_base_ns))
    rewriting = Rewriting(path, filters, chosen, progress)

    def members(given: Mapping[str, object]) -> dict[str, object]:
        kept = {name: value for name, value in given.items() if name != "baseTimeNanoseconds"}
        return kept | ({"baseTimeNanoseconds": new_base_ns} if new_base_ns else {})

    with writing(output, [path], bare_list=bare_list) as writer:
        rewriting.run(writer, lambda head: writer.begin(members(head)))
        if split is not None:
            writer.add(split.names())
        writer.end(members(rewriting.members))
    report = rewriting.report
    return Exported(
        output=output,
        events_before=report.events,
        events_after=writer.events,
        file_bytes_before=report.file_bytes,
        file_bytes_after=writer.written_bytes,
        moved=moved,
        notes=[*notes, *report.sentences()],
    )


def base_before(first_ns: int) -> int:
    """A base for times of which the first is at `first_ns` (Unix ns)."""
    return max(first_ns - _BEFORE_NS, 0) // 10**9 * 10**9


def _new_base_ns(own_ns: int, begin_ns: Integers, absolute: bool | None) -> int:
    if absolute:
        return 0
    if absolute is None or not len(begin_ns) or (own_ns and int(begin_ns.min()) >= 0):
        return own_ns
    return base_before(own_ns + int(begin_ns.min()))


def _times(path: str) -> tuple[Integers, Integers]:
    """The times, as in the file, of the complete events at its begin: libkineto writes all alike. Raises NotATrace, and OSError."""
    with open(path, "rb", buffering=0) as file:
        events = next(iter(EventTextReader(CutText(TraceText(partial(file.read, BLOCK_BYTES))))), [])
    batch = TextBatch(events)
    timed = batch.complete & (batch.at_ns != NONE)
    return batch.at_ns[timed], batch.duration_ns[timed]
