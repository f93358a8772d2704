"""Following the requests of many hosts at the same time, to the end of each."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from dynolog.fleet.fan_out import FanOutOptions, files_for, run
from dynolog.fleet.host_call import HostAnswer, HostCaller, Outcome
from dynolog.fleet.manifest import UNKNOWN, HostEntry, Manifest, ProcessEntry
from dynolog.fleet.recover import may_be_tracing, recover
from dynolog.fleet.trigger import processes_by_host
from dynolog.model.capture import CaptureInfo
from dynolog.model.errors import TEMPORARY
from dynolog.rpc.messages import TraceProgressReply, WaitTrace

_ASK_FOR_S = 20.0  # one waitTrace; the daemon answers at once when something changes
_ASK_FOR_IN_TURN_S = 0.5
_PAUSE_S = 1.0
_TICK_S = 0.5
LOST = "lost"


def follow_hosts(
    manifest: Manifest,
    options: FanOutOptions,
    on_change: Callable[[], None],
    *,
    on_tick: Callable[[], None] = lambda: None,
    wait_timeout_s: float | None = None,
    outage_s: float = 10.0,
) -> None:
    """Keep the manifest's processes up to date until all are final or time is up; a daemon away for `outage_s` is given up.

    A daemon that never acknowledged its request is asked whether it has one of this group.

    `on_change` is called after each change, `on_tick` twice a second.
    Raises TokenFileError, and KeyboardInterrupt with the manifest as far as it came.
    """
    run(_with_ticks(_Following(manifest, options, on_change, wait_timeout_s, outage_s).all_hosts(), on_tick))


async def _with_ticks(work: Coroutine[Any, Any, None], on_tick: Callable[[], None]) -> None:
    async def tick() -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            on_tick()

    ticking = asyncio.create_task(tick())
    try:
        await work
    finally:
        ticking.cancel()


class _Following:
    def __init__(
        self,
        manifest: Manifest,
        options: FanOutOptions,
        on_change: Callable[[], None],
        wait_timeout_s: float | None,
        outage_s: float,
    ) -> None:
        self._manifest = manifest
        self._options = options
        self._on_change = on_change
        self._deadline_s = None if wait_timeout_s is None else time.monotonic() + wait_timeout_s
        self._outage_s = outage_s
        self._ask_for_s = _ASK_FOR_S

    async def all_hosts(self) -> None:
        by_host = processes_by_host(self._manifest)
        followed = [
            (host, by_host.get(host.label, []))
            for host in self._manifest.hosts
            if host.request_id and not all(one.is_final for one in by_host.get(host.label, []))
        ]
        unacknowledged = [
            (host, by_host[host.label])
            for host in self._manifest.hosts
            if may_be_tracing(host, by_host.get(host.label, []))
        ]
        at_a_time = files_for(max(len(followed) + len(unacknowledged), 1))
        if at_a_time < len(followed) + len(unacknowledged):  # then nobody may keep a connection for long
            self._ask_for_s = _ASK_FOR_IN_TURN_S
        self._turns = asyncio.Semaphore(at_a_time)
        self._caller = HostCaller(self._options.token_file, self._options.tls)
        async with asyncio.TaskGroup() as group:
            for host, processes in followed:
                group.create_task(self._follow(host, processes))
            for host, processes in unacknowledged:
                group.create_task(self._find_and_follow(host, processes))

    def _left_s(self) -> float:
        return self._ask_for_s if self._deadline_s is None else self._deadline_s - time.monotonic()

    async def _find_and_follow(self, host: HostEntry, processes: Sequence[ProcessEntry]) -> None:
        gone_s = time.monotonic()
        while self._left_s() > 0:
            async with self._turns:
                timeout_s = min(self._options.timeout_s, max(self._left_s(), 0.001))
                found = await recover(self._caller, self._manifest, host, processes, timeout_s)
            self._on_change()
            if found:
                if host.request_id:
                    await self._follow(host, processes)
                return
            if time.monotonic() - gone_s >= self._outage_s:
                return
            await asyncio.sleep(_PAUSE_S)

    async def _follow(self, host: HostEntry, processes: Sequence[ProcessEntry]) -> None:
        seen, heard_s = -1, time.monotonic()
        while True:
            wait_s = max(min(self._ask_for_s, self._left_s()), 0.0)
            request = WaitTrace(request_id=host.request_id, seen_version=seen, timeout_s=wait_s)
            async with self._turns:
                answer = await self._caller.ask(host.target, request, wait_s + self._options.timeout_s)
            reply = answer.decode(TraceProgressReply)
            if reply is not None and reply.requests:
                progress = reply.requests[0]
                seen, heard_s = progress.version, time.monotonic()
                host.outcome, host.error = str(Outcome.ANSWERED), ""
                self._take(processes, progress.captures)
                if progress.done:
                    return
            elif answer.outcome is Outcome.REFUSED and answer.code not in TEMPORARY:
                self._lose(host, processes, _why_refused(answer))
                return
            else:
                host.error = answer.error
                if time.monotonic() - heard_s >= self._outage_s:
                    self._lose(host, processes, f"its daemon was lost: {answer.error}")
                    return
                await asyncio.sleep(_PAUSE_S)
            if self._left_s() <= 0:
                return

    def _take(self, processes: Sequence[ProcessEntry], captures: Sequence[CaptureInfo]) -> None:
        by_id = {capture.id: capture for capture in captures}
        for process in processes:
            if capture := by_id.get(process.capture_id):
                process.update(capture)
        self._on_change()

    def _lose(self, host: HostEntry, processes: Sequence[ProcessEntry], reason: str) -> None:
        host.outcome, host.error = LOST, reason
        for process in processes:
            if not process.is_final:
                process.reason = f"{reason}; it was {process.outcome}: a trace that had been delivered is still written"
                process.outcome = UNKNOWN
        self._on_change()


def _why_refused(answer: HostAnswer) -> str:
    if answer.code == "not_found":
        return "its daemon was restarted and no longer knows the request"
    return f"its daemon refuses to tell: {answer.error}"
