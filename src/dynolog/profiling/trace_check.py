"""The check of a written trace to its last byte; `python -m dynolog.profiling.trace_check FD [pickle]` is the child process that runs it.

The child reads what another user wrote, so it runs apart from the daemon: unprivileged, niced and with bounded memory. On its standard
output it writes `p` lines as it proceeds, then one line with the answer: `c` and a TraceFile as JSON, or `i` and a reason.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable

from dynolog.model.capture import Operation, TraceFile
from dynolog.model.json_text import encode_json
from dynolog.profiling.trace_bytes import BLOCK_BYTES, TraceText, TraceUnreadable
from dynolog.profiling.trace_reader import TraceEvent, TraceReader
from dynolog.sources.own_rights import give_up_capabilities

MAX_MEMORY_BYTES = 512 << 20
PROGRESS_S = 1.0
NOBODY = 65534
LONGEST = 3
# A damaged event costs a hundred times a good one; a file that is mostly those is given up early.
_DAMAGED_BEFORE_GIVING_UP = 10_000
# What only spans operations (phases named by the user, Python frames, steps) or belongs to the profiler is not where the time went.
_WRAPPING_CATEGORIES = frozenset(("user_annotation", "gpu_user_annotation", "python_function", "overhead"))
# Collectives are annotations too, but operations of their own.
_COLLECTIVES = ("gloo:", "nccl:", "mpi:", "ucc:", "xccl:", "hccl:")
_OWN_MARKS = ("Iteration Start", "Record Window End")
_LOG_PREFIX_END = "] "
_LARGEST_US = 1e18
_PICKLE_PROTOCOLS = (b"\x02", b"\x03", b"\x04", b"\x05")


class Longest:
    """The names with the longest single durations."""

    def __init__(self) -> None:
        self.floor_us = 0.0
        self._by_name: dict[str, float] = {}

    def offer(self, name: str, duration_us: float) -> None:
        """Take a duration above `floor_us` into account."""
        best = self._by_name
        best[name] = max(best.get(name, 0.0), duration_us)
        if len(best) > LONGEST:
            del best[min(best, key=best.__getitem__)]
        if len(best) == LONGEST:
            self.floor_us = min(best.values())

    def operations(self) -> tuple[Operation, ...]:
        """Longest first."""
        ordered = sorted(self._by_name.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Operation(name[:200], round(duration_us, 3)) for name, duration_us in ordered)


# What lies outside 2001 to 2262 is no wall clock.
_FIRST_YEAR_NS = 10**18
_LAST_YEAR_NS = 2**63


class Summary:
    """What a check keeps of the events: their number, the time they span, the longest."""

    def __init__(self) -> None:
        self.entries = 0
        self.recorded = 0
        self.start_us = float("inf")
        self.end_us = float("-inf")
        self.operations = Longest()
        self.wrappers = Longest()

    def add(self, events: Iterable[TraceEvent]) -> None:
        """Count a batch."""
        for event in events:
            self.entries += 1
            phase = event.ph
            if phase == "M" or event.cat == "Trace" or (phase == "i" and event.name.startswith(_OWN_MARKS)):
                continue
            self.recorded += 1
            start_us = event.ts
            # JSON can spell numbers that no clock says, and what becomes of them (inf, nan) cannot be spelled in JSON.
            if start_us is None or not abs(start_us) + abs(event.dur or 0.0) < _LARGEST_US:
                continue
            self.start_us = min(self.start_us, start_us)
            duration_us = event.dur or 0.0
            self.end_us = max(self.end_us, start_us + duration_us)
            if phase == "X" and duration_us > self.operations.floor_us:
                wrapping = event.cat in _WRAPPING_CATEGORIES and not event.name.startswith(_COLLECTIVES)
                (self.wrappers if wrapping else self.operations).offer(event.name, duration_us)

    @property
    def duration_us(self) -> float:
        """From the first event's begin to the last one's end."""
        return round(self.end_us - self.start_us, 3) if self.end_us >= self.start_us else 0.0


def check(read: Callable[[], bytes], progress: Callable[[], None] = lambda: None) -> TraceFile:
    """Read a whole trace. `events` is the number of entries, 0 when all of them only describe processes and the recording itself.

    Raises TraceUnreadable when it is not whole, or when most of its events cannot be read.
    """
    digest = hashlib.sha256()

    def hashed() -> bytes:
        block = read()
        digest.update(block)
        progress()
        return block

    text = TraceText(hashed)
    reader = TraceReader(text, TraceEvent)
    summary = Summary()
    for events in reader:
        summary.add(events)
        progress()
        if reader.damaged > max(reader.events, _DAMAGED_BEFORE_GIVING_UP):
            break
    if reader.damaged > reader.events:
        raise TraceUnreadable(f"{reader.damaged} of its events cannot be read, only {reader.events} can", reader.events)
    return TraceFile(
        size_bytes=text.size_bytes,
        sha256=digest.hexdigest(),
        events=summary.entries if summary.recorded else 0,
        duration_us=summary.duration_us,
        begin_wall_ns=_begin_wall_ns(reader, summary),
        longest=summary.operations.operations() or summary.wrappers.operations(),
        compressed=text.compressed,
        warnings=tuple(_warnings(reader, summary)),
    )


def _begin_wall_ns(reader: TraceReader[TraceEvent], summary: Summary) -> int:
    """Times of events are µs after `baseTimeNanoseconds`; older versions of libkineto have none and count from the epoch."""
    base_ns = reader.metadata.get("baseTimeNanoseconds", 0)
    if summary.start_us == float("inf") or not isinstance(base_ns, int):
        return 0
    begin_ns = base_ns + int(summary.start_us * 1000)
    return begin_ns if _FIRST_YEAR_NS < begin_ns < _LAST_YEAR_NS else 0


def check_pickle(read: Callable[[], bytes], progress: Callable[[], None] = lambda: None) -> TraceFile:
    """A memory snapshot, as far as it can be judged without being unpickled, which would run what its writer wants.

    Raises TraceUnreadable when it does not begin and end as a pickle does (protocol 2 to 5: PROTO, and STOP as the last byte).
    """
    digest = hashlib.sha256()
    first = last = b""
    size_bytes = 0
    while block := read():
        first = (first + block[:2])[:2]
        last = block[-1:]
        size_bytes += len(block)
        digest.update(block)
        progress()
    if not size_bytes:
        raise TraceUnreadable("the file is empty (0 bytes)")
    if first[:1] != b"\x80" or first[1:] not in _PICKLE_PROTOCOLS:
        raise TraceUnreadable("the memory snapshot does not begin as a pickle does")
    if last != b".":
        raise TraceUnreadable("the memory snapshot is cut short: it does not end as a pickle does")
    return TraceFile(size_bytes=size_bytes, sha256=digest.hexdigest(), events=0, memory_snapshot=True)


def _warnings(reader: TraceReader[TraceEvent], summary: Summary) -> list[str]:
    said: list[str] = []
    messages = [message for key in ("ERROR", "WARNING") for message in _messages(reader.metadata.get(key))]
    if not summary.recorded:
        because = f", libkineto says: {messages[-1]}" if messages else ""
        said.append(f"the trace is empty{because}")
    if reader.damaged:
        said.append(f"{reader.damaged} damaged events cannot be read and are left out")
    if reader.mended:
        said.append(
            f"{reader.mended} events hold values that are not JSON (nan, bytes that are not UTF-8) and were read without them"
        )
    if reader.metadata_damaged:
        said.append("what stands before the events is damaged and was not read")
    if summary.recorded:
        said += [f"libkineto says: {message}" for message in messages[-3:]]
    return said


def _messages(value: object) -> list[str]:
    """Log messages in the trace without their glog prefix (`WARNING:date time pid:tid file:line] `)."""
    if not isinstance(value, list):
        return []
    return [str(message).partition(_LOG_PREFIX_END)[2][:300] or str(message)[:300] for message in value]


def _give_up_rights() -> None:
    import resource  # noqa: PLC0415 - the child alone needs it

    os.nice(19)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        except OSError:
            # Root of a container without CAP_SETUID and CAP_SETGID, or of a user namespace that has no such user.
            give_up_capabilities()


def main(arguments: list[str]) -> int:
    """Check the file open on descriptor `arguments[0]` from its begin; as a memory snapshot when "pickle" follows."""
    import json  # noqa: F401, PLC0415 - of later use: nobody may not be allowed to read the standard library

    fd = int(arguments[0])
    _give_up_rights()
    offset = 0
    said_at = 0.0

    def read() -> bytes:
        nonlocal offset
        block = os.pread(fd, BLOCK_BYTES, offset)
        offset += len(block)
        return block

    def progress() -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= PROGRESS_S:
            said_at = time.monotonic()
            os.write(1, b"p\n")

    try:
        answer = b"c" + encode_json((check_pickle if arguments[1:] == ["pickle"] else check)(read, progress))
    except TraceUnreadable as error:
        answer = b"i" + error.reason.encode()
    except OSError as error:
        answer = b"i" + f"the file cannot be read: {error.strerror}".encode()
    except MemoryError:
        answer = b"i" + f"the check needs more than {MAX_MEMORY_BYTES >> 20} MiB of memory".encode()
    os.write(1, answer + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
