"""A loop with an IPC on it that a test, on its own thread, plays the trainers of."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from dynolog.ipc.counters import IpcCounters
from dynolog.ipc.handler import Sender
from dynolog.ipc.listener import IpcListener
from dynolog.ipc.wire import ConfigRequest, ContextMessage
from dynolog.model.trainer import Peer
from fakes.collector_context import FakeNotices

Result = TypeVar("Result")


class FakeHandler:
    """Answers every poll with `text` and keeps what it was asked."""

    def __init__(self, text: str | None = "") -> None:
        self.text = text
        self.count = 1
        self.keep = True
        self.error: Exception | None = None
        self.requests: list[tuple[Peer, Sender, ConfigRequest]] = []
        self.contexts: list[tuple[Peer, Sender, ContextMessage]] = []
        self.lost: list[tuple[Peer, Sender, str]] = []

    def on_request(self, peer: Peer, sender: Sender, request: ConfigRequest) -> str | None:
        if self.keep:
            self.requests.append((peer, sender, request))
        if self.error:
            raise self.error
        return self.text

    def on_context(self, peer: Peer, sender: Sender, message: ContextMessage) -> int:
        self.contexts.append((peer, sender, message))
        if self.error:
            raise self.error
        return self.count

    def on_reply_failed(self, peer: Peer, sender: Sender, text: str) -> None:
        self.lost.append((peer, sender, text))


class LoopThread:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def call(self, function: Callable[[], Result]) -> Result:
        """Run `function` on the loop's thread, between two of its events."""

        async def run() -> Result:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)


class Served:
    """A listener on its own loop thread, with what it was given."""

    def __init__(self, thread: LoopThread, socket_dir: str, name: str) -> None:
        self.name = name
        self.handler = FakeHandler()
        self.notices = FakeNotices()
        self.thread = thread
        self.listener = IpcListener(self.handler, thread.loop, self.notices, socket_dir=socket_dir, name=name)

    def start(self) -> "Served":
        self.thread.call(self.listener.start)
        return self

    def close(self) -> None:
        self.thread.call(self.listener.close)

    @property
    def counters(self) -> IpcCounters:
        """The counters once the datagram in hand is done with: an answer can be read before it is counted."""
        return self.thread.call(lambda: self.listener.counters)

    def settled(self) -> None:
        """Returns when the loop has been through its ready events."""
        for _ in range(3):
            self.thread.call(lambda: None)


Serve = Callable[..., Served]
