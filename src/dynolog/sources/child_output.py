"""What a child process prints (the libraries of vendors do), as bounded lines of the daemon's log."""

import logging
import os
import time
from collections import deque
from collections.abc import Callable

_log = logging.getLogger(__name__)
_MOST_LINES_A_MINUTE = 20
_LONGEST_LINE = 300
_LAST_LINES = 3
_PIECE_BYTES = 1 << 16
# What one look reads at most: the child fills its pipe as fast as it likes.
_MOST_PIECES = 4


class ChildOutput:
    """Reads the pipe `fd`, which must not block, and logs at most 20 lines a minute under `name`; the rest is counted."""

    def __init__(self, fd: int, name: str, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self.fd = fd
        self._name = name
        self._monotonic_s = monotonic_s
        self._rest = b""
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._minute = -1
        self._logged = 0
        self._left_out = 0

    @property
    def last_words(self) -> str:
        """The last lines, for the report of a crash; "" when it printed nothing."""
        return " | ".join((*self._last, *([self._printable(self._rest)] if self._rest else ())))

    def drain(self) -> bool:
        """Take what is there, without waiting; False when the pipe was closed at the other end."""
        for _ in range(_MOST_PIECES):
            try:
                piece = os.read(self.fd, _PIECE_BYTES)
            except BlockingIOError:
                return True
            if not piece:
                return False
            *lines, self._rest = (self._rest + piece).split(b"\n")
            self._rest = self._rest[-_LONGEST_LINE:]
            for line in lines:
                self._take(line)
        return True

    def close(self) -> None:
        """Take the last, and close the pipe."""
        self.drain()
        os.close(self.fd)

    def _take(self, raw: bytes) -> None:
        line = self._printable(raw)
        if not line:
            return
        self._last.append(line)
        minute = int(self._monotonic_s() // 60)
        if minute != self._minute:
            if self._left_out:
                _log.warning("%s printed %d lines more, which were left out", self._name, self._left_out)
            self._minute, self._logged, self._left_out = minute, 0, 0
        if self._logged < _MOST_LINES_A_MINUTE:
            self._logged += 1
            _log.info("%s prints: %s", self._name, line)
        else:
            self._left_out += 1

    @staticmethod
    def _printable(raw: bytes) -> str:
        text = raw[:_LONGEST_LINE].decode("utf-8", "replace")
        return "".join(char if char.isprintable() else " " for char in text).strip()
