"""Small files of sysfs, read without keeping them open.

The sources that use this have hundreds of files, too many to hold within the usual limit of 1024 descriptors, and read them seldom.
"""

import os

_PAGE = 4096


def read_attribute(path: str) -> bytes | None:
    """The content, or None when the file is missing, unreadable or vanished.

    An attribute has at most one page and comes whole in one read(2) (Documentation/filesystems/sysfs.rst).
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(fd, _PAGE)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_integer(path: str) -> int | None:
    """The integer in the file, or None when there is none."""
    data = read_attribute(path)
    try:
        return None if data is None else int(data)
    except ValueError:
        return None
