"""Times as text: RFC 3339 in UTC."""

import time

_SECOND_NS = 1_000_000_000


class Stamps:
    """Writes times; the text of a second is kept, because many lines share it."""

    def __init__(self) -> None:
        # One attribute, so that two threads never see the second of one time with the text of another.
        self._kept = (-1, "")

    def millis(self, wall_ns: int) -> str:
        """With milliseconds: `2022-07-21T23:42:34.141Z`."""
        second, rest_ns = divmod(wall_ns, _SECOND_NS)
        return f"{self._second(second)}.{rest_ns // 1_000_000:03d}Z"

    def nanos(self, wall_ns: int) -> str:
        """With nanoseconds, so nothing of the time is lost: `2022-07-21T23:42:34.141104000Z`."""
        second, rest_ns = divmod(wall_ns, _SECOND_NS)
        return f"{self._second(second)}.{rest_ns:09d}Z"

    def _second(self, second: int) -> str:
        kept, text = self._kept
        if kept != second:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._kept = (second, text)
        return text
