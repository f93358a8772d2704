"""What exporters are made from, without a daemon around them; and records to give them."""

from collections.abc import Sequence

from dynolog.exporters.registry import EXPORTERS
from dynolog.exporters.spec import ExporterContext
from dynolog.model.flag import Flag, FlagValue, Settings
from dynolog.model.metric import Catalogue, Metric
from dynolog.model.record import Record

WALL_NS = 1_658_446_954_141_104_000  # 2022-07-21T23:42:34.141104Z


class LogLinesKept:
    """Stands in for the daemon's log."""

    def __init__(self) -> None:
        self.logged: list[tuple[str, int, str]] = []
        self.lines: list[bytes] = []

    def write_log(self, file: str, line: int, text: str) -> None:
        self.logged.append((file, line, text))

    def write_line(self, line: bytes) -> None:
        self.lines.append(line)


def exporter_context(
    log: LogLinesKept | None = None,
    metrics: Sequence[Metric] = (),
    hostname: str = "gpu17",
    more_flags: Sequence[Flag] = (),
    **given: FlagValue,
) -> ExporterContext:
    """A context with all exporters' flags, of which some are `given`."""
    flags = (
        *(flag for spec in EXPORTERS for flag in spec.flags),
        *more_flags,
        Flag(name="log_file", default="", help=""),
    )
    log = log or LogLinesKept()
    return ExporterContext(
        settings=Settings({flag.name: flag for flag in flags}.values(), given),
        catalogue=Catalogue(metrics),
        hostname=hostname,
        write_log=log.write_log,
        write_line=log.write_line,
    )


def record(
    values: dict[str, int | float | str], wall_ns: int = WALL_NS, source: str = "kernel", **labels: str
) -> Record:
    """A record of one second."""
    return Record(wall_ns=wall_ns, source=source, values=values, labels=labels, intervals_ns={"cpu": 1_000_000_000})
