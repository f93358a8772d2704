"""What a process has open: the links of `/proc/PID/fd` (proc_pid_fd(5))."""

import os
from collections.abc import Iterator


def open_links(directory: str) -> Iterator[str]:
    """What each descriptor in a process's fd directory refers to (`/dev/nvidia0`, `socket:[4242]`), one after another, lowest first.

    None when the descriptors are not ours to see or the process has ended; one that is closed meanwhile is passed over.
    """
    try:
        entries = os.scandir(directory)
    except OSError:
        return
    with entries:
        while True:
            try:
                entry = next(entries, None)
            except OSError:  # it has ended meanwhile
                return
            if entry is None:
                return
            try:
                link = os.readlink(entry.path)
            except OSError:  # closed meanwhile
                continue
            yield link
