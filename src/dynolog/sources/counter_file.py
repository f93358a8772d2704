"""One counter of sysfs that a driver may refuse: left alone for long when it does, because each try may cost a line in the kernel's log."""

import errno
import os

_PAGE = 4096
# The device has gone; this says nothing about the counter of the next one under its name.
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)


class CounterFile:
    """The counter at `path`. A port that is restricted answers EINVAL, a port without counters `N/A (no PMA)`: both are no number."""

    TRIES = 2
    LEFT_ALONE_S = 3600.0

    __slots__ = ("_failures", "_not_before_s", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._failures = 0
        self._not_before_s = 0.0

    @property
    def is_refused(self) -> bool:
        """Whether it is left alone at present."""
        return self._failures >= self.TRIES

    def read(self, now_s: float) -> int | None:
        """Its number, or None when it has none now. `now_s` is monotonic. Never raises."""
        if self.is_refused and now_s < self._not_before_s:
            return None
        try:
            number = parse_counter(_read(self.path))
        except OSError as error:
            if error.errno in _GONE:
                return None
            number = None
        if number is not None:
            self._failures = 0
            return number
        self._failures += 1
        self._not_before_s = now_s + self.LEFT_ALONE_S
        return None


def parse_counter(data: bytes) -> int | None:
    """The number in a counter's file (decimal, unsigned, at most 64 bits), or None. Never raises."""
    text = data.strip()
    if not text.isdigit() or len(text) > 20:
        return None
    number = int(text)
    return number if number < 1 << 64 else None


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(fd, _PAGE)
    finally:
        os.close(fd)
