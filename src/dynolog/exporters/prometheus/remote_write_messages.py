"""Records as remote-write requests (version 0.1.0 of the protocol): one protobuf message of series, each with one sample.

`WriteRequest { repeated TimeSeries timeseries = 1; }`, `TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }`,
`Label { string name = 1; string value = 2; }`, `Sample { double value = 1; int64 timestamp = 2; }` (ms since the epoch).
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from dynolog.exporters.delivery.payload import Encoder, Payload
from dynolog.exporters.prometheus.names import Families, NameTaken
from dynolog.exporters.prometheus.sample import Sample
from dynolog.model.metric import Catalogue, Scope
from dynolog.model.record import Record

HEADERS = {"Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0"}
_CONTENT_TYPE = "application/x-protobuf"
_JOB = "dynolog"
# Series that one daemon may have; past it all begin anew, as after a restart.
_MOST_SERIES = 50_000
# Field numbers with their wire types: 2 is a length and bytes, 1 eight bytes, 0 a varint.
_FIRST_BYTES, _SECOND_BYTES, _FIRST_DOUBLE, _SECOND_VARINT = b"\x0a", b"\x12", b"\x09", b"\x10"
_double = struct.Struct("<d").pack
_DOUBLE_BYTES = 8
# The NaN that says that a series has ended; without it its last value is shown for five minutes more.
_ENDED = struct.pack("<Q", 0x7FF0000000000002)


def varint(number: int) -> bytes:
    """A whole number that is not negative, seven bits a byte, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _sized(tag: bytes, data: bytes) -> bytes:
    return tag + varint(len(data)) + data


class _Series:
    """One sample's running value, and the bytes of its labels as long as they stay the same."""

    def __init__(self, sample: Sample, common: dict[str, str], collector: str) -> None:
        self.sample = sample
        self.collector = collector
        self._common = common
        self._head = ""
        self._end_length = 0
        self._start = b""

    def message(self, end: bytes) -> bytes:
        """A TimeSeries with its tag and length; `end` is the timestamp's part of its sample. Before it the end of the series that this
        one was while its labels were others (another job runs on the GPU).
        """
        sample = self.sample
        head = sample.head
        ended = b""
        if head is not self._head or len(end) != self._end_length:
            if self._head not in ("", head) and len(end) == self._end_length:
                ended = self._start + _ENDED + end
            self._head, self._end_length = head, len(end)
            self._start = self._made_start()
        return ended + self._start + _double(sample.scaled) + end

    def last_message(self, end: bytes) -> bytes:
        """The end of the series."""
        return self._start + _ENDED + end if len(end) == self._end_length else b""

    def _made_start(self) -> bytes:
        """All that stands before the value, which has a fixed length."""
        sample = self.sample
        # Receivers want labels sorted by name, and none that is empty.
        pairs = sorted({**self._common, **sample.labels, "__name__": sample.family.sample}.items())
        labels = b"".join(
            _sized(_FIRST_BYTES, _sized(_FIRST_BYTES, name.encode()) + _sized(_SECOND_BYTES, text.encode()))
            for name, text in pairs
            if text
        )
        length = len(_FIRST_DOUBLE) + _DOUBLE_BYTES + self._end_length
        start = labels + _SECOND_BYTES + varint(length) + _FIRST_DOUBLE
        return _FIRST_BYTES + varint(len(start) + _DOUBLE_BYTES + self._end_length) + start


class RemoteWriteEncoder:
    """A payload for each record. Deltas are summed up to counters that begin with the daemon; gauges are sent as they are.

    A series that its collector (`owners`: by name and scope) does not give any more ends. `instance` is the host and `job` is dynolog,
    as a scrape of this host would have them.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        hostname: str,
        compress: Callable[[bytes], bytes],
        owners: Mapping[tuple[str, Scope], str] = {},
    ) -> None:
        self._catalogue = catalogue
        self._owners = owners
        self._names = Families(catalogue, "standard")
        self._common = {"instance": hostname, "job": _JOB}
        self._compress = compress
        self._series: dict[tuple[str, str, str], _Series | None] = {}
        self._labels: dict[tuple[str, str], dict[str, str]] = {}
        # Series by source and device that have not ended.
        self._going_on: dict[tuple[str, str], dict[str, _Series]] = {}

    def take_over(self, before: Encoder) -> None:
        """Go on with its series."""
        if isinstance(before, RemoteWriteEncoder):
            self._series, self._labels, self._going_on = before._series, before._labels, before._going_on  # noqa: SLF001 - of its own kind

    def encode(self, records: Sequence[Record]) -> list[Payload]:
        """None for a record without numbers."""
        return [
            Payload(body=self._compress(message), records=1, content_type=_CONTENT_TYPE)
            for record in records
            if (message := self.message(record))
        ]

    def message(self, record: Record) -> bytes:
        """A WriteRequest, not compressed."""
        device = record.about
        relabelled = self._take_labels(record, device)
        end = _SECOND_VARINT + varint(max(record.wall_ns // 1_000_000, 0))
        parts = []
        going_on = self._going_on.setdefault((record.source, device), {})
        for key, value in record.values.items():
            series = self._of(record.source, device, key)
            if series is None:
                continue
            if relabelled is not None:
                series.sample.relabel(relabelled)
            if series.sample.take(value):
                parts.append(series.message(end))
                going_on[key] = series
        # Only a record that its collector has a part in can say that a series has no value any more.
        gone = [
            key
            for key, series in going_on.items()
            if key not in record.values and series.collector in record.intervals_ns
        ]
        return b"".join((*parts, *(going_on.pop(key).last_message(end) for key in gone)))

    def _take_labels(self, record: Record, device: str) -> dict[str, str] | None:
        """The record's labels when they are not those of the record before it."""
        if not record.labels or self._labels.get((record.source, device)) == record.labels:
            return None
        labels = self._labels[record.source, device] = dict(record.labels)
        return labels

    def _of(self, source: str, device: str, key: str) -> _Series | None:
        """The series of a key; None for one that is left out because its name is another's."""
        identity = (source, device, key)
        if identity not in self._series:
            if len(self._series) >= _MOST_SERIES:
                self._series.clear()
                self._labels.clear()
                self._going_on.clear()
            self._series[identity] = self._made(source, device, key)
        return self._series[identity]

    def _made(self, source: str, device: str, key: str) -> _Series | None:
        series = self._catalogue.resolve(key)
        try:
            family = self._names.undeclared(key) if series is None else self._names.of(series.metric)
        except NameTaken:
            return None
        if family is None:
            return None
        labels = self._labels.get((source, device), {})
        collector = self._owners.get((series.metric.name, series.metric.scope), "") if series else ""
        return _Series(Sample(family, key, series.instance if series else "", labels), self._common, collector)
