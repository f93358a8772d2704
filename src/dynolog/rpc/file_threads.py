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
                self._threads += 1
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        return await future

    def _deliver(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        def settle() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:
            # The loop was closed while the function hung: nobody waits any more.
            return

    def _serve(self) -> None:
        while True:
            with self._condition:
                if not self._work:
                    self._idle += 1
                    self._condition.wait(self.IDLE_S)
                    self._idle -= 1
                if not self._work:
                    self._threads -= 1
                    return
                work = self._work.popleft()
            work()
