"""A record as one JSON object for machines: numbers are numbers."""

from collections.abc import Mapping

import msgspec

from dynolog.exporters.forms.stamps import Stamps
from dynolog.model.json_text import readable
from dynolog.model.record import Record

# What every line begins with. A label of the same name (labels may be named by the user) is written as `label.NAME`.
HEAD = ("time", "host", "source")
_encode = msgspec.json.Encoder().encode


def flat(record: Record, time: str, hostname: str) -> dict[str, int | float | str]:
    """Time, host and source, then the labels, then the values; numbers that are not finite are left out."""
    fields: dict[str, int | float | str] = {"time": time, "host": hostname, "source": record.source}
    for values in (record.labels, record.values):
        for key, value in values.items():
            # The difference is not 0 for infinities and NaN.
            if isinstance(value, float) and value - value != 0:
                continue
            fields[f"label.{key}" if key in HEAD else key] = value
    return fields


class JsonLines:
    """Makes the lines of one host: `{"time":"2022-07-21T23:42:34.141104000Z","host":"gpu17","source":"kernel","cpu_i":71.34,...}`."""

    def __init__(self, hostname: str) -> None:
        self._hostname = hostname
        self._stamps = Stamps()

    def line(self, record: Record) -> bytes:
        """One object, without a newline at its end and with none in it."""
        return encode_object(flat(record, self._stamps.nanos(record.wall_ns), self._hostname))


def encode_object(fields: Mapping[str, object]) -> bytes:
    """The object as UTF-8; bytes of a name that are no UTF-8 become `\\udcNN`."""
    try:
        return _encode(fields)
    except UnicodeEncodeError:
        return _encode(
            {readable(key): readable(value) if isinstance(value, str) else value for key, value in fields.items()}
        )
