"""Records in a file, one JSON object a line (`--use_file`), with rotation by size."""

import contextlib
import logging
import os
import stat
from collections.abc import Sequence

from dynolog.exporters.file_rotation import Rotation, open_for_append
from dynolog.exporters.forms.json_line import JsonLines
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag
from dynolog.model.record import Record

_log = logging.getLogger(__name__)
FLAGS = (
    Flag(
        name="use_file", default=False, help="write records to --file_path, one JSON object a line", section="exporters"
    ),
    Flag(name="file_path", default="", help="the file of --use_file", section="exporters"),
    Flag(
        name="file_rotate_mb",
        default=100.0,
        minimum=0.0,
        help="start a new file at this size in MB; 0: never, logrotate does it (no signal needed)",
        section="exporters",
    ),
    Flag(name="file_keep", default=7, minimum=1, maximum=1000, help="how many old files to keep", section="exporters"),
    Flag(
        name="file_compress",
        default="none",
        choices=("none", "zstd"),
        help="how to compress old files (zstd: extra `zstd`)",
        section="exporters",
    ),
)
_MB = 1_000_000
_TAIL_BYTES = 1 << 16
# What our lines begin with.
_OUR_LINE = b'{"time":"'


class FileExporter:
    """Appends whole lines. What a full disk does not take is lost whole, not in part: a reader never sees half a line for long.

    When somebody has moved the file away (logrotate), the next record goes to a new one.
    """

    def __init__(self, path: str, lines: JsonLines, rotation: Rotation, rotate_bytes: int) -> None:
        self.destination = path
        self._path = path
        self._lines = lines
        self._rotation = rotation
        self._rotate_bytes = rotate_bytes
        self._descriptor = -1
        self._rotate_at = rotate_bytes

    def export(self, records: Sequence[Record]) -> None:
        """Raises OSError when the records are not in the file; none of them is then."""
        data = b"".join([self._lines.line(record) + b"\n" for record in records])
        if not self._is_current():
            self._open()
        size = self._append(data)
        if self._rotate_bytes and size >= self._rotate_at:
            self._rotate(size)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _is_current(self) -> bool:
        if self._descriptor < 0:
            return False
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        self.close()
        with contextlib.suppress(OSError):  # it tidies up; what really ails the directory, opening says
            self._rotation.clean()
        self._descriptor = open_for_append(self._path)
        self._rotate_at = self._rotate_bytes
        if _is_regular(self._descriptor):
            _end_last_line(self._descriptor)

    def _append(self, data: bytes) -> int:
        """The size of the file thereafter; 0 when it is none that has a size."""
        descriptor = self._descriptor
        regular = _is_regular(descriptor)
        before = os.fstat(descriptor).st_size if regular else 0
        written = 0
        try:
            while written < len(data):
                written += os.write(descriptor, data[written:])
        except OSError:
            if written and regular:
                os.ftruncate(descriptor, before)
            self.close()
            raise
        return before + len(data) if regular else 0

    def _rotate(self, size: int) -> None:
        try:
            self._descriptor = self._rotation.rotate(self._descriptor)
            self._rotation.compress()
        except OSError as error:
            # The records are in a file, so nothing is lost; try again after as many bytes more.
            self._rotate_at = size + self._rotate_bytes
            _log.warning("%s was not rotated or not compressed: %s", self._path, error.strerror or error)
        else:
            self._rotate_at = self._rotate_bytes


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _end_last_line(descriptor: int) -> None:
    """Let what is written next begin a line: a torn line of ours (the daemon was killed while it wrote) goes, others are ended."""
    size = os.fstat(descriptor).st_size
    start = max(size - _TAIL_BYTES, 0)
    tail = os.pread(descriptor, size - start, start)
    if not tail or tail.endswith(b"\n"):
        return
    last_line = tail.rfind(b"\n") + 1
    if (last_line or not start) and tail.startswith(_OUR_LINE[: len(tail) - last_line], last_line):
        os.ftruncate(descriptor, start + last_line)
    else:
        os.write(descriptor, b"\n")


def make(context: ExporterContext) -> FileExporter:
    """From the flags. Raises FlagError."""
    settings = context.settings
    path = settings.text("file_path")
    if not path:
        raise FlagError("--use_file needs a file: type --file_path=PATH")
    path = os.path.abspath(path)
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise FlagError(f"--file_path={path}: the directory {directory} is not there: make it, or name another file")
    if os.path.isdir(path):
        raise FlagError(f"--file_path={path} is a directory: name a file in it")
    rotation = Rotation(path, settings.integer("file_keep"), compress=settings.text("file_compress") == "zstd")
    return FileExporter(path, JsonLines(context.hostname), rotation, int(settings.number("file_rotate_mb") * _MB))


SPEC = ExporterSpec(name="file", summary="a file of JSON lines", flags=FLAGS, factory=make)
