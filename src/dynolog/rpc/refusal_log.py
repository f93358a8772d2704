"""What is refused, in the log: each once with who, however often it is tried."""

import logging
import time

import msgspec

from dynolog.model.errors import RequestError
from dynolog.rpc.origin import Origin

log = logging.getLogger(__name__)


class _Refused(msgspec.Struct):
    logged_s: float
    unlogged: int = 0


class RefusalLog:
    """Logs who was refused what, each once in `every_s`, with how often it was repeated."""

    def __init__(self, every_s: float = 60.0, limit: int = 1024) -> None:
        self._every_s = every_s
        self._limit = limit
        self._seen: dict[tuple[str, str, str], _Refused] = {}

    def add(self, origin: Origin, function: str, error: RequestError) -> None:
        """Note one refusal."""
        host = origin.peer[0] if origin.peer else f"uid {origin.uid}"
        now_s = time.monotonic()
        key = (host, function, error.code)
        seen = self._seen.get(key)
        if seen is not None and now_s - seen.logged_s < self._every_s:
            seen.unlogged += 1
            return
        again = f" ({seen.unlogged} more like it before)" if seen is not None and seen.unlogged else ""
        log.warning("rpc: refused %s from %s: %s: %s%s", function, origin.who, error.code, error.sentence, again)
        if len(self._seen) >= self._limit:
            self._seen.clear()
        self._seen[key] = _Refused(now_s)
