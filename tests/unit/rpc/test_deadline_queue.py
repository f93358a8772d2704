"""Deadlines in order, with one timer."""

import asyncio

from dynolog.rpc.deadline_queue import DeadlineQueue


def test_members_expire_in_order_unless_discarded_or_renewed() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        gone: list[str] = []
        queue: DeadlineQueue[str] = DeadlineQueue(loop, 0.03, gone.append)
        for name in "abc":
            queue.add(name)
        assert queue.oldest() == "a"
        queue.discard("b")
        queue.add("a")
        assert list(queue) == ["c", "a"]
        async with asyncio.timeout(5):
            while len(queue):
                await asyncio.sleep(0.005)
        assert gone == ["c", "a"]
        queue.add("d")
        async with asyncio.timeout(5):
            while len(queue):
                await asyncio.sleep(0.005)
        assert gone == ["c", "a", "d"]

    asyncio.run(story())


def test_one_that_ends_another_as_it_expires_is_fine() -> None:
    async def story() -> None:
        gone: list[str] = []
        queue: DeadlineQueue[str]

        def expire(name: str) -> None:
            gone.append(name)
            queue.discard("b")

        queue = DeadlineQueue(asyncio.get_running_loop(), 0.0, expire)
        queue.add("a")
        queue.add("b")
        async with asyncio.timeout(5):
            while len(queue):
                await asyncio.sleep(0.001)
        assert gone == ["a"]
        queue.stop()

    asyncio.run(story())
