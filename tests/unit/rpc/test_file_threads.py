"""Threads for what may block."""

import asyncio
import threading

import pytest

from dynolog.rpc.file_threads import FileThreads


def test_results_and_errors_come_back_and_a_hanging_call_delays_no_other() -> None:
    async def story() -> None:
        threads = FileThreads(asyncio.get_running_loop(), limit=2)
        hang = threading.Event()
        hanging = asyncio.ensure_future(threads.run(hang.wait, 30))
        assert await asyncio.wait_for(threads.run(divmod, 7, 3), 5) == (2, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 1, 0)
        hang.set()
        assert await hanging

    asyncio.run(story())


def test_no_more_threads_than_the_limit_and_none_when_idle() -> None:
    async def story() -> None:
        threads = FileThreads(asyncio.get_running_loop(), limit=3, name="limited")
        threads.IDLE_S = 0.01
        barrier = threading.Barrier(3)
        await asyncio.gather(*(threads.run(barrier.wait, 10) for _ in range(9)))
        names = [thread for thread in threading.enumerate() if thread.name == "limited"]
        assert len(names) <= 3
        for thread in names:
            await asyncio.to_thread(thread.join, 5)
            assert not thread.is_alive()
        assert await threads.run(abs, -1) == 1

    asyncio.run(story())


def test_a_result_that_nobody_waits_for_is_dropped() -> None:
    hang = threading.Event()

    async def story() -> None:
        threads = FileThreads(asyncio.get_running_loop(), name="dropped")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await threads.run(hang.wait, 30)

    asyncio.run(story())
    hang.set()
    for thread in threading.enumerate():
        if thread.name == "dropped":
            thread.join(0.5)


def test_closed_it_says_when_the_last_function_has_returned() -> None:
    """So that a descriptor is not closed, and its number given to another file, under a read that hangs."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        unused, used, hung = asyncio.Event(), asyncio.Event(), asyncio.Event()
        FileThreads(loop).close(unused.set)
        assert unused.is_set()
        threads = FileThreads(loop)
        await threads.run(abs, -1)
        threads.close(used.set)
        await asyncio.wait_for(used.wait(), 30)
        hang = threading.Event()
        threads = FileThreads(loop, limit=1)
        waits = asyncio.ensure_future(threads.run(hang.wait, 30))
        await asyncio.sleep(0)
        threads.close(hung.set)
        await asyncio.sleep(0.05)
        assert not hung.is_set()
        hang.set()
        await asyncio.wait_for(hung.wait(), 30)
        assert await waits

    asyncio.run(story())


def test_without_a_thread_to_be_had_it_is_said_and_works_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the limit of tasks of a service: a thread that was never there must not be counted."""

    async def story() -> None:
        threads = FileThreads(asyncio.get_running_loop(), limit=1)
        with monkeypatch.context() as patched, pytest.raises(RuntimeError):
            patched.setattr(threading.Thread, "start", _no_thread)
            await threads.run(abs, -1)
        assert await asyncio.wait_for(threads.run(abs, -2), 30) == 2

    asyncio.run(story())


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
