"""Which files a process sees, and with what groups: enough to tell that two processes of one user would get the same answers."""

import os

from dynolog.sources.host_files import HostFiles


def file_view(host: HostFiles, pid: int) -> str:
    """The mount namespace, the root directory and the supplementary groups of `/proc/PID`, in one text.

    Processes with equal texts (and equal uid and gid) may read and write the same files under the same names. "" when one of the three is
    not ours to see (ptrace(2) rules) or the process has gone. Nothing here looks at the file system that the root is on, which may be dead.
    """
    try:
        namespace = os.readlink(host.path(f"proc/{pid}/ns/mnt"))
        root = os.readlink(host.path(f"proc/{pid}/root"))
        status = host.read(f"proc/{pid}/status")
    except OSError:
        return ""
    groups = next((line[7:].split() for line in status.split(b"\n") if line.startswith(b"Groups:")), None)
    if groups is None:
        return ""
    return f"{namespace} {b' '.join(groups).decode()} {root}"
