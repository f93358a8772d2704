"""Root directories of trainers, held open so that their files are found after the process has gone."""

import errno
import os
import stat
from typing import NamedTuple

from dynolog.sources.beneath import open_beneath, open_root

_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


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
        """lstat(2) of a path as the trainer sees it; None when nothing is there. Blocks as its file system does.

        Raises OSError when that cannot be told: forbidden, no descriptor left, a disk that fails.
        """
        try:
            fd = open_beneath(self.fd, path, os.O_PATH)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        try:
            return os.fstat(fd)
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


def is_hidden(host_pid: int) -> bool:
    """Whether a process lives that our /proc does not show (hidepid, proc(5))."""
    try:
        os.kill(host_pid, 0)
    except PermissionError:
        pass
    except OSError:
        return False
    return not os.path.exists(f"/proc/{host_pid}")


def why_unseen(error: OSError) -> str:
    """Why files cannot be seen from here, in words; "" when it is only that the process has gone."""
    match error.errno:
        case errno.ENOENT | errno.ESRCH:
            return ""
        case errno.EACCES | errno.EPERM:
            return f"the daemon runs as uid {os.geteuid()} and may not look there"
        case errno.EMFILE | errno.ENFILE:
            return "the daemon has no file descriptor left: raise LimitNOFILE of its service, or ulimit -n"
        case _:
            return error.strerror or str(error)


def refusal(info: os.stat_result, uid: int) -> str:
    """Why a file that has the name of a trace is not taken for one; "" when it is.

    `uid` is the kernel's word for who took the config, not what the process has become since: one that runs a set-user-ID program
    meanwhile would have us take, and hand out, files of that program's owner.
    """
    if not stat.S_ISREG(info.st_mode):
        return "it is not a regular file"
    # Root may squash to another user on its way to a file server, and can make files of anybody anyway.
    if uid not in (0, info.st_uid):
        return f"it belongs to user {info.st_uid}, not to the trainer's user {uid}"
    return ""
