"""Phase two of a trace of many hosts: the requests, sent to all at once."""

from collections.abc import Mapping, Sequence

from dynolog.fleet.fan_out import FanOutOptions, each, run
from dynolog.fleet.host_call import HostAnswer, HostCaller, Outcome
from dynolog.fleet.manifest import ASKED, NOT_TRACED, PLANNED, UNKNOWN, HostEntry, Manifest, ProcessEntry
from dynolog.rpc.messages import SetKinetOnDemandRequest, TraceReply


def trigger(manifest: Manifest, requests: Mapping[str, SetKinetOnDemandRequest], options: FanOutOptions) -> None:
    """Send each host its request (by label) and note in the manifest what comes back, as it comes.

    Raises TokenFileError, and KeyboardInterrupt with the manifest as far as it came.
    """
    hosts = [host for host in manifest.hosts if host.label in requests]
    by_host = processes_by_host(manifest)

    async def all_of_them() -> None:
        caller = HostCaller(options.token_file, options.tls)

        async def one(host: HostEntry) -> None:
            processes = by_host.get(host.label, [])
            for process in processes:
                process.outcome = ASKED if process.outcome == PLANNED else process.outcome
            answer = await caller.ask(host.target, requests[host.label], options.timeout_s)
            take_answer(manifest, host, [process for process in processes if process.outcome == ASKED], answer)

        await each(hosts, one, options.fanout)

    run(all_of_them())


def processes_by_host(manifest: Manifest) -> dict[str, list[ProcessEntry]]:
    """The processes of each host, by label."""
    found: dict[str, list[ProcessEntry]] = {}
    for process in manifest.processes:
        found.setdefault(process.host, []).append(process)
    return found


def take_answer(manifest: Manifest, host: HostEntry, processes: Sequence[ProcessEntry], answer: HostAnswer) -> None:
    """What one daemon made of its request."""
    host.outcome, host.error = str(answer.outcome), answer.error
    reply = answer.decode(TraceReply)
    if reply is None:
        sure = answer.outcome in (Outcome.REFUSED, Outcome.UNREACHABLE)
        for process in processes:
            process.outcome = NOT_TRACED if sure else UNKNOWN
            process.reason = answer.error if sure else f"it may be tracing: {answer.error}"
        return
    host.request_id = reply.request_id
    host.notes = list(reply.notes)
    host.matched, host.triggered = len(reply.processesMatched), len(reply.activityProfilersTriggered)
    if not reply.request_id and host.original:
        _take_original(manifest, host, reply)
        return
    captures = {(capture.pid, capture.host_pid): capture for capture in reply.captures}
    reasons = {(entry.pid, entry.host_pid): entry.error for entry in reply.not_traced}
    for process in processes:
        key = (process.pid, process.host_pid)
        if capture := captures.pop(key, None):
            process.update(capture)
        else:
            process.outcome = NOT_TRACED
            process.reason = reasons.get(key) or reply.no_match_reason or "it has ended since it was asked for"


def _take_original(manifest: Manifest, host: HostEntry, reply: TraceReply) -> None:
    """The original daemon says who matched, and never what became of it."""
    manifest.processes += [
        ProcessEntry(
            host=host.label,
            pid=pid,
            host_pid=0,
            outcome=UNKNOWN,
            reason="the original C++ dynolog cannot tell what becomes of a trace: look for the file",
        )
        for pid in reply.processesMatched
    ]
