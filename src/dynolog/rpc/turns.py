"""Turns on the socket thread for answers that take milliseconds: one in a round of the loop, so that trainers are answered in between."""

import asyncio
from collections import deque


class Turns:
    """First come, first served. Whoever took a turn does its work before it next awaits."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        self._handed_on = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def take(self) -> None:
        """Returns at once when this round's turn is free, else in a later round."""
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            loop.call_soon(self._next, loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        # The loop looks at all sockets before it runs what is due soon: that is where the others are served.
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its client has left
                turn.set_result(None)
                self._handed_on = True
                loop.call_soon(self._next, loop)
                return
        if self._handed_on:  # whoever got it works in this very round
            self._handed_on = False
            loop.call_soon(self._next, loop)
            return
        self._taken = False
