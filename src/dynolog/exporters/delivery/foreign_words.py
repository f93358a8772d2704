"""What a destination said, made fit for a log line and a status: without secrets, on one line, and short."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from dynolog.exporters.delivery.payload import Delivered, Verdict

_MOST_SHOWN = 200
# Our own words around theirs come on top.
_MOST_OF_VERDICT = 300
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\uffff]+")
# Shorter ones would blank out half of every message.
_LEAST_SECRET = 4
# White space beyond this many times what is shown ends it.
_SPACE_FACTOR = 4


class ForeignWords:
    """Knows what may never be shown: the values of `headers`, each part of them behind a scheme (`Bearer ...`), and `secrets`."""

    def __init__(self, headers: Mapping[str, str] = {}, secrets: Iterable[str] = ()) -> None:
        words = {*headers.values(), *secrets}
        words |= {value.partition(" ")[2].strip() for value in headers.values()}
        # The longest first: one may be a part of another.
        self._secrets = sorted((word for word in words if len(word) >= _LEAST_SECRET), key=len, reverse=True)

    def hidden(self, text: str) -> str:
        """The text with *** for each secret."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def shown(self, text: str, most: int = _MOST_SHOWN) -> str:
        """At most so many characters of it. A secret is hidden before the text is cut: half of one is a secret too."""
        return " ".join(_UNPRINTABLE.sub(" ", self.hidden(text)[: _SPACE_FACTOR * most]).split())[:most]

    def verdict(self, verdict: Verdict) -> Verdict:
        """The same verdict with words that can be shown."""
        if isinstance(verdict, Delivered):
            return msgspec.structs.replace(verdict, message=self.shown(verdict.message, _MOST_OF_VERDICT))
        return msgspec.structs.replace(verdict, reason=self.shown(verdict.reason, _MOST_OF_VERDICT))
