"""Files below another process's root, which that process cannot lead us out of: openat2(2), or a walk that is as safe.

A trainer decides what its file system looks like. A symlink that points to `/etc/shadow` must mean *its* `/etc/shadow`, a `..` must stop at
its root, and nothing it swaps while we look may change that.
"""

import errno
import os
import stat
from collections.abc import Callable
from functools import cache

_SYS_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_IN_ROOT = 0x10
# ENOSYS: a kernel before 5.6; EPERM: a seccomp filter that does not know the call.
_NOT_HERE = (errno.ENOSYS, errno.EPERM)
_MAX_LINKS = 40


def open_root(host_pid: int, proc: str = "/proc") -> int:
    """An O_PATH descriptor of the root directory of a process; it keeps working after the process is gone. Raises OSError."""
    return os.open(f"{proc}/{host_pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def open_beneath(root_fd: int, path: str, flags: int) -> int:
    """Open `path` as a process whose root directory is `root_fd` would see it.

    The last component is not followed when it is a symlink (ELOOP, or with O_PATH the link itself). Opening never waits for the
    other end of a FIFO. Raises OSError; ELOOP also for more than 40 symlinks, EINVAL for an embedded NUL.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    if not flags & os.O_PATH:
        flags |= os.O_NONBLOCK | os.O_NOCTTY
    if openat2 := _openat2():
        fd, error = openat2(root_fd, path, flags)
        if fd >= 0:
            return fd
        if error not in _NOT_HERE:
            raise OSError(error, os.strerror(error), path)
    return walk_beneath(root_fd, path, flags)


@cache
def _openat2() -> Callable[[int, str, int], tuple[int, int]] | None:
    """The system call as a function (root_fd, path, flags) → (fd, errno), or None when the interpreter has no ctypes."""
    try:
        # Most daemons never trace; those that do pay the megabyte of ctypes at the first capture.
        import ctypes  # noqa: PLC0415
    except ImportError:
        return None

    class OpenHow(ctypes.Structure):
        """`struct open_how` of openat2(2)."""

        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long

    def call(root_fd: int, path: str, flags: int) -> tuple[int, int]:
        how = OpenHow(flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
        fd = syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(root_fd),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        return int(fd), ctypes.get_errno()

    return call


def walk_beneath(root_fd: int, path: str, flags: int) -> int:
    """The same without openat2: component by component, each opened with O_NOFOLLOW below the one before.

    Symlinks are read and resolved here, `..` goes back to the directory we came through, so that no rename meanwhile can lead out
    of the root.
    """
    opened = [os.dup(root_fd)]
    todo = _components(path)
    links = 0
    try:
        while todo:
            name = todo.pop()
            if name == "..":
                if len(opened) > 1:
                    os.close(opened.pop())
                continue
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened[-1])
            opened.append(fd)
            if not todo:
                break
            mode = os.fstat(fd).st_mode
            if stat.S_ISLNK(mode):
                links += 1
                target = os.readlink("", dir_fd=fd)
                os.close(opened.pop())
                if links > _MAX_LINKS or _is_magic(opened[-1]):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    while len(opened) > 1:
                        os.close(opened.pop())
                todo += _components(target)
            elif not stat.S_ISDIR(mode):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return _reopen(opened, flags, path)
    finally:
        for fd in opened:
            os.close(fd)


def _components(path: str) -> list[str]:
    """In reverse, so that the next one is popped from the end; a trailing slash means the directory itself."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    return names[::-1]


def _is_magic(directory_fd: int) -> bool:
    """Whether a link in this directory may be a magic one (proc(5)), which jumps where its text does not say."""
    # procfs directories have no size and procfs no blocks; no file system that holds traces is like that.
    info = os.fstat(directory_fd)
    return info.st_size == 0 and os.fstatvfs(directory_fd).f_blocks == 0


def _reopen(opened: list[int], flags: int, path: str) -> int:
    """The file behind the last O_PATH descriptor, opened with `flags`."""
    if len(opened) == 1:
        return os.open(".", flags & ~os.O_NOFOLLOW, dir_fd=opened[0])
    fd = opened[-1]
    if flags & os.O_PATH:
        return os.dup(fd)
    if stat.S_ISLNK(os.fstat(fd).st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    # The descriptor is the very file that was looked at, whatever its name stands for by now.
    return os.open(f"/proc/self/fd/{fd}", flags & ~os.O_NOFOLLOW)
