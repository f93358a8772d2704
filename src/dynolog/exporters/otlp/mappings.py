"""The CSV file of `--otel_metric_mappings_file`: what values are called in OpenTelemetry log records."""

import logging
import math
from collections.abc import Iterable, Mapping

import msgspec

_log = logging.getLogger(__name__)


class Renamed(msgspec.Struct, frozen=True):
    """`name,output` or `name,output,scale`: the attribute, and what numbers are multiplied with."""

    output: str
    scale: float = 1.0

    def value(self, value: str | float) -> str | int | float:
        """Texts as they are; whole numbers stay whole under a whole scale."""
        if isinstance(value, str) or self.scale == 1:
            return value
        scaled = value * self.scale
        return int(scaled) if isinstance(value, int) and self.scale.is_integer() else scaled


class Collected(msgspec.Struct, frozen=True):
    """`name,column[subkey]`: a text in the key-value list `column`, under `subkey`."""

    column: str
    subkey: str


Naming = Renamed | Collected


def parse_mappings(lines: Iterable[str]) -> tuple[dict[str, Naming], list[str]]:
    """What each name becomes, and why lines were left out. Empty lines and lines that begin with # are nothing."""
    mappings: dict[str, Naming] = {}
    bad: list[str] = []
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(",")]
        try:
            mappings[fields[0]] = _mapping(fields)
        except ValueError as error:
            bad.append(f"line {number} is left out: {error}")
    return mappings, bad


def read_mappings(path: str) -> Mapping[str, Naming]:
    """The mappings of a file; {} for "" and, with a warning, for a file that cannot be read."""
    if not path:
        return {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            mappings, bad = parse_mappings(file)
    except OSError as error:
        _log.warning("--otel_metric_mappings_file=%s cannot be read (%s): names stay as they are", path, error.strerror)
        return {}
    for reason in bad:
        _log.warning("--otel_metric_mappings_file=%s: %s", path, reason)
    return mappings


def _mapping(fields: list[str]) -> Naming:
    if len(fields) not in (2, 3) or not fields[0] or not fields[1]:
        raise ValueError("it is not NAME,OUTPUT or NAME,OUTPUT,SCALE or NAME,COLUMN[SUBKEY]")
    output = fields[1]
    scale = fields[2] if len(fields) == 3 else ""
    if scale:
        number = float(scale)
        if not math.isfinite(number):
            raise ValueError(f"the scale {scale} is not a number")
        return Renamed(output, number)
    if "[" in output or "]" in output:
        column, bracket, subkey = output.partition("[")
        if not (bracket and column and subkey.endswith("]") and len(subkey) > 1):
            raise ValueError(f"{output} is not COLUMN[SUBKEY]")
        return Collected(column, subkey[:-1])
    return Renamed(output)
