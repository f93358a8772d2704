"""The daemon that the tasks of a user on one node share: where its files are, and the lock on them."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator

import msgspec

from dynolog.ipc.address import abstract, filesystem, is_served
from dynolog.model.errors import DynologError

IPC_NAME = "dynolog"  # what trainers look for
_LOCK_WAIT_S = 30.0
_LOCK_POLL_S = 0.02
COUNTED = b"counted"  # what the keeper answers a task with


class NodeDaemon(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon of one user's jobs on one node. `flags` are for a daemon that is started; `socket_directory` as the trainers have it."""

    directory: str
    socket_directory: str = ""
    flags: tuple[str, ...] = ()

    @property
    def lock_path(self) -> str:
        """Held while somebody looks for the daemon, starts it or stops it."""
        return f"{self.directory}/lock"

    @property
    def keeper_path(self) -> str:
        """The unix socket of the keeper."""
        return f"{self.directory}/keeper.sock"

    @property
    def log_path(self) -> str:
        """The daemon's log; left behind only when the daemon failed."""
        return f"{self.directory}/dynolog.log"

    def is_served(self) -> bool:
        """Whether any daemon, ours or another's, takes the messages of trainers here."""
        if self.socket_directory:
            return is_served(filesystem(self.socket_directory, IPC_NAME))
        return is_served(abstract(IPC_NAME))


def prepare(directory: str) -> None:
    """Make the directory, for this user alone. Raises DynologError when somebody else's stands there."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        found = os.lstat(directory)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise DynologError(f"{directory} is not a directory of this user alone: remove it") from None


@contextlib.contextmanager
def locked(node: NodeDaemon) -> Iterator[None]:
    """Hold the lock. Raises DynologError when another holds it too long."""
    ends_at = time.monotonic() + _LOCK_WAIT_S
    while (fd := try_lock(node)) is None:
        if time.monotonic() > ends_at:
            raise DynologError(f"another dyno-run holds {node.lock_path} for more than {_LOCK_WAIT_S:g} s")
        time.sleep(_LOCK_POLL_S)
    try:
        yield
    finally:
        os.close(fd)


def try_lock(node: NodeDaemon) -> int | None:
    """A descriptor that holds the lock until it is closed; None when another holds it, or it was removed meanwhile."""
    prepare(node.directory)
    try:
        fd = os.open(node.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:  # the keeper removed the directory just now
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine, current = os.fstat(fd), os.stat(node.lock_path)
        if (mine.st_dev, mine.st_ino) == (current.st_dev, current.st_ino):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None
