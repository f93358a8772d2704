"""Asking many daemons at once: each with a deadline of its own, so that a dead one delays nobody."""

import asyncio
import resource
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from dynolog.fleet.host_call import HostAnswer as HostAnswer  # noqa: PLC0414 - named from here too
from dynolog.fleet.host_call import HostCaller
from dynolog.fleet.host_call import Outcome as Outcome  # noqa: PLC0414 - as above
from dynolog.fleet.targets import FleetTarget
from dynolog.rpc.client_tls import ClientTls
from dynolog.rpc.messages import Request

T = TypeVar("T")
Item = TypeVar("Item")
_FILES_OF_OUR_OWN = 64


class FanOutOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout_s` is each host's whole time for one phase, retries included; `fanout` the hosts at a time."""

    timeout_s: float = 10.0
    fanout: int = 512
    token_file: str = ""
    tls: ClientTls | None = None


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Ctrl-C cancels it, so that its `finally` blocks are carried out, and raises KeyboardInterrupt."""
    with asyncio.Runner() as runner:
        return runner.run(coroutine)


def ask_all(
    targets: Sequence[FleetTarget], request: Callable[[FleetTarget], Request] | Request, options: FanOutOptions
) -> list[HostAnswer]:
    """Ask every host once, at the same time; the answers in the order of the hosts. Raises TokenFileError only."""

    async def all_of_them() -> list[HostAnswer]:
        caller = HostCaller(options.token_file, options.tls)

        def one(target: FleetTarget) -> Awaitable[HostAnswer]:
            asked = request(target) if callable(request) else request
            return caller.ask(target, asked, options.timeout_s)

        return await each(targets, one, options.fanout)

    return run(all_of_them())


async def each(items: Sequence[Item], work: Callable[[Item], Awaitable[T]], fanout: int) -> list[T]:
    """The results of `work` for every item, in their order; at most `fanout` at a time, fewer when files run out."""
    results: dict[int, T] = {}
    queue = iter(enumerate(items))

    async def worker(queue: Iterator[tuple[int, Item]]) -> None:
        for index, item in queue:  # shared by all workers: each takes the next
            results[index] = await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(files_for(fanout), len(items))):
            group.create_task(worker(queue))
    return [results[index] for index in range(len(items))]


def files_for(wanted: int) -> int:
    """How many of so many connections may be open at once; raises the soft limit of open files (getrlimit(2)) for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _FILES_OF_OUR_OWN
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(min(wanted, soft - _FILES_OF_OUR_OWN), 1)
    return wanted
