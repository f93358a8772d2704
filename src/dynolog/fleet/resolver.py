"""Looking names up without holding up the loop, or the end of the command, by a name server that does not answer."""

import asyncio
import socket
import threading
from typing import Any

# An address family and what connect(2) takes.
Address = tuple[int, tuple[Any, ...]]
_LOOKUPS_AT_A_TIME = 64


class Resolver:
    """getaddrinfo(3) in threads of its own; those that hang are left behind."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_LOOKUPS_AT_A_TIME)

    async def addresses(self, host: str, port: int) -> list[Address]:
        """The addresses to try in turn. Raises OSError (gaierror) when there is none."""
        if host == "localhost":
            return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port))]
        if (literal := _literal(host, port)) is not None:
            return [literal]
        async with self._turns:
            return await _in_thread(host, port)


def _literal(host: str, port: int) -> Address | None:
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError):
        pass
    else:
        return socket.AF_INET, (host, port)
    try:
        socket.inet_pton(socket.AF_INET6, host)
    except (OSError, ValueError):
        return None
    return socket.AF_INET6, (host, port)


async def _in_thread(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[Address]] = loop.create_future()

    def settle(found: list[Address], error: OSError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(found)
        else:
            future.set_exception(error)

    def look_up() -> None:
        found: list[Address] = []
        failure: OSError | None = None
        try:
            found = [
                (int(family), address)
                for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            ]
        except OSError as error:
            failure = error
        except ValueError:  # a name that none can be
            failure = OSError(f"{host!r} is no host name")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, failure)

    # Not an executor: the interpreter waits at its end for the threads of one.
    threading.Thread(target=look_up, name=f"resolve-{host}", daemon=True).start()
    return await future
