"""What reading a trace came across: everything that was skipped, repaired or lost, counted and said."""

from collections.abc import Iterator

import msgspec

# So many problems are kept with their place; all are counted.
MAX_PROBLEMS = 100


class Problem(msgspec.Struct, frozen=True):
    """Something wrong at one place: the byte offset in the JSON text (after decompression) and, when known, the line, from 1."""

    what: str
    offset_bytes: int
    line: int | None = None


class ReadReport(msgspec.Struct, kw_only=True):
    """The account of one file. Sizes in bytes; `text_bytes` is the JSON's, `file_bytes` what was read from the disk.

    `events` counts every entry of the list, `kept` the complete events that became rows; the rest is in `phases` (entries by `ph`) and
    `skipped` (by reason: a filter, no time, an unknown phase). `damaged` entries were dropped, `mended` ones read after a repair.
    `truncated` is why the file ends early, "" when it is whole.
    """

    path: str = ""
    file_bytes: int = 0
    text_bytes: int = 0
    compressed: bool = False
    events: int = 0
    kept: int = 0
    phases: dict[str, int] = {}
    skipped: dict[str, int] = {}
    damaged: int = 0
    mended: int = 0
    truncated: str = ""
    problems: list[Problem] = []
    warnings: list[str] = []
    seconds: float = 0.0

    def skip(self, reason: str, number: int = 1) -> None:
        """Count entries that become no row."""
        if number:
            self.skipped[reason] = self.skipped.get(reason, 0) + number

    def sentences(self) -> Iterator[str]:
        """What a reader must know before trusting what follows; nothing when the file was read whole and as it is."""
        if self.truncated:
            yield f"the file is not whole: {self.truncated}; read up to the last whole event ({self.events:,} events)"
        if self.damaged:
            yield f"{self.damaged:,} of {self.events + self.damaged:,} events could not be read and were dropped{_first(self.problems)}"
        if self.mended:
            yield f"{self.mended:,} events were read after a repair (bare nan or inf, broken text)"
        if untimed := self.skipped.get(NO_TIME, 0):
            yield f"{untimed:,} events have no usable time and were left out"
        yield from self.warnings


# Reasons in `skipped`.
NO_TIME = "no time"
PYTHON_FRAMES = "Python frames (not asked for)"
OTHER_CATEGORIES = "other categories (not asked for)"
OUTSIDE_WINDOW = "outside the time window"
UNPAIRED = "begin or end without its other"


def _first(problems: list[Problem]) -> str:
    if not problems:
        return ""
    place = problems[0]
    return f" (first at byte {place.offset_bytes:,}" + (f", line {place.line:,})" if place.line else ")")
