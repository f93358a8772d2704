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
