"""What collectors have said that a person should know: said once, kept for the status."""

import logging

_log = logging.getLogger(__name__)
# Keys may hold device names, and devices come and go for months.
_MOST_KEPT = 64


class NoticeBoard:
    """The notices of one collector, newest last (collectors.spec.Notices)."""

    def __init__(self, collector: str) -> None:
        self._collector = collector
        self._said: dict[str, str] = {}

    def say(self, key: str, sentence: str) -> None:
        """Log `sentence` and keep it, unless it is what was last said for `key`; an empty one takes `key` back silently."""
        if not sentence:
            self._said.pop(key, None)
            return
        if self._said.get(key) == sentence:
            return
        self._said.pop(key, None)
        while len(self._said) >= _MOST_KEPT:
            self._said.pop(next(iter(self._said)))
        self._said[key] = sentence
        _log.info("%s: %s", self._collector, sentence)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What stands. Safe from any thread: making the tuple is one step of the interpreter."""
        return tuple(self._said.values())
