"""Size and use of one file system (statvfs(3))."""

import os

import msgspec


class FilesystemUse(msgspec.Struct, frozen=True, kw_only=True):
    """One file system. `available_bytes` is what is free for ordinary users; `inodes` is 0 where there is no fixed number of them.

    `device` is the number (os.makedev) of what was found at the path: another file system may lie over the one meant.
    """

    device: int
    size_bytes: int
    free_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int


def filesystem_use(path: str) -> FilesystemUse:
    """Ask the file system at `path`. Raises OSError; may never return when its server is gone."""
    found = os.statvfs(path)
    return FilesystemUse(
        device=os.stat(path).st_dev,
        size_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bfree * found.f_frsize,
        available_bytes=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
    )
