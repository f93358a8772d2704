"""A blocking call whose caller may go away at any moment."""

import asyncio
import contextlib
import os
import threading
import time

import pytest

from dynolog.profiling.off_thread import call_off_thread


def test_a_result_that_came_just_before_the_cancellation_is_discarded() -> None:
    """A descriptor that was opened for somebody who is cancelled in the same round of the loop would else stay open."""
    discarded: list[str] = []

    async def story() -> None:
        waiting = asyncio.ensure_future(call_off_thread(lambda: "open", discard=discarded.append))
        await asyncio.sleep(0)
        answered = threading.Event()
        # The loop is held here while the thread answers, so that its answer is set right before the cancellation below.
        deadline = time.monotonic() + 5
        while any(thread.name == "off-thread" for thread in threading.enumerate()) and time.monotonic() < deadline:
            answered.wait(0.001)
        asyncio.get_running_loop().call_soon(waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(story())
    assert discarded == ["open"]


def test_a_result_that_comes_after_the_cancellation_is_discarded() -> None:
    release = threading.Event()
    gone = threading.Event()
    discarded: list[int] = []

    def opened() -> int:
        release.wait(5)
        return os.open(os.devnull, os.O_RDONLY)

    def close(fd: int) -> None:
        os.close(fd)
        discarded.append(fd)
        gone.set()

    async def story() -> None:
        waiting = asyncio.ensure_future(call_off_thread(opened, discard=close))
        await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        release.set()
        while not gone.is_set():
            await asyncio.sleep(0.001)

    asyncio.run(story())
    assert len(discarded) == 1
