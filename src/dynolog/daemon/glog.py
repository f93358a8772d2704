"""The daemon's log, on stderr or in a file that rotates by size; its lines are in glog's format unless --log_format says otherwise.

Whoever logs only appends to a bounded queue; one thread writes. A full disk or a blocked pipe loses lines, counts them, and stops nobody.
"""

import contextlib
import errno
import logging
import os
import threading
import time
from collections import deque

from dynolog.daemon.log_lines import GlogLines, LogLines

_QUEUE_BYTES = 1 << 20
_LEVELS = {"I": 0, "W": 1, "E": 2, "F": 3}


class GlogSink:
    """Where log lines go. `path` "" is stderr; `rotate_bytes` 0 never rotates; `keep` old files are kept, compressed."""

    def __init__(
        self,
        path: str = "",
        rotate_bytes: int = 0,
        keep: int = 7,
        minimum_level: int = 0,
        lines: LogLines | None = None,
    ) -> None:
        self._path = path
        self._rotate_bytes = rotate_bytes
        self._keep = keep
        self._minimum_level = minimum_level
        self._form = lines or GlogLines()
        self._fd = 2
        self._file_bytes = 0
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._reopen = False
        self._idle = True
        self._unreported = 0
        self.lost_lines = 0
        self.last_error = ""
        # By the monotonic clock, 0 before the first loss.
        self.lost_ns = 0
        self._open()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, severity: str, file: str, line: int, text: str) -> None:
        """Queue one line; `severity` is I, W, E or F. Never blocks and never raises for a sick disk."""
        if _LEVELS[severity] < self._minimum_level:
            return
        self._put(self._form.line(severity, time.time_ns(), threading.get_native_id(), (file, line), text))

    def write_at_info(self, file: str, line: int, text: str) -> None:
        """Queue one line of severity I: what exporters that write to the log are given."""
        self.write("I", file, line, text)

    def write_line(self, data: bytes) -> None:
        """Queue a line that is whole as it is, but for its newline; like one of severity I."""
        if not self._minimum_level:
            self._put(data + b"\n")

    def _put(self, data: bytes) -> None:
        with self._changed:
            if self._queued_bytes + len(data) > _QUEUE_BYTES:
                self._count_lost(1, "the log cannot be written as fast as lines come")
                return
            self._lines.append(data)
            self._queued_bytes += len(data)
            self._changed.notify()

    def reopen(self) -> None:
        """Open the path again (after logrotate moved the file)."""
        with self._changed:
            self._reopen = True
            self._changed.notify()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything queued is written; False when that takes longer than `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._lines or not self._idle:
                left = deadline - time.monotonic()
                if left <= 0 or not self._thread.is_alive():
                    return False
                self._changed.wait(left)
        return True

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what is queued and stop the thread, all within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        self.flush(timeout_s)
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(max(deadline - time.monotonic(), 0))

    def _count_lost(self, lines: int, reason: str) -> None:
        self.lost_lines += lines
        self._unreported += lines
        self.lost_ns = time.monotonic_ns()
        self.last_error = reason

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                self._changed.notify_all()
                while not self._lines and not self._reopen and not self._stopping:
                    self._changed.wait()
                if self._stopping and not self._lines:
                    return
                self._idle = False
                lines = list(self._lines)
                self._lines.clear()
                self._queued_bytes = 0
                reopen, self._reopen = self._reopen, False
            if reopen:
                self._open()
            if lines:
                self._write_lines(lines)

    def _open(self) -> None:
        if not self._path:
            return
        old, self._fd = self._fd, -1
        if old > 2:  # 0, 1 and 2 are the process's own
            os.close(old)
        try:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._file_bytes = os.fstat(self._fd).st_size
        except OSError as error:
            self.last_error = f"{self._path}: {error.strerror}"

    def _write_lines(self, lines: list[bytes]) -> None:
        if self._fd < 0:
            self._open()
        if self._unreported:
            sentence = f"{self._unreported} log lines were lost: {self.last_error}"
            lines.insert(0, self._form.line("W", time.time_ns(), 0, ("glog.py", 0), sentence))
        data = b"".join(lines)
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            # -1 stands for a file that could not be opened: the reason is in last_error already.
            if self._fd < 0:
                self._count_lost(len(lines) - bool(self._unreported), self.last_error)
                return
            self._count_lost(len(lines) - bool(self._unreported), error.strerror or str(error))
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN):
                self._open()
            return
        self._unreported = 0
        self._file_bytes += len(data)
        if self._path and self._rotate_bytes and self._file_bytes >= self._rotate_bytes:
            self._rotate()

    def _rotate(self) -> None:
        try:
            for number in range(self._keep - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{self._path}.{number}.gz", f"{self._path}.{number + 1}.gz")
            os.rename(self._path, f"{self._path}.1")
        except OSError as error:
            self.last_error = f"cannot rotate {self._path}: {error.strerror}"
            self._file_bytes = 0  # try again after as many bytes more
            return
        self._open()
        self._compress(f"{self._path}.1")

    def _compress(self, path: str) -> None:
        # Needed once in 10 MB of log.
        import gzip  # noqa: PLC0415
        import shutil  # noqa: PLC0415

        try:
            with open(path, "rb") as plain, gzip.open(f"{path}.gz.tmp", "wb", compresslevel=6) as packed:
                shutil.copyfileobj(plain, packed, 1 << 18)
            os.rename(f"{path}.gz.tmp", f"{path}.gz")
            os.unlink(path)
        except OSError as error:
            # Most likely no space: the plain old file is the one thing here that can be spared.
            self.last_error = f"cannot compress {path}: {error.strerror}"
            with contextlib.suppress(OSError):
                os.unlink(f"{path}.gz.tmp")


class GlogHandler(logging.Handler):
    """Brings the standard library's log records into the sink."""

    def __init__(self, sink: GlogSink) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        """Queue one record, with its traceback when it has one, as one line; none that repeats what the log has."""
        if getattr(record, "is_repeat", False):
            return
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            # Tracebacks are rare; the module is not.
            import traceback  # noqa: PLC0415

            text += "\n" + "".join(traceback.format_exception(record.exc_info[1]))
        severity = "I" if record.levelno < logging.WARNING else "W" if record.levelno < logging.ERROR else "E"
        self._sink.write(severity, record.filename, record.lineno, text)
