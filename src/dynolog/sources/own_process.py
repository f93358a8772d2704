"""What this process costs: getrusage(2), `/proc/self/stat` and `/proc/self/fd` (proc_pid_stat(5), proc_pid_fd(5))."""

import contextlib
import os
import resource

import msgspec

from dynolog.sources.host_files import KernelFile

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Positions after the last `)` of /proc/PID/stat.
_NUM_THREADS = 17
_RSS_PAGES = 21


class OwnProcess(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time with that of children that have ended, and what is held now; None where /proc does not tell.

    `wakeups` counts how often a thread gave up the CPU to wait, so how often one had to be woken.
    """

    cpu_ns: int
    wakeups: int
    rss_bytes: int | None = None
    threads: int | None = None
    open_files: int | None = None


def own_cpu_ns() -> int:
    """CPU time of this process and of its children that have ended, in ns (to a µs)."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime) * 1e9)


class OwnProcessReader:
    """Reads this process again and again; always below /proc of its own namespace, whatever --root_dir says."""

    def __init__(self, proc_self: str = "/proc/self") -> None:
        self._stat = KernelFile(f"{proc_self}/stat")
        self._fd_directory = f"{proc_self}/fd"

    def read(self) -> OwnProcess:
        """One reading; never raises."""
        rss_bytes = threads = None
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name may hold spaces and brackets: what follows it starts after the last bracket.
            fields = self._stat.read().rpartition(b")")[2].split()
            threads, rss_bytes = int(fields[_NUM_THREADS]), int(fields[_RSS_PAGES]) * _PAGE_BYTES
        return OwnProcess(
            cpu_ns=own_cpu_ns(),
            wakeups=resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw,
            rss_bytes=rss_bytes,
            threads=threads,
            open_files=self._open_files(),
        )

    def _open_files(self) -> int | None:
        try:
            # Since Linux 6.2 the size of the directory is the number of descriptors; before, it is 0.
            return os.stat(self._fd_directory).st_size or len(os.listdir(self._fd_directory)) - 1
        except OSError:
            return None
