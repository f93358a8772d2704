"""The audit log: a line for each call that acts, marked `audit:` in the daemon's log, with one JSON object.

Who (user, certificate, token's file, address), what, on which processes, and what came of it. Never a secret: requests are not
copied, their facts are named one by one. What comes from outside cannot forge a line: JSON escapes it.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from dynolog.model.capture import WrittenTrace
from dynolog.model.errors import RequestError
from dynolog.model.role import Role
from dynolog.model.trace_request import Caller
from dynolog.rpc.line_budget import LineBudget
from dynolog.rpc.messages import (
    BoolReply,
    DcgmProfPause,
    FetchTrace,
    Reload,
    ReloadReply,
    Request,
    SetKinetOnDemandRequest,
)

log = logging.getLogger("dynolog.audit")

_MOST_PIDS = 64
_MOST_CHARS = 512
_EVERY_S = 60.0
_MOST_REMEMBERED = 1024

Facts = dict[str, Any]


class _Armed(msgspec.Struct, frozen=True):
    path: str = ""


class _Reply(msgspec.Struct, frozen=True):
    """What of a reply to a trace request is kept."""

    request_id: str = ""
    activityProfilersTriggered: tuple[int, ...] = ()  # noqa: N815 - the protocol's name
    processesMatched: tuple[int, ...] = ()  # noqa: N815
    captures: tuple[_Armed, ...] = ()
    no_match_code: str = ""


class AuditLog:
    """Writes the lines. Calls that changed nothing are written once a minute for the same caller and outcome, then counted."""

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], list[float]] = {}
        # What was done is always written.
        self._budget = LineBudget("lines of the audit log about calls that changed nothing")

    def done(self, role: Role, function: str, caller: Caller, request: Request, answer: bytes | WrittenTrace) -> None:
        """A call was carried out; `answer` is the reply, or the file that is being sent."""
        if role <= Role.READ:
            return
        outcome, facts, acted = _outcome(request, answer)
        self._write(function, caller, outcome, facts, acted=acted)

    def refused(self, role: Role, function: str, caller: Caller, request: Request, error: RequestError) -> None:
        """A call was refused."""
        if role > Role.READ:
            facts = _named(request) | {"error": error.sentence[:_MOST_CHARS]}
            self._write(function, caller, error.code, facts, acted=False)

    def _write(self, function: str, caller: Caller, outcome: str, facts: Facts, *, acted: bool) -> None:
        host = caller.address.partition(" port ")[0] if caller.uid is None else ""
        repeated = 0
        if not acted:
            key = (function, caller.uid, caller.name, host, outcome)
            now_s = time.monotonic()
            seen = self._seen.get(key)
            if seen is not None and now_s - seen[0] < _EVERY_S:
                seen[1] += 1
                return
            if not self._budget.take():
                return
            repeated = int(seen[1]) if seen else 0
            if len(self._seen) >= _MOST_REMEMBERED:
                self._seen.clear()
            self._seen[key] = [now_s, 0]
        entry: Facts = {"fn": function, "from": caller.address, "transport": str(caller.transport)}
        if caller.uid is not None:
            entry["uid"] = caller.uid
        if caller.name:
            entry["proved_by"] = caller.name
        entry |= {"role": caller.role.word, "outcome": outcome} | facts
        if repeated:
            entry["more_like_it_before"] = repeated
        log.info("audit: %s", _line(entry))


def _line(entry: Mapping[str, Any]) -> str:
    """The object on one line of ASCII: no character of it ends the line or steers a terminal."""
    # The standard library's, because it escapes all that is not ASCII; a trace is not requested a thousand times a second.
    import json  # noqa: PLC0415

    return json.dumps(entry, separators=(",", ":"))


def _named(request: Request) -> Facts:
    """What was asked for."""
    match request:
        case SetKinetOnDemandRequest():
            facts: Facts = {"pids": request.pids[:_MOST_PIDS]}
            if request.job or request.job_id:
                facts["job"] = request.job[:_MOST_CHARS] or request.job_id
            if log_file := _log_file(request.config):
                facts["log_file"] = log_file
            return facts | ({"dry_run": True} if request.dry_run else {})
        case FetchTrace():
            return {"capture": request.capture_id[:_MOST_CHARS], "offset": request.offset}
        case DcgmProfPause():
            return {"duration_s": request.duration_s}
        case _:
            return {}


def _outcome(request: Request, answer: bytes | WrittenTrace) -> tuple[str, Facts, bool]:
    """In one word, with facts, and whether something was done."""
    facts = _named(request)
    if isinstance(answer, WrittenTrace):
        capture = answer.capture
        more = {
            "path": capture.path[:_MOST_CHARS],
            "pid": capture.host_pid,
            "of_uid": capture.uid,
            "bytes": answer.size_bytes,
        }
        return "ok", facts | more, True
    if isinstance(request, SetKinetOnDemandRequest):
        reply = msgspec.json.decode(answer, type=_Reply)
        triggered = reply.activityProfilersTriggered
        facts |= {
            "triggered": triggered[:_MOST_PIDS],
            "triggered_count": len(triggered),
            "matched": len(reply.processesMatched),
        }
        if reply.request_id:
            facts["request"] = reply.request_id
        if request.log_files:
            # They win over the path of the config: what counts is where files are written.
            facts["log_files"] = [armed.path[:_MOST_CHARS] for armed in reply.captures[:_MOST_PIDS]]
        return reply.no_match_code or "ok", facts, bool(reply.request_id)
    if isinstance(request, Reload):
        report = msgspec.json.decode(answer, type=ReloadReply)
        return "errors" if report.errors else "ok", facts | {"changed": report.changed, "errors": report.errors}, True
    done = msgspec.json.decode(answer, type=BoolReply).status
    return "ok" if done else "nothing_done", facts, done


def _log_file(config: str) -> str:
    for line in config[: 1 << 16].splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "ACTIVITIES_LOG_FILE":
            return value.strip()[:_MOST_CHARS]
    return ""
