"""Putting a file in place in one step: whoever reads it finds the old or the new one, whole."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def written_whole(path: str) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` at the end of the block, or is gone when the block fails. Raises OSError.

    A device, a fifo or a directory is never replaced: a rename would take it away from everybody else.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(errno.EINVAL, "it is there and is no regular file: name a file", path)
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
