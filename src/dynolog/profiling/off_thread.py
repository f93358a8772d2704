"""One blocking call on a thread of its own, awaited on the loop.

A pool would let a few calls that hang (a dead NFS) hold up all others, and the end of the daemon with them.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def call_off_thread(function: Callable[[], Result], *, discard: Callable[[Result], None]) -> Result:
    """The result of `function()`, or what it raised. `discard` gets a result that nobody waits for any more (an open descriptor)."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def succeeded(result: Result) -> None:
        if answer.done():
            discard(result)
        else:
            answer.set_result(result)

    def failed(error: BaseException) -> None:
        if not answer.done():
            answer.set_exception(error)

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits
            failure = error
            _tell(loop, lambda: failed(failure))
        else:
            if not _tell(loop, lambda: succeeded(result)):
                discard(result)

    threading.Thread(target=run, name="off-thread", daemon=True).start()
    try:
        return await answer
    except asyncio.CancelledError:
        # Cancelled after the result had come and before we ran again: nobody else will ever see it.
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            discard(answer.result())
        raise


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> bool:
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop was closed meanwhile
        return False
    return True
