"""What is refused, in the log: each once with who, however often it is tried."""

import logging
import socket
import time

import msgspec

from dynolog.model.errors import RequestError
from dynolog.model.trace_request import Transport
from dynolog.rpc.line_budget import LineBudget
from dynolog.rpc.origin import Origin

log = logging.getLogger(__name__)


class _Refused(msgspec.Struct):
    logged_s: float
    unlogged: int = 0


class RefusalLog:
    """Logs who was refused what, each once in `every_s`, with how often it was repeated; few lines in all, however many they are."""

    def __init__(self, every_s: float = 60.0, limit: int = 1024) -> None:
        self._every_s = every_s
        self._limit = limit
        self._seen: dict[tuple[str, str, str], _Refused] = {}
        self._budget = LineBudget("refusals")

    def add(self, origin: Origin, function: str, error: RequestError, uid: int | None = None) -> None:
        """Note one refusal; `uid` where it was found out."""
        now_s = time.monotonic()
        key = (_whose(origin, uid), function, error.code)
        seen = self._seen.get(key)
        if seen is not None and now_s - seen.logged_s < self._every_s:
            seen.unlogged += 1
            return
        if not self._budget.take():
            return
        again = f" ({seen.unlogged} more like it before)" if seen is not None and seen.unlogged else ""
        who = origin.who if uid is None or origin.transport is Transport.UNIX else f"{origin.who} (uid {uid})"
        log.warning("rpc: refused %s from %s: %s: %s%s", function, who, error.code, error.sentence, again)
        if len(self._seen) >= self._limit:
            self._seen.clear()
        self._seen[key] = _Refused(now_s)


def _whose(origin: Origin, uid: int | None) -> str:
    """Whom a refusal belongs to. A user of this machine has all of 127.0.0.0/8 to come from, and a host of IPv6 a network of its own."""
    if origin.peer is None or uid is not None:
        return f"uid {origin.uid if uid is None else uid}"
    host = origin.peer[0]
    if origin.transport is Transport.LOOPBACK:
        return "loopback"
    return socket.inet_pton(socket.AF_INET6, host)[:8].hex() if ":" in host else host
