"""Learning at once that a process has ended (pidfd_open(2), epoll(7))."""

import contextlib
import errno
import os
import select

from dynolog.model.errors import SourceUnavailable

_FD_BITS = 32
_FD_MASK = (1 << _FD_BITS) - 1
# Descriptors left to the rest of the daemon (sockets, kernel files, traces being fetched) when processes are many.
RESERVED_FDS = 256


class PidfdWatch:
    """Watches many processes through one descriptor: `fileno()` is readable while `gone()` has something to say.

    One open descriptor and one small int for each process. A token from `watch` is never given out twice, so that
    forgetting a process that has already been reported is harmless. Use it from one thread.
    """

    def __init__(self, reserved_fds: int = RESERVED_FDS) -> None:
        self._epoll = select.epoll()
        self._tokens: dict[int, int] = {}
        self._serial = 0
        self._reserved_fds = reserved_fds

    def __len__(self) -> int:
        return len(self._tokens)

    def fileno(self) -> int:
        """The descriptor for an event loop; it stays readable until `gone` has reported everything."""
        return self._epoll.fileno()

    def watch(self, pid: int) -> int:
        """Watch the process `pid`; the token names it from now on.

        A zombie counts as ended and is reported by the next `gone`. Raises ProcessLookupError when there is no such process
        (or `pid` is a thread), and SourceUnavailable when the kernel or the limit on open files does not allow to watch it.
        """
        if pid <= 0:
            raise ProcessLookupError(errno.ESRCH, f"pid {pid} names no process")
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError as error:
            raise _cannot_watch(pid, error) from error
        if pidfd >= _soft_limit() - self._reserved_fds:
            os.close(pidfd)
            raise _too_many()
        try:
            self._epoll.register(pidfd, select.EPOLLIN)
        except OSError as error:
            os.close(pidfd)
            raise _cannot_watch(pid, error) from error
        self._serial += 1
        token = self._serial << _FD_BITS | pidfd
        self._tokens[pidfd] = token
        return token

    def forget(self, token: int) -> None:
        """Stop watching; a token that was reported or forgotten before is ignored."""
        pidfd = token & _FD_MASK
        if self._tokens.get(pidfd) == token:
            self._drop(pidfd)

    def gone(self, limit: int = 256) -> list[int]:
        """Tokens of processes that have ended, each once, at most `limit` at a time; they are watched no longer."""
        ended: list[int] = []
        for pidfd, _events in self._epoll.poll(0, limit):
            ended.append(self._tokens[pidfd])
            self._drop(pidfd)
        return ended

    def close(self) -> None:
        """Close every descriptor."""
        for pidfd in self._tokens:
            with contextlib.suppress(OSError):
                os.close(pidfd)
        self._tokens.clear()
        self._epoll.close()

    def _drop(self, pidfd: int) -> None:
        # Explicitly, and before close(2): a descriptor that a forked child still holds would stay in the epoll set.
        with contextlib.suppress(OSError):
            self._epoll.unregister(pidfd)
        os.close(pidfd)
        del self._tokens[pidfd]


def _soft_limit() -> int:
    import resource  # noqa: PLC0415 - only a daemon with trainers needs it

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 31


def _too_many() -> SourceUnavailable:
    return SourceUnavailable(
        "pidfd",
        f"the limit of {_soft_limit()} open files is nearly reached",
        "raise it (LimitNOFILE= of the service, ulimit -n); until then a trainer that ends is noticed 60 s later",
    )


def _cannot_watch(pid: int, error: OSError) -> Exception:
    match error.errno:
        case errno.EINVAL | errno.ENOENT:  # a thread's id: it has no process of its own
            return ProcessLookupError(errno.ESRCH, f"pid {pid} is not a process")
        case errno.EMFILE | errno.ENFILE | errno.ENOMEM | errno.ENOSPC:
            return _too_many()
        case errno.ENOSYS:
            return SourceUnavailable("pidfd", "this kernel has no pidfd_open", "use Linux 5.3 or later")
        case errno.EPERM | errno.EACCES:
            return SourceUnavailable("pidfd", "pidfd_open is forbidden", "allow it in the container's seccomp profile")
        case _:
            return SourceUnavailable("pidfd", error.strerror or str(error))
