"""A real RpcServer on fake services, in a thread: what a client of a test talks to."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dynolog.model.flag import FlagValue, Settings
from dynolog.rpc.flags import FLAGS
from dynolog.rpc.server import RpcServer
from dynolog.rpc.services import Services
from fakes.services import FakeServices


class RpcThread:
    """The server and its loop; `run` calls something on the loop and returns its result."""

    def __init__(self, services: FakeServices | Services, **flags: FlagValue) -> None:
        self.loop = asyncio.new_event_loop()
        given: dict[str, FlagValue] = {"port": 0, "rpc_unix_socket": "none"}
        settings = Settings(FLAGS, given | flags)
        real = services.services if isinstance(services, FakeServices) else services
        self.server = RpcServer(self.loop, real, settings)
        self._thread = threading.Thread(target=self._serve, name="rpc-daemon")

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def start(self) -> None:
        self.server.start()
        self._thread.start()

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        async def call() -> Any:
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


@contextlib.contextmanager
def running_server(services: FakeServices | Services, **flags: FlagValue) -> Iterator[RpcThread]:
    """A server with these flags set; see `RpcThread`."""
    thread = RpcThread(services, **flags)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


@contextlib.contextmanager
def running_daemon(services: FakeServices | Services, **flags: FlagValue) -> Iterator[int]:
    """A server on loopback; gives its port."""
    with running_server(services, **flags) as thread:
        yield thread.server.port
