"""Several files at once, each in a process of its own: one core reads one file."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from dynolog.model.errors import DynologError

T = TypeVar("T")

# Columns and what is being decoded take less than the JSON; compressed files are about a twentieth of theirs.
_MEMORY_PER_BYTE = 1.0
_COMPRESSION = 20
_USABLE_SHARE = 0.5
# A process is ready after a third of a second, in which 60 MB are read.
_WORTH_BYTES = 200_000_000
_GZIP = b"\x1f\x8b"
LOST = "the process that read it was ended from outside, as the kernel does when memory runs out"


class ProcessLost(DynologError):  # noqa: N818 - it says what is the case
    """A file whose process did not live to give an answer, twice."""


def map_files(
    work: Callable[[str], T],
    paths: Sequence[str],
    *,
    processes: int = 0,
    memory_bytes: int = 0,
    lost: Callable[[str], T] | None = None,
) -> Iterator[tuple[str, T]]:
    """`work` on each file, in the order given. It runs in other processes, so it and what it returns must be picklable.

    At most `processes` at once (0: one a core, and none for files so small that starting them would take longer), and no more than fit
    into `memory_bytes` (0: half of what is free now), the largest file counted for each. With one process, or one file, it runs here.
    What `work` raises is raised here. When a process ends in the middle (the kernel ends one when memory runs out), the files that
    are left are read one at a time; one that ends its process again gives what `lost` says of it, else ProcessLost is raised.
    """
    if not processes and sum(map(_text_bytes, paths)) < _WORTH_BYTES:
        processes = 1
    count = min(
        processes or usable_cores(),
        len(paths),
        _fitting(paths, memory_bytes or int(free_memory_bytes() * _USABLE_SHARE)),
    )
    if count <= 1:
        for path in paths:
            yield path, work(path)
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - only for several files
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415
    from multiprocessing import get_context  # noqa: PLC0415

    # Not fork: the caller may have threads, such as the progress bar's.
    started = partial(ProcessPoolExecutor, mp_context=get_context("spawn"), initializer=end_with_parent)
    done = 0
    with contextlib.suppress(BrokenProcessPool), started(count) as pool:
        for path, result in zip(paths, pool.map(work, paths), strict=True):
            done += 1
            yield path, result
    for path in paths[done:]:
        try:
            with started(1) as pool:
                result = pool.submit(work, path).result()
        except BrokenProcessPool:
            if lost is None:
                raise ProcessLost(f"{path}: {LOST}") from None
            result = lost(path)
        yield path, result


def end_with_parent() -> None:
    """In a process of the pool: end when the one that started it has, however that ended; nobody else would."""
    import threading  # noqa: PLC0415 - only for several files
    from multiprocessing import parent_process  # noqa: PLC0415

    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def usable_cores() -> int:
    """How many cores this process may use, at least 1."""
    return max(len(os.sched_getaffinity(0)), 1)


def free_memory_bytes() -> int:
    """Memory that can be had without swapping (`MemAvailable`, proc(5)), bounded by the limit of our cgroup when there is one."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
    return min(available, _cgroup_limit_bytes())


def _cgroup_limit_bytes() -> int:
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return int(file.read())
    except (OSError, ValueError):  # no cgroup of version 2, or no limit ("max")
        return 1 << 62


def _fitting(paths: Sequence[str], memory_bytes: int) -> int:
    largest = max((_text_bytes(path) for path in paths), default=0)
    return max(int(memory_bytes / (largest * _MEMORY_PER_BYTE + 1)), 1)


def _text_bytes(path: str) -> int:
    """About how much JSON a file holds. A file that cannot be read takes nothing; `work` says why."""
    try:
        with open(path, "rb") as file:
            compressed = file.read(2) == _GZIP
            return os.fstat(file.fileno()).st_size * (_COMPRESSION if compressed else 1)
    except OSError:
        return 0
