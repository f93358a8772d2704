"""A record's values as the JSON object of the public Dynolog: sorted keys, floats as texts with three decimals."""

from collections.abc import Collection, Mapping

import msgspec

from dynolog.model.record import Record

_MOST_KEYS = 20_000
_NOTHING: Mapping[str, int | float | str] = {}


def quote(text: str) -> str:
    """A JSON string; bytes of a name that are no UTF-8 become U+FFFD."""
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).decode()


class SampleJson:
    """Makes the objects; keeps the quoted keys, because those of one record are those of the next."""

    def __init__(self) -> None:
        # Device names are from outside and must be escaped.
        self._quoted_keys: dict[str, str] = {}

    def data(
        self, record: Record, more: Mapping[str, int | float | str] = _NOTHING, without: Collection[str] = ()
    ) -> tuple[int, str]:
        """How many values the object has, and its text.

        The labels of the record are among the values (`device` as a number); so is `more`, and the keys in `without` are not. A
        value that is not finite is left out.
        """
        values = {**record.values, **record.labels, **more} if record.labels or more else record.values
        keys = self._quoted_keys
        parts: list[str] = []
        for key in sorted(values):
            if key in without:
                continue
            quoted = keys.get(key) or self._quote_key(key)
            if text := self.value(key, values[key]):
                parts.append(quoted + text)
        return len(parts), "{" + ",".join(parts) + "}"

    @staticmethod
    def value(key: str, value: object) -> str:
        """One value as JSON; "" for one that is not finite."""
        if isinstance(value, float):
            # The difference is not 0 for infinities and NaN.
            return f'"{value:.3f}"' if value - value == 0 else ""
        if isinstance(value, str):
            return value if key == "device" and value.isdecimal() and value.isascii() else quote(value)
        return str(value)

    def _quote_key(self, key: str) -> str:
        if len(self._quoted_keys) >= _MOST_KEYS:
            self._quoted_keys.clear()
        quoted = self._quoted_keys[key] = quote(key) + ":"
        return quoted
