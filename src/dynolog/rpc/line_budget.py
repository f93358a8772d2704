"""How many lines strangers may cause in the log: whoever has many addresses must not fill the disk with their refusals."""

import logging
import time

log = logging.getLogger(__name__)


class LineBudget:
    """At most `most` lines in each `every_s`; of the rest, one line tells the number."""

    def __init__(self, what: str, most: int = 120, every_s: float = 60.0) -> None:
        self._what = what
        self._most = most
        self._every_s = every_s
        self._begun_s = float("-inf")
        self._written = 0
        self._left_out = 0

    def take(self) -> bool:
        """Whether one more line may be written."""
        now_s = time.monotonic()
        if now_s - self._begun_s >= self._every_s:
            if self._left_out:
                log.warning(
                    "rpc: %d more %s were not written: at most %d a minute", self._left_out, self._what, self._most
                )
            self._begun_s, self._written, self._left_out = now_s, 0, 0
        if self._written < self._most:
            self._written += 1
            return True
        if not self._left_out:
            log.warning("rpc: more than %d %s in a minute: further ones are only counted", self._most, self._what)
        self._left_out += 1
        return False
