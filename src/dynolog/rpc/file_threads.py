"""A few threads for what may block (a disk, a large /proc file), made when first needed, gone when idle."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class FileThreads:
    """Runs functions off the loop's thread, at most `limit` at once, in order of arrival.

    The threads are daemons: one that hangs in a dead network file system cannot keep the process from ending.
    """

    IDLE_S = 20.0

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int = 4, name: str = "rpc-file") -> None:
        self._loop = loop
        self._limit = limit
        self._name = name
        self._condition = threading.Condition()
        self._work: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0
        self._ended: Callable[[], None] | None = None

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """The function's result, or its exception. Cancelling the wait does not stop the function."""
        future: asyncio.Future[T] = self._loop.create_future()

        def work() -> None:
            try:
                result = function(*arguments)
            except BaseException as error:  # noqa: BLE001 - it belongs to the one who waits
                self._deliver(future, None, error)
            else:
                self._deliver(future, result, None)

        with self._condition:
            self._work.append(work)
            if self._idle >= len(self._work):
                self._condition.notify()
            elif self._threads < self._limit:
                self._start(work)
        return await future

    def _start(self, work: Callable[[], None]) -> None:
        """One more thread. Raises RuntimeError when none can be had and there is no other that would do this."""
        try:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        except RuntimeError:
            if not self._threads:
                self._work.remove(work)
                raise
        else:
            self._threads += 1

    def _deliver(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        def settle() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._on_loop(settle)

    def _on_loop(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop was closed while the function hung: nobody waits any more.
            return

    def close(self, ended: Callable[[], None]) -> None:
        """No more work comes. `ended` is called on the loop once no function runs any more: at once, or when one that hangs returns."""
        with self._condition:
            self._ended = ended
            self._condition.notify_all()
            if self._threads:
                return
        ended()

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        """What to do next; None for the end of this thread."""
        with self._condition:
            if not self._work and self._ended is None:
                self._idle += 1
                self._condition.wait(self.IDLE_S)
                self._idle -= 1
            if self._work:
                return self._work.popleft()
            self._threads -= 1
            if self._ended is not None and not self._threads:
                self._on_loop(self._ended)
            return None
