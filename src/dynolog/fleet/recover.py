"""A request that was sent and never acknowledged: asking its daemon what became of it."""

import time
from collections.abc import Sequence

from dynolog.fleet.host_call import HostCaller
from dynolog.fleet.manifest import ASKED, NOT_TRACED, PLANNED, UNKNOWN, HostEntry, Manifest, ProcessEntry
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.messages import GetStatus, GetTrace, StatusReply, TraceProgressReply

_OPEN = frozenset({PLANNED, ASKED, UNKNOWN})
# A daemon tells for how long it has run in its own seconds; within this the order of two events is not known.
_CLOSE_S = 5.0


def may_be_tracing(host: HostEntry, processes: Sequence[ProcessEntry]) -> bool:
    """Whether its daemon may have taken a request of which nothing came back. An original daemon could not tell."""
    return not host.original and not host.request_id and any(_is_open(process) for process in processes)


async def recover(
    caller: HostCaller, manifest: Manifest, host: HostEntry, processes: Sequence[ProcessEntry], timeout_s: float
) -> bool:
    """Find the request by its group and note what is found; False when the daemon gave no answer, so that nothing more is known."""
    answer = await caller.ask(host.target, GetTrace(group_id=manifest.group_id), timeout_s)
    reply = answer.decode(TraceProgressReply)
    if reply is None:
        host.outcome, host.error = str(answer.outcome), answer.error
        return False
    host.outcome, host.error = str(answer.outcome), ""
    of_group = [progress for progress in reply.requests if progress.group_id == manifest.group_id]
    if of_group:
        _take(host, processes, of_group[-1])
        return True
    answer = await caller.ask(host.target, GetStatus(verbose=True), timeout_s)
    status = answer.decode(StatusReply)
    asked_s = (time.time_ns() - manifest.created_wall_ns) / 1e9
    same = status is not None and status.daemon is not None and status.daemon.own.uptime_s > asked_s + _CLOSE_S
    for process in filter(_is_open, processes):
        process.outcome = NOT_TRACED if same else UNKNOWN
        process.reason = (
            "its daemon did not get the request"
            if same
            else "its daemon knows no such request: it did not get it, or was restarted since"
        )
    return True


def _is_open(process: ProcessEntry) -> bool:
    return process.outcome in _OPEN and not process.capture_id


def _take(host: HostEntry, processes: Sequence[ProcessEntry], progress: RequestProgress) -> None:
    host.request_id = progress.request_id
    host.triggered = len(progress.captures)
    captures = {(capture.pid, capture.host_pid): capture for capture in progress.captures}
    for process in filter(_is_open, processes):
        if capture := captures.get((process.pid, process.host_pid)):
            process.update(capture)
        else:
            process.outcome, process.reason = NOT_TRACED, "its daemon took the request and left it out"
