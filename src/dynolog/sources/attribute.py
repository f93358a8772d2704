"""Sysfs attributes that hold one number, read without keeping them open."""

import os


def read_integer(path: str) -> int | None:
    """The integer in the file, or None when it is missing, unreadable or not an integer.

    Opened and closed each time: the sources that use it have hundreds of files, too many to hold within the usual limit of
    1024 descriptors, and read them seldom. An attribute comes whole in one read(2) (sysfs.rst).
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return int(os.read(fd, 64))
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
