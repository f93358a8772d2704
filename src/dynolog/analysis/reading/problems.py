"""Where in a file its damage is, by line: counted only once there is damage, by reading the text again."""

from functools import partial

from dynolog.analysis.reading.event_reader import CutText, EventReader
from dynolog.analysis.reading.read_report import MAX_PROBLEMS, Problem
from dynolog.profiling.trace_bytes import BLOCK_BYTES, TraceText


def problems(path: str, reader: EventReader) -> list[Problem]:
    """The first problems of a file that was read, in order, with their lines. Raises OSError."""
    places = [(at, "an event that cannot be read was dropped") for at in reader.damaged_at]
    places += [(at, "an event was read after a repair") for at in reader.mended_at]
    places = sorted(places)[:MAX_PROBLEMS]
    if not places:
        return []
    lines = line_numbers(path, [at for at, _ in places])
    return [Problem(what, at, line) for (at, what), line in zip(places, lines, strict=True)]


def line_numbers(path: str, offsets: list[int]) -> list[int]:
    """The line, from 1, of each offset of the text; the offsets rise. Raises OSError."""
    lines: list[int] = []
    line = 1
    passed = 0
    with open(path, "rb", buffering=0) as file:
        for block in CutText(TraceText(partial(file.read, BLOCK_BYTES))):
            while len(lines) < len(offsets) and offsets[len(lines)] < passed + len(block):
                lines.append(line + block.count(b"\n", 0, offsets[len(lines)] - passed))
            if len(lines) == len(offsets):
                break
            line += block.count(b"\n")
            passed += len(block)
    return lines + [line] * (len(offsets) - len(lines))
