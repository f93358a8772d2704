"""Small files of sysfs that are kept open, for sources that read the same few dozen of each device every round."""

import errno
import os
from collections.abc import Sequence

_PAGE = 4096
# The share of the process's descriptors that these files may take.
_SHARE = 2
# A driver in a reset refuses all files of a device (EPERM, EBUSY); one that is lost has none (ENODEV, ENXIO) or does not answer.
_NO_ANSWER = frozenset((errno.ENODEV, errno.ENXIO, errno.EPERM, errno.EBUSY, errno.EIO, errno.ETIMEDOUT))


class OpenAttributes:
    """Half of the descriptors that the process may have: the files beyond are opened for each read."""

    def __init__(self, most: int | None = None) -> None:
        self.left = _descriptors() // _SHARE if most is None else most

    def at(self, path: str) -> "OpenAttribute":
        """An attribute to be read again and again; nothing is opened yet."""
        return OpenAttribute(path, self)


class OpenAttribute:
    """One attribute. It has at most one page and comes whole in one pread(2) (Documentation/filesystems/sysfs.rst).

    `error` is the errno of the last read, 0 when it went well.
    """

    __slots__ = ("_fd", "_pool", "error", "path")

    def __init__(self, path: str, pool: OpenAttributes) -> None:
        self.path = path
        self.error = 0
        self._fd = -1
        self._pool = pool

    def read(self) -> bytes | None:
        """The content, or None when it is missing or cannot be read now; the next read opens it again. Never raises."""
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
                self._pool.left -= 1
            data = os.pread(self._fd, _PAGE, 0)
        except OSError as error:
            self.error = error.errno or errno.EIO
            self.close()
            return None
        self.error = 0
        if self._pool.left < 0:
            self.close()
        return data

    def integer(self) -> int | None:
        """The integer in it, or None when there is none."""
        data = self.read()
        try:
            return None if data is None else int(data)
        except ValueError:
            return None

    def close(self) -> None:
        """Close the descriptor; a read opens it again."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._pool.left += 1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def refusal(files: Sequence[OpenAttribute]) -> str:
    """Why a device does not answer, when the last reads of all these files of it failed that way; else ""."""
    if not files or not all(file.error in _NO_ANSWER for file in files):
        return ""
    code = errno.errorcode.get(files[0].error, str(files[0].error))
    return f"the device does not answer ({code}): it is being reset, or is lost; see the kernel's log"


def _descriptors() -> int:
    """The limit of this process, after raising it as far as it may: 72 devices have 2,000 files."""
    import resource  # noqa: PLC0415 - only in the child that reads devices

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft >= wanted or soft == resource.RLIM_INFINITY:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted
