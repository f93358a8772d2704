"""Records as StatsD lines, plain or in DogStatsD's dialect with tags. Pure.

A delta is a counter (`|c`), everything else a gauge (`|g`). Texts are no metrics: labels become tags in DogStatsD, and are left out in
plain StatsD but for the device.
"""

import re
import zlib
from collections.abc import Iterator

from dynolog.model.metric import Catalogue, Kind
from dynolog.model.record import Record

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
# A part of a path; a dot would make two parts of it.
_NOT_IN_PARTS = re.compile(r"[^A-Za-z0-9_-]")
# DogStatsD ends a tag at `,`, a line at `|`, and cannot quote either.
_NOT_IN_TAGS = re.compile(r"[^\w./:-]")
_MOST_KEYS = 20_000


class StatsdLines:
    """Makes the lines of one host.

    Characters that may not stand in a name become `_`; when that makes two names one, the later one gets a checksum of what it was.
    """

    def __init__(self, catalogue: Catalogue, hostname: str, prefix: str, *, tags: bool) -> None:
        self._catalogue = catalogue
        self._tags = tags
        self._host = hostname
        self._prefix = _NOT_IN_NAMES.sub("_", prefix).strip(".")
        # What a name was made from, so that two never become one.
        self._meanings: dict[str, str] = {}
        self._made: dict[tuple[str, str], tuple[str, str]] = {}

    def lines(self, record: Record) -> Iterator[bytes]:
        """A line for each number; two for a negative gauge in plain StatsD, where a sign alone means a change."""
        device = record.about
        more = self._label_tags(record) if self._tags else ""
        for key, value in record.values.items():
            # The difference is not 0 for infinities and NaN.
            if isinstance(value, str) or value - value != 0:
                continue
            name, suffix = self._made.get((key, device)) or self._make(key, device)
            if not self._tags and value < 0:
                if suffix == "|c":
                    continue  # a counter does not count down
                yield f"{name}:0{suffix}".encode()
            yield f"{name}:{_number(value)}{suffix}{more}".encode()

    def _make(self, key: str, device: str) -> tuple[str, str]:
        """The name, and what stands behind the number."""
        if len(self._made) >= _MOST_KEYS:  # devices that come and go must not fill memory
            self._made.clear()
            self._meanings.clear()
        series = self._catalogue.resolve(key)
        kind = "|c" if series is not None and series.metric.kind is Kind.DELTA else "|g"
        name, instance, scope = (
            (key, "", "") if series is None else (series.metric.name, series.instance, series.metric.scope)
        )
        if self._tags:
            text = self._unique(_NOT_IN_NAMES.sub("_", _joined(self._prefix, name)), f"{name}")
            suffix = f"{kind}|#{_tag('host', self._host)}"
            if instance:
                suffix += "," + self._unique(_tag(scope, instance), f"{scope}:{instance}")
        else:
            parts = [self._prefix, _part(self._host)]
            if device:
                parts.append("gpu" + _part(device))
            parts.append(_NOT_IN_NAMES.sub("_", name))
            if instance:
                parts.append(_part(f"{scope}{instance}" if instance.isdecimal() else instance))
            text, suffix = self._unique(_joined(*parts), f"{device}\0{key}"), kind
        made = self._made[key, device] = (text, suffix)
        return made

    def _unique(self, text: str, meaning: str) -> str:
        if self._meanings.setdefault(text, meaning) != meaning:
            checksum = zlib.crc32(meaning.encode("utf-8", "surrogatepass"))
            text = f"{text}_{checksum:08x}"
            self._meanings.setdefault(text, meaning)
        return text

    def _label_tags(self, record: Record) -> str:
        return "".join("," + _tag(name, value) for name, value in record.labels.items() if value)


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _part(text: str) -> str:
    return _NOT_IN_PARTS.sub("_", text).strip("_") or "_"


def _tag(name: str, value: str) -> str:
    return f"{_NOT_IN_TAGS.sub('_', name).replace(':', '_')}:{_NOT_IN_TAGS.sub('_', value)}"


def _number(value: float) -> str:
    """Without an exponent, which not every reader knows."""
    text = repr(value)
    if "e" in text:
        text = f"{value:.12f}".rstrip("0").rstrip(".")
    return text
