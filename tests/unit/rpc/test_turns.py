"""Turns: at most one costly answer in a round of the loop."""

import asyncio

from dynolog.rpc.turns import Turns


def test_costly_answers_come_one_a_round_and_in_order() -> None:
    """Others that wait for the loop have their chance between any two."""

    async def story() -> list[int]:
        turns = Turns()
        loop = asyncio.get_running_loop()
        rounds = 0
        seen: list[int] = []
        order: list[int] = []

        def count() -> None:
            nonlocal rounds
            rounds += 1
            if len(seen) < 5:
                loop.call_soon(count)

        async def answer(index: int) -> None:
            await turns.take()
            order.append(index)
            seen.append(rounds)

        loop.call_soon(count)
        await asyncio.gather(*(answer(index) for index in range(5)))
        assert order == [0, 1, 2, 3, 4]
        return seen

    seen = asyncio.run(story())
    assert len(set(seen)) == len(seen), "two in one round"


def test_a_free_turn_is_taken_without_waiting() -> None:
    async def story() -> None:
        turns = Turns()
        taking = turns.take()
        try:
            taking.send(None)
        except StopIteration:
            return
        raise AssertionError("it waited")

    asyncio.run(story())


def test_one_whose_client_has_left_costs_no_turn_and_holds_up_nobody() -> None:
    async def story() -> None:
        turns = Turns()
        await turns.take()
        leaving = [asyncio.ensure_future(turns.take()) for _ in range(3)]
        staying = asyncio.ensure_future(turns.take())
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
        await asyncio.wait_for(staying, 5)
        assert len(turns) == 0
        await asyncio.wait_for(turns.take(), 5)

    asyncio.run(story())


def test_who_comes_in_the_round_in_which_the_last_of_a_queue_works_has_the_next() -> None:
    """Its turn is that round's, though nobody waits any more."""

    async def story() -> list[int]:
        turns = Turns()
        loop = asyncio.get_running_loop()
        rounds = 0
        worked: list[int] = []

        def count() -> None:
            nonlocal rounds
            rounds += 1
            if len(worked) < 3:
                loop.call_soon(count)

        async def work() -> None:
            await turns.take()
            worked.append(rounds)

        async def come_late() -> None:
            while len(worked) < 2:
                await asyncio.sleep(0)
            await work()

        loop.call_soon(count)
        await asyncio.gather(work(), work(), come_late())
        return worked

    worked = asyncio.run(story())
    assert len(set(worked)) == len(worked), f"two in one round: {worked}"
