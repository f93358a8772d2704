"""Latest values, and the catalogue, as tables."""

from collections.abc import Iterable, Mapping

import msgspec

from dynolog.cli.metric_filter import matches
from dynolog.cli.quantities import duration, value
from dynolog.cli.table import table
from dynolog.model.metric import Metric
from dynolog.model.record import Record
from dynolog.rpc.messages import MetricsReply

# How a person writes what UCUM spells for machines; curly braces hold what is counted.
_UNITS = {"By": "B", "By/s": "B/s", "1": "", "Cel": "°C", "Ohm": "Ω", "us": "µs"}


def unit(ucum: str) -> str:
    """`By` → B, `{packet}` → packet, `1` → nothing; the rest as it is."""
    if ucum.startswith("{") and ucum.endswith("}"):
        return ucum[1:-1]
    return _UNITS.get(ucum, ucum)


def chosen(reply: MetricsReply, pattern: str) -> MetricsReply:
    """The reply with only the keys that match."""
    if not pattern:
        return reply
    records = [
        msgspec.structs.replace(record, values=values)
        for record in reply.records
        if (values := {key: number for key, number in record.values.items() if matches(key, pattern)})
    ]
    units = {key: text for key, text in reply.units.items() if matches(key, pattern)}
    return MetricsReply(records=tuple(records), units=units, wall_ns=reply.wall_ns)


VALUES_HEADER = ("METRIC", "VALUE", "UNIT", "SOURCE", "AGE", "LABELS")
# On a narrow terminal: texts among the values first (a boot id; the largest numbers have 18 characters), then names with a path in them.
_YIELDING = {1: 18, 0: 24}


def value_rows(reply: MetricsReply) -> list[tuple[str, ...]]:
    """The cells below VALUES_HEADER: a row a value, sorted by key within its record. Ages are by the daemon's clock."""
    return [
        row
        for record in sorted(reply.records, key=_order)
        for row in _rows(record, reply.units, duration((reply.wall_ns - record.wall_ns) / 1e9))
    ]


def values_table(reply: MetricsReply, columns: int | None) -> str:
    """One line a value."""
    rows = value_rows(reply)
    header: tuple[str, ...] = VALUES_HEADER
    if not any(row[5] for row in rows):
        header, rows = header[:5], [row[:5] for row in rows]
    return table(header, rows, right=(1, 4), columns=columns, yielding=_YIELDING)


def _order(record: Record) -> tuple[str, list[tuple[str, str]]]:
    return record.source, sorted(record.labels.items())


def _rows(record: Record, units: Mapping[str, str], age: str) -> Iterable[tuple[str, ...]]:
    labels = " ".join(f"{name}={text}" for name, text in sorted(record.labels.items()))
    for key, number in sorted(record.values.items()):
        yield key, value(number), unit(units.get(key, "")), record.source, age, labels


def catalogue_table(metrics: Iterable[Metric], pattern: str, columns: int | None) -> str:
    """One line a metric of the catalogue, its description on lines of its own where the terminal is too narrow; "" when none matches."""
    rows = [
        (metric.name, metric.kind, metric.unit, metric.scope, metric.description)
        for metric in sorted(metrics, key=lambda metric: (metric.name, metric.scope))
        if matches(metric.name, pattern)
    ]
    header = ("METRIC", "KIND", "UNIT", "SCOPE", "DESCRIPTION")
    whole = table(header, rows)
    if columns is None or all(len(line) <= columns for line in whole.split("\n")):
        return whole
    import textwrap  # noqa: PLC0415 - only for a narrow terminal

    head, *facts = table(header[:4], [row[:4] for row in rows], columns=columns, yielding={2: 8, 0: 24}).split("\n")
    indent = " " * 4
    lines = [head]
    for fact, row in zip(facts, rows, strict=True):
        lines += [fact, *textwrap.wrap(row[4], max(columns, 20), initial_indent=indent, subsequent_indent=indent)]
    return "\n".join(lines)
