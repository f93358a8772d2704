"""The registration of an exporter."""

from collections.abc import Callable, Mapping

import msgspec

from dynolog.model.flag import Flag, Settings
from dynolog.model.metric import Catalogue, Scope
from dynolog.pipeline.delivery import Exporter


def _nowhere(_line: bytes) -> None:
    """For an exporter that is made without a daemon around it."""


class ExporterContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an exporter is made from. `write_log(file, line, text)` puts an info line into the daemon's own log; the
    log adds the glog prefix. `write_line` puts a whole line into it, without a prefix. `owners` says which collector gives a
    metric, by its name and scope: `Record.intervals_ns` is by collector."""

    settings: Settings
    catalogue: Catalogue
    hostname: str
    write_log: Callable[[str, int, str], None]
    write_line: Callable[[bytes], None] = _nowhere
    owners: Mapping[tuple[str, Scope], str] = {}


class ExporterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One destination: its flags (the first is the bool that turns it on) and its factory.

    `check` raises what the factory would, without opening anything; None where the factory opens nothing but the spool.
    """

    name: str
    summary: str
    flags: tuple[Flag, ...]
    factory: Callable[[ExporterContext], Exporter]
    check: Callable[[ExporterContext], None] | None = None
