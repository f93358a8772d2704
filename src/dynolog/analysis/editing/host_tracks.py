"""Adding the host's samples to a trace as counter tracks on its own clock, without numpy and without holding the trace.

The events stand at the begin of the trace's list, between two of known text, so that they can be told apart and taken away again, and
what the trainer wrote is passed on to the letter. docs/analysis.md, "Host counters", has the format.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

import msgspec

from dynolog.fleet.whole_file import written_whole
from dynolog.model.errors import DynologError
from dynolog.model.host_samples import SampleBlock
from dynolog.profiling.trace_bytes import BLOCK_BYTES, TraceText, TraceUnreadable

# Above every process of Linux (at most 2^22), every device and stream. Viewers take a negative one for process 0, which is GPU 0.
PID = 5_000_000
PROCESS_NAME = "host counters"
_BEGIN = (
    f'\n{{"ph":"M","name":"process_name","pid":{PID},"tid":0,"ts":0,"args":{{"name":"{PROCESS_NAME}","original_sha256":"'
).encode()
_END = f'{{"ph":"M","name":"process_sort_index","pid":{PID},"tid":0,"ts":0,"args":{{"sort_index":-1}}}}'.encode()
_OURS = re.compile(re.escape(_BEGIN) + rb'([0-9a-f]{64})","text_sha256":"([0-9a-f]{64})"\}\},')
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})\b')
# What stands before the events, devices and versions, is some kB.
_LONGEST_HEAD_BYTES = 16 << 20
_GZIP_LEVEL = 4
_SPACE = b" \t\r\n"
_NS_PER_US = 1000
_GATHERED = 4096


class CannotAdd(DynologError):  # noqa: N818 - it says what is the case
    """The trace stays as it is; the text says why."""


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """What was added."""

    tracks: int
    samples: int


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The time that a trace is of, Unix ns by the clock of its host."""

    begin_wall_ns: int
    end_wall_ns: int


class _Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What one pass over a trace finds: the SHA-256 of its text, its base, whether it is gzip, and where the list's first event is."""

    text_sha256: str
    base_ns: int
    compressed: bool
    list_offset: int
    list_is_empty: bool
    has_tracks: bool


def add_tracks(path: str, blocks: Sequence[SampleBlock], window: Window, original_sha256: str, output: str) -> Added:
    """Write `path` with tracks of the samples of its time as `output`, which may be the same file: whole, or not at all.

    gzip stays gzip. `original_sha256` is noted within, so that `original_sha256_of` can tell what it was made of. Raises CannotAdd for a
    trace that has such tracks, is of no clock, or has no sample of its time; TraceUnreadable, OSError.
    """
    if not window.begin_wall_ns:
        raise CannotAdd("its times are of no clock that is known")
    found = _scan(path)
    if found.has_tracks:
        raise CannotAdd("it has host counters already")
    events, added = _events(blocks, window, found.base_ns)
    if not added.samples:
        raise CannotAdd("the host was not sampled while it was recorded")
    note = f'{original_sha256}","text_sha256":"{found.text_sha256}"}}}},'.encode()
    with open(path, "rb", buffering=0) as file, written_whole(output) as copy:
        out = _Output(copy, compressed=found.compressed)
        left = found.list_offset
        for block in TraceText(partial(file.read, BLOCK_BYTES)):
            head = block[:left]
            out.write(head)
            if left and len(head) == left:
                out.write(_BEGIN + note)
                for event in events:
                    out.write(event)
                out.write(b"\n" + _END + (b"" if found.list_is_empty else b","))
            left -= len(head)
            out.write(block[len(head) :])
        out.close()
    return added


def original_sha256_of(path: str) -> str:
    """What `add_tracks` was told of the file that `path` was made of, when the rest of it is still what it was; else "".

    Raises OSError.
    """
    digest = hashlib.sha256()
    noted = None
    head = b""
    try:
        with open(path, "rb", buffering=0) as file:
            text = iter(TraceText(partial(file.read, BLOCK_BYTES)))
            for block in text:
                head += block
                place = _list_offset(head)
                if place is not None and (noted := _OURS.match(head, place)) is None and len(head) > place + 512:
                    return ""
                end = head.find(_END, place) if noted else -1
                if end >= 0:
                    digest.update(head[:place])
                    digest.update(head[end + len(_END) :].removeprefix(b","))
                    break
                if len(head) > 2 * _LONGEST_HEAD_BYTES:
                    return ""
            for block in text:
                digest.update(block)
    except TraceUnreadable:
        return ""
    return noted[1].decode() if noted and noted[2].decode() == digest.hexdigest() else ""


def _scan(path: str) -> _Scan:
    digest = hashlib.sha256()
    base_ns = 0
    tail = head = b""
    place: int | None = None
    with open(path, "rb", buffering=0) as file:
        text = TraceText(partial(file.read, BLOCK_BYTES))
        for block in text:
            digest.update(block)
            tail = tail[-64:] + block
            if b"baseTimeNanoseconds" in tail and (bases := _BASE.findall(tail)):
                base_ns = int(bases[-1])
            if place is None or len(head) < place + 512:
                head += block
                place = _list_offset(head)
                if place is None and len(head) > _LONGEST_HEAD_BYTES:
                    raise CannotAdd("its list of events was not found")
    if place is None:
        raise CannotAdd("its list of events was not found")
    return _Scan(
        text_sha256=digest.hexdigest(),
        base_ns=base_ns,
        compressed=text.compressed,
        list_offset=place,
        list_is_empty=head[place:].lstrip(_SPACE).startswith(b"]"),
        has_tracks=_OURS.match(head, place) is not None,
    )


def _list_offset(head: bytes) -> int | None:
    """Where the list of events begins: behind `"traceEvents": [`, or behind the bracket of a trace that is a bare list."""
    start = head.lstrip(_SPACE)
    if start.startswith(b"["):
        return len(head) - len(start) + 1
    # Within a text the quotes would be escaped, so only a key of an object within the head could be taken for it.
    for found in _LIST.finditer(head):
        try:
            msgspec.json.decode(head[: found.end()] + b"]}")
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        return found.end()
    return None


def _events(blocks: Sequence[SampleBlock], window: Window, base_ns: int) -> tuple[Iterator[bytes], Added]:
    columns = [column for block in blocks for column in _columns(block, window)]
    tracks: dict[str, list[tuple[int, float]]] = {}
    for name, points in columns:
        tracks.setdefault(name, []).extend(points)
    samples = 0
    for name, points in tracks.items():
        points.sort(key=lambda point: point[0])
        tracks[name] = kept = list(_increasing(points))
        samples += len(kept)

    def texts() -> Iterator[bytes]:
        for name, points in tracks.items():
            label = msgspec.json.encode(f"host {name}").decode()
            for first in range(0, len(points), _GATHERED):
                yield "".join(
                    f'\n{{"ph":"C","name":{label},"pid":{PID},"tid":0,"ts":{_us(wall_ns - base_ns)},"args":{{"value":{value!r}}}}},'
                    for wall_ns, value in points[first : first + _GATHERED]
                ).encode()

    return texts(), Added(tracks=len(tracks), samples=samples)


def _columns(block: SampleBlock, window: Window) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    """The samples of each series that reach into the time; what began before it is drawn from its begin on, so that no view is stretched.

    Of what holds until it changes, that is the last one before.
    """
    rows: list[tuple[int, int]] = []
    for row, begin_ns in enumerate(block.begin_wall_ns):
        if begin_ns > window.end_wall_ns:
            continue
        if begin_ns >= window.begin_wall_ns:
            rows.append((row, begin_ns))
        elif not block.elapsed_ns[row]:
            rows = [(row, window.begin_wall_ns)]
        elif begin_ns + block.elapsed_ns[row] > window.begin_wall_ns:
            rows.append((row, window.begin_wall_ns))
    for series in block.series:
        points = [
            (begin_ns, value)
            for row, begin_ns in rows
            if (value := series.values[row]) is not None and abs(value) < float("inf")
        ]
        if points:
            yield series.name, points


def _increasing(points: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """Without what is not after the one before: the wall clock may have been set back, and pages of samples overlap."""
    last: int | None = None
    for wall_ns, value in points:
        if last is None or wall_ns > last:
            last = wall_ns
            yield wall_ns, value


def _us(ns: int) -> str:
    """Microseconds with the three decimals that ns have, none lost."""
    whole, rest = divmod(abs(ns), _NS_PER_US)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"


class _Output:
    """Text into a file, gzip or not."""

    def __init__(self, file: BinaryIO, *, compressed: bool) -> None:
        self._file = file
        self._zip = zlib.compressobj(_GZIP_LEVEL, wbits=31) if compressed else None

    def write(self, text: bytes) -> None:
        if text:
            self._file.write(self._zip.compress(text) if self._zip else text)

    def close(self) -> None:
        if self._zip:
            self._file.write(self._zip.flush())
