"""Addresses of the IPC: abstract names and socket files (unix(7)), and who holds one that is taken."""

import errno
import os
import socket
import stat

from dynolog.model.errors import DynologError
from dynolog.sources.open_files import open_links

# sun_path of sockaddr_un, with the NUL that libkineto puts at the end of either kind.
_MAX_PATH_BYTES = 107
# Whoever opens the daemon's socket file may only write datagrams to it, which is what trainers of every user do.
_SOCKET_MODE = 0o666
# Trainers make their own socket beside the daemon's: everybody may, and nobody may remove another's (as in /tmp).
_DIRECTORY_MODE = 0o1777


def abstract(name: str) -> bytes:
    """The abstract address of `name`; the trailing NUL is part of it. Raises DynologError when it is too long."""
    address = b"\0" + os.fsencode(name) + b"\0"
    if len(address) > _MAX_PATH_BYTES + 1:
        raise DynologError(f"the IPC name {name} is too long: at most {_MAX_PATH_BYTES - 1} bytes")
    return address


def filesystem(directory: str, name: str) -> bytes:
    """The path of the socket file of `name`, joined exactly as libkineto joins it: a trainer compares the text.

    Raises DynologError when it is longer than a socket path can be.
    """
    path = os.fsencode(directory) + b"/" + os.fsencode(name)
    if len(path) > _MAX_PATH_BYTES:
        raise DynologError(f"the IPC socket {os.fsdecode(path)} is too long a path: at most {_MAX_PATH_BYTES} bytes")
    return path


def display(address: bytes) -> str:
    """How an address is shown: `@dynolog`, or the path."""
    if address.startswith(b"\0"):
        return "@" + os.fsdecode(address[1:].rstrip(b"\0"))
    return os.fsdecode(address)


def prepare_directory(directory: str) -> str:
    """Make the directory of a socket file if it is not there; returns what a person should know about it, or "".

    Raises DynologError when it cannot be made.
    """
    try:
        if not os.path.isdir(directory):
            os.makedirs(directory)
            os.chmod(directory, _DIRECTORY_MODE)
        mode = os.stat(directory).st_mode
    except OSError as error:
        raise DynologError(f"the IPC socket directory {directory} cannot be made: {error.strerror}") from error
    if not mode & stat.S_IWOTH:
        return (
            f"the IPC socket directory {directory} is not writable by everybody: trainers of other users cannot make "
            f"their own sockets in it: chmod 1777 {directory}"
        )
    return ""


def remove_stale(path: bytes) -> None:
    """Remove the socket file that a dead daemon left. Raises DynologError when a live one holds it, or it is no socket."""
    shown = os.fsdecode(path)
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise DynologError(f"{shown} is not a socket: remove it, or choose another --ipc_socket_dir")
        if is_served(path):
            raise DynologError(f"the IPC socket {shown} is held by {describe_holder(path)}")
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DynologError(f"the stale IPC socket {shown} cannot be replaced: {error.strerror}") from error


def is_served(path: bytes) -> bool:
    """Whether somebody has the socket file open: connecting to one that was left behind is refused. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            # EPROTOTYPE: another kind of socket is served there; it is not ours to remove.
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
                return False
            if error.errno != errno.EPROTOTYPE:
                raise
    return True


def open_to_everybody(path: bytes) -> tuple[int, int]:
    """Give a socket file that was just bound its mode; returns its device and inode. Raises OSError.

    Through a descriptor, because chmod(2) by name would follow a link that somebody put in its place meanwhile.
    """
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISSOCK(found.st_mode):
            raise OSError(errno.ENOTSOCK, "it was replaced by something else")
        os.chmod(f"/proc/self/fd/{fd}", _SOCKET_MODE)
        return found.st_dev, found.st_ino
    finally:
        os.close(fd)


def describe_holder(address: bytes, proc: str = "/proc") -> str:
    """Who holds an address: `pid 4242 (dynolog --port 1779)`. Looks through every process, so only when something failed."""
    try:
        with open(f"{proc}/net/unix", "rb") as table:
            inodes = socket_inodes(table.read(), address)
    except OSError:
        inodes = frozenset()
    links = {f"socket:[{inode}]" for inode in inodes}
    for pid in _pids(proc) if links else ():
        if not links.isdisjoint(open_links(f"{proc}/{pid}/fd")):
            return f"pid {pid} ({_command(proc, pid)})"
    return "a process that this user cannot look into"


def socket_inodes(table: bytes, address: bytes) -> frozenset[int]:
    """Inodes of the sockets bound to `address` in the text of `/proc/net/unix`, where each NUL of a name is shown as `@`."""
    shown = address.replace(b"\0", b"@")
    inodes = set()
    for line in table.split(b"\n")[1:]:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7] == shown and fields[6].isdigit():
            inodes.add(int(fields[6]))
    return frozenset(inodes)


def _pids(proc: str) -> list[int]:
    return sorted(int(name) for name in os.listdir(proc) if name.isdigit())


def _command(proc: str, pid: int) -> str:
    try:
        with open(f"{proc}/{pid}/cmdline", "rb") as file:
            words = file.read(4096).rstrip(b"\0").split(b"\0")
    except OSError:
        return "ended meanwhile"
    return b" ".join(words).decode("utf-8", "replace")
