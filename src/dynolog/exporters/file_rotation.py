"""Rotation of a file that others read: at no moment is its name missing, or half of an old file to be seen under a final name."""

import contextlib
import os

from dynolog.exporters.zstd import new_compressor

ZSTD = ".zst"
# What old files may be called behind their number: also those that were made under other flags.
_SUFFIXES = ("", ZSTD)
_CHUNK = 1 << 18
_FLAG = "file_compress=zstd"


class Rotation:
    """Keeps PATH.1 (the newest) to PATH.`keep`, compressed with zstd on demand. For one writer."""

    def __init__(self, path: str, keep: int, *, compress: bool) -> None:
        """Raises FlagError when zstd is asked for and not installed."""
        self._path = path
        self._keep = keep
        self._compress = compress
        if compress:
            new_compressor(_FLAG)

    def clean(self) -> None:
        """Take away what a writer that died while it rotated has left: a second name of the file, a half-written old one."""
        for name in (f"{self._path}.new", f"{self._path}.1{ZSTD}.tmp"):
            _remove(name)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samefile(self._path, f"{self._path}.1"):
                os.unlink(f"{self._path}.1")

    def rotate(self, descriptor: int) -> int:
        """Make the file behind `descriptor` old and give the descriptor of a new one in its place, which is empty.

        Raises OSError when that cannot be done; the old descriptor is then still the file's.
        """
        new_path = f"{self._path}.new"
        new = open_for_append(new_path)
        try:
            os.fsync(descriptor)
            self._make_room()
            os.link(self._path, f"{self._path}.1")
            # The name passes from the old file to the new one at once.
            os.rename(new_path, self._path)
        except OSError:
            os.close(new)
            _remove(new_path)
            raise
        os.close(descriptor)
        return new

    def compress(self) -> None:
        """Compress PATH.1. Raises OSError, most likely for want of space; the plain file is then left as it is."""
        if not self._compress:
            return
        plain, packed = f"{self._path}.1", f"{self._path}.1{ZSTD}"
        try:
            with open(plain, "rb") as source, open(f"{packed}.tmp", "wb") as target:
                compressor = new_compressor(_FLAG)
                while chunk := source.read(_CHUNK):
                    target.write(compressor.compress(chunk))
                target.write(compressor.flush())
                target.flush()
                os.fsync(target.fileno())
                os.fchmod(target.fileno(), os.fstat(source.fileno()).st_mode & 0o777)
            os.rename(f"{packed}.tmp", packed)
            os.unlink(plain)
        except OSError:
            _remove(f"{packed}.tmp")
            raise

    def _make_room(self) -> None:
        for suffix in _SUFFIXES:
            _remove(f"{self._path}.{self._keep}{suffix}")
        for number in range(self._keep - 1, 0, -1):
            for suffix in _SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{self._path}.{number}{suffix}", f"{self._path}.{number + 1}{suffix}")


def open_for_append(path: str) -> int:
    """A descriptor that writes at the end of the file; O_NONBLOCK, so that a pipe without a reader fails instead of waiting."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
