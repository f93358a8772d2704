"""Root directories of trainers, held open so that their files are found after the process has gone."""

import os
import stat
from typing import NamedTuple

from dynolog.sources.beneath import open_beneath, open_root


class Identity(NamedTuple):
    """What tells a file from the one that had its name before, and from itself after a change."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, info: os.stat_result) -> "Identity":
        """From fstat(2)."""
        return cls(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


class PinnedRoot:
    """One root directory; `fd` is an O_PATH descriptor, shared by all captures of trainers that have this root.

    The root alone would not do: when the last process of a container goes, its mount namespace does, and with it every volume that
    is mounted below the root. So the namespace is held too.
    """

    __slots__ = ("_namespace_fd", "fd", "key", "link", "users")

    def __init__(self, host_pid: int, key: tuple[str, str], link: str) -> None:
        self.fd = open_root(host_pid)
        try:
            self._namespace_fd = os.open(f"/proc/{host_pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self.fd)
            raise
        self.key = key
        self.link = link
        self.users = 0

    def close(self) -> None:
        """Let the root and its mounts go."""
        os.close(self.fd)
        os.close(self._namespace_fd)

    def look(self, path: str) -> os.stat_result | None:
        """lstat(2) of a path as the trainer sees it; None when nothing is there. Blocks as its file system does."""
        try:
            fd = open_beneath(self.fd, path, os.O_PATH)
        except OSError:
            return None
        try:
            return os.fstat(fd)
        except OSError:
            return None
        finally:
            os.close(fd)

    def host_path(self, host_pid: int, path: str, identity: Identity) -> str:
        """The same file by a name that this host knows; see observations.FinalSeen."""
        below = self.link.rstrip("/") + path
        for candidate in (below, path, f"/proc/{host_pid}/root{path}"):
            try:
                info = os.lstat(candidate)
            except OSError:
                continue
            if (info.st_dev, info.st_ino) == (identity.device, identity.inode):
                return candidate
        return ""


class PinnedRoots:
    """All roots in use, counted. Not thread-safe: the caller holds a lock."""

    def __init__(self) -> None:
        self._roots: dict[tuple[str, str], PinnedRoot] = {}

    def pin(self, host_pid: int) -> PinnedRoot:
        """The root of a process; asks procfs alone and so waits for no disk. Raises OSError when it has gone or is not ours."""
        link = os.readlink(f"/proc/{host_pid}/root")
        key = os.readlink(f"/proc/{host_pid}/ns/mnt"), link
        root = self._roots.get(key)
        if root is None:
            # A directory whose name was reused would share the key; its links end in " (deleted)" then, so the old one never does.
            root = self._roots[key] = PinnedRoot(host_pid, key, link)
        root.users += 1
        return root

    def release(self, root: PinnedRoot) -> None:
        """One user less; the last one closes it."""
        root.users -= 1
        if root.users == 0:
            del self._roots[root.key]
            root.close()


def filesystem_uid(host_pid: int) -> int | None:
    """The uid that new files of a process get (proc_pid_status(5), the fourth of `Uid:`), or None when it has gone."""
    try:
        with open(f"/proc/{host_pid}/status", "rb") as status:
            for line in status:
                if line.startswith(b"Uid:"):
                    return int(line.split()[4])
    except OSError:
        pass
    return None


def refusal(info: os.stat_result, uid: int | None) -> str:
    """Why a file that has the name of a trace is not taken for one; "" when it is."""
    if not stat.S_ISREG(info.st_mode):
        return "it is not a regular file"
    if uid is None:
        return "the process was gone before its user was known"
    # Root may squash to another user on its way to a file server, and can make files of anybody anyway.
    if uid not in (0, info.st_uid):
        return f"it belongs to user {info.st_uid}, not to the trainer's user {uid}"
    return ""
