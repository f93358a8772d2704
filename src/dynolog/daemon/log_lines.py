"""The forms of a message of the daemon in its log (`--log_format`). Pure."""

import time
from typing import Protocol

from dynolog.exporters.forms import logfmt
from dynolog.exporters.forms.json_line import encode_object
from dynolog.exporters.forms.stamps import Stamps

_LEVELS = {"I": "info", "W": "warning", "E": "error", "F": "fatal"}


class LogLines(Protocol):
    """Makes the line of one message, with its newline."""

    def line(self, severity: str, wall_ns: int, thread_id: int, where: tuple[str, int], text: str) -> bytes:
        """`severity` is I, W, E or F; `where` is the file and line of the code that speaks."""
        ...


class GlogLines:
    """`Lyyyymmdd hh:mm:ss.uuuuuu threadid file:line] message`, local time, as glog writes them."""

    def __init__(self) -> None:
        self._kept = (-1, "")

    def line(self, severity: str, wall_ns: int, thread_id: int, where: tuple[str, int], text: str) -> bytes:
        """A line is one line: text from outside must not forge another, nor steer the terminal that shows the log."""
        second, rest_ns = divmod(wall_ns, 1_000_000_000)
        kept, second_text = self._kept
        if kept != second:
            second_text = time.strftime("%Y%m%d %H:%M:%S", time.localtime(second))
            self._kept = (second, second_text)
        message = text if text.isprintable() else _escaped(text)
        file, line = where
        prefix = f"{severity}{second_text}.{rest_ns // 1000:06d} {thread_id} {file}:{line}"
        return f"{prefix}] {message}\n".encode("utf-8", "replace")


def _escaped(text: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


class _FieldLines:
    """What a message consists of, for the forms that machines read. Records have a `source`, messages a `level`."""

    def __init__(self) -> None:
        self._stamps = Stamps()

    def fields(
        self, severity: str, wall_ns: int, thread_id: int, where: tuple[str, int], text: str
    ) -> dict[str, object]:
        return {
            "time": self._stamps.nanos(wall_ns),
            "level": _LEVELS[severity],
            "message": text,
            "file": f"{where[0]}:{where[1]}",
            "thread": thread_id,
        }


class JsonMessages(_FieldLines):
    """`{"time":"...Z","level":"info","message":"dynolog is ready","file":"life_cycle.py:108","thread":4242}`."""

    def line(self, severity: str, wall_ns: int, thread_id: int, where: tuple[str, int], text: str) -> bytes:
        """One object."""
        return encode_object(self.fields(severity, wall_ns, thread_id, where, text)) + b"\n"


class LogfmtMessages(_FieldLines):
    """`time=...Z level=info message="dynolog is ready" file=life_cycle.py:108 thread=4242`."""

    def line(self, severity: str, wall_ns: int, thread_id: int, where: tuple[str, int], text: str) -> bytes:
        """One line of pairs."""
        return logfmt.pairs(self.fields(severity, wall_ns, thread_id, where, text)).encode() + b"\n"


def lines_of(log_format: str) -> LogLines:
    """The form that --log_format names."""
    match log_format:
        case "json":
            return JsonMessages()
        case "logfmt":
            return LogfmtMessages()
        case _:
            return GlogLines()
