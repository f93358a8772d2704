"""What the daemon asks of its own process before anything else starts."""

import importlib
import resource
import sys

_WANTED_OPEN_FILES = 65536


def raise_open_files() -> int:
    """Raise the soft limit of open files towards the hard one: a pidfd a trainer, a socket a client. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _WANTED_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def shorten_switch_interval() -> None:
    """Let the socket thread have the interpreter within half a millisecond, not five, while a collector computes."""
    sys.setswitchinterval(0.0005)


def keep_malloc_small() -> None:
    """Keep glibc from giving each thread an arena of its own (a handful of mostly idle threads, megabytes each), and from keeping
    the memory of large requests for good: without a fixed threshold it takes the second large block from the heap, where what
    is freed between small ones stays with the process.
    """
    import ctypes  # noqa: PLC0415 - used by nothing else at start on some machines

    arena_max, mmap_threshold = -8, -3  # M_ARENA_MAX and M_MMAP_THRESHOLD of malloc.h, mallopt(3)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # not in musl
        libc.mallopt(arena_max, 1)
        libc.mallopt(mmap_threshold, 128 << 10)


def import_asyncio_without_ssl() -> None:
    """Import asyncio as on a Python without OpenSSL: 4 MB and 15 ms less, for a daemon that speaks no TLS.

    asyncio is made to work without ssl; the module stays importable for whoever needs it afterwards.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # the documented way to make an import fail
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]
