"""Processes that end are reported once, at once, and leave nothing open."""

import errno
import os
import resource
import select
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.pidfd import PidfdWatch


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def sleeper() -> "subprocess.Popen[bytes]":
    """A process that ends when its stdin is closed."""
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def watch() -> Iterator[PidfdWatch]:
    watch = PidfdWatch()
    yield watch
    watch.close()


def readable(watch: PidfdWatch, timeout_s: float) -> bool:
    return bool(select.select([watch], [], [], timeout_s)[0])


def test_a_process_that_ends_is_reported_once(watch: PidfdWatch) -> None:
    first, second = sleeper(), sleeper()
    tokens = [watch.watch(first.pid), watch.watch(second.pid)]
    assert watch.gone() == []
    assert not readable(watch, 0)
    first.kill()
    assert readable(watch, 5)
    assert watch.gone() == [tokens[0]]
    assert watch.gone() == []
    assert not readable(watch, 0)
    assert len(watch) == 1
    end(first)
    end(second)


def test_a_zombie_has_ended(watch: PidfdWatch) -> None:
    process = sleeper()
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    token = watch.watch(process.pid)
    assert watch.gone() == [token]
    end(process)


def test_a_process_that_is_not_there(watch: PidfdWatch) -> None:
    process = sleeper()
    end(process)
    for pid in (process.pid, 0, -1):
        with pytest.raises(ProcessLookupError):
            watch.watch(pid)


def test_forgetting_closes_and_an_old_token_harms_nobody(watch: PidfdWatch) -> None:
    process = sleeper()
    before = open_fds()
    old = watch.watch(process.pid)
    watch.forget(old)
    assert open_fds() == before
    new = watch.watch(process.pid)  # the same descriptor number again
    watch.forget(old)
    assert len(watch) == 1
    end(process)
    assert readable(watch, 5)
    assert watch.gone() == [new]
    watch.forget(new)
    assert len(watch) == 0
    assert open_fds() == before - 1  # the pipe to the process that ended


def test_many_at_once_are_reported_in_bounded_batches(watch: PidfdWatch) -> None:
    process = sleeper()
    tokens = {watch.watch(process.pid) for _ in range(50)}
    assert len(tokens) == 50
    end(process)
    first = watch.gone(limit=20)
    assert len(first) == 20
    assert readable(watch, 0)
    assert set(first) | set(watch.gone(limit=100)) == tokens


def test_a_watched_process_costs_little_memory(watch: PidfdWatch) -> None:
    tracemalloc.start()
    try:
        watch.watch(os.getpid())
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            watch.watch(os.getpid())
        assert (tracemalloc.get_traced_memory()[0] - before) / 500 < 300
    finally:
        tracemalloc.stop()


def test_the_last_descriptors_are_left_to_the_rest_of_the_daemon() -> None:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    watch = PidfdWatch(reserved_fds=soft - open_fds() - 10)
    before = open_fds()
    with pytest.raises(SourceUnavailable, match=r"open files.*LimitNOFILE"):
        for _ in range(20):
            watch.watch(os.getpid())
    assert 0 < len(watch) < 20
    assert open_fds() == before + len(watch)
    watch.close()


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.EMFILE, "open files"), (errno.ENOSYS, "Linux 5.3"), (errno.EPERM, "seccomp")]
)
def test_what_the_kernel_refuses_is_said_with_its_remedy(
    watch: PidfdWatch, monkeypatch: pytest.MonkeyPatch, number: int, expected: str
) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(SourceUnavailable, match=expected):
        watch.watch(os.getpid())


def test_close_leaves_nothing_open() -> None:
    before = open_fds()
    watch = PidfdWatch()
    for _ in range(10):
        watch.watch(os.getpid())
    watch.close()
    assert open_fds() == before
