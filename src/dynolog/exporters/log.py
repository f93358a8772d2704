"""Records as lines of the daemon's own log, in the form that scripts made for the public Dynolog read (`--use_JSON`)."""

import time
from collections.abc import Sequence

import msgspec

from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.model.record import Record

USE_JSON = Flag(
    name="use_JSON",
    default=False,
    help="write records to the log; on by itself when no other exporter is on (--nouse_JSON: off even then)",
    section="exporters",
)
# Where the two lines stand in the public Dynolog's Logger.cpp: part of what scripts match.
_FILE, _COUNT_LINE, _DATA_LINE = "log.py", 37, 38
_MOST_KEYS = 20_000
_SECOND_NS = 1_000_000_000


class LogExporter:
    """Two lines a record: `Logging : N values`, then `time = ... data = {...}` with sorted keys.

    Floats are strings with three decimals, whole numbers are numbers, and the labels of the record are among the values (`device` as a
    number). A value that is not finite is left out.
    """

    def __init__(self, context: ExporterContext) -> None:
        self.destination = context.settings.text("log_file") or "stderr"
        self._write_log = context.write_log
        # Device names are from outside and must be escaped; the keys of one record are those of the next.
        self._quoted_keys: dict[str, str] = {}
        self._second = -1
        self._second_text = ""

    def export(self, records: Sequence[Record]) -> None:
        """Write the records; the log itself counts what a full disk loses."""
        for record in records:
            count, data = self.data(record)
            self._write_log(_FILE, _COUNT_LINE, f"Logging : {count} values")
            self._write_log(_FILE, _DATA_LINE, f"time = {self.stamp(record.wall_ns)} data = {data}")

    def close(self) -> None:
        """Nothing is held."""

    def stamp(self, wall_ns: int) -> str:
        """RFC 3339 in UTC with milliseconds: `2022-07-21T23:42:34.141Z`."""
        second, rest_ns = divmod(wall_ns, _SECOND_NS)
        if second != self._second:
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._second_text}.{rest_ns // 1_000_000:03d}Z"

    def data(self, record: Record) -> tuple[int, str]:
        """How many values the record has, and their JSON object."""
        values = {**record.values, **record.labels} if record.labels else record.values
        keys = self._quoted_keys
        parts: list[str] = []
        for key in sorted(values):
            value = values[key]
            quoted = keys.get(key) or self._quote_key(key)
            if isinstance(value, float):
                # The difference is not 0 for infinities and NaN.
                if value - value == 0:
                    parts.append(f'{quoted}"{value:.3f}"')
            elif isinstance(value, str):
                parts.append(quoted + (value if key == "device" and value.isdecimal() else _quote(value)))
            else:
                parts.append(f"{quoted}{value}")
        return len(parts), "{" + ",".join(parts) + "}"

    def _quote_key(self, key: str) -> str:
        if len(self._quoted_keys) >= _MOST_KEYS:
            self._quoted_keys.clear()
        quoted = self._quoted_keys[key] = _quote(key) + ":"
        return quoted


def _quote(text: str) -> str:
    """A JSON string; bytes of a name that are no UTF-8 become U+FFFD."""
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).decode()


SPEC = ExporterSpec(name="log", summary="records as JSON in the daemon's log", flags=(USE_JSON,), factory=LogExporter)
