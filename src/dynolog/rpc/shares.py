"""What each caller may have of something at once, so that no caller takes all of it from the others."""

from collections import Counter

from dynolog.model.errors import RequestError
from dynolog.model.trace_request import Caller


def whose(caller: Caller) -> str:
    """Whom a share belongs to: a user of this machine, or a host."""
    return caller.address.partition(" port ")[0] if caller.uid is None else f"uid {caller.uid}"


class Shares:
    """At most `most` at once for each caller; the refusal says `things` and `state`: "32 trace requests of uid 7 are being looked at"."""

    def __init__(self, most: int, things: str, state: str) -> None:
        self._most = most
        self._things = things
        self._state = state
        self._taken: Counter[str] = Counter()

    def take(self, who: str) -> None:
        """One more for this caller; `give` must follow. Raises RequestError("busy")."""
        if self._taken[who] >= self._most:
            raise RequestError("busy", f"{self._most} {self._things} of {who} {self._state}: try again")
        self._taken[who] += 1

    def give(self, who: str) -> None:
        """One less."""
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]
