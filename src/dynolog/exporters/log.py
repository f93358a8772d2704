"""Records as lines of the daemon's own log (`--use_JSON`): in the public Dynolog's form, or as JSON or logfmt for machines."""

from collections.abc import Sequence

from dynolog.exporters.forms.json_line import JsonLines
from dynolog.exporters.forms.logfmt import LogfmtLines
from dynolog.exporters.forms.sample_json import SampleJson
from dynolog.exporters.forms.stamps import Stamps
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.model.record import Record
from dynolog.pipeline.delivery import Exporter

USE_JSON = Flag(
    name="use_JSON",
    default=False,
    help="write records to the log; on by itself when no other exporter is on (--nouse_JSON: off even then)",
    section="exporters",
)
LOG_FORMAT = Flag(
    name="log_format",
    default="glog",
    choices=("glog", "json", "logfmt"),
    help="form of every line of the log, records and messages alike: glog as the original writes it, or one JSON object or "
    "one list of key=value pairs a line",
    section="exporters",
)
# Where the two lines stand in the public Dynolog's Logger.cpp: part of what scripts match.
_FILE, _COUNT_LINE, _DATA_LINE = "log.py", 37, 38


class LogExporter:
    """Two lines a record: `Logging : N values`, then `time = ... data = {...}` as SampleJson makes it."""

    def __init__(self, context: ExporterContext) -> None:
        self.destination = context.settings.text("log_file") or "stderr"
        self._write_log = context.write_log
        self._samples = SampleJson()
        self._stamps = Stamps()

    def export(self, records: Sequence[Record]) -> None:
        """Write the records; the log itself counts what a full disk loses."""
        for record in records:
            count, data = self._samples.data(record)
            self._write_log(_FILE, _COUNT_LINE, f"Logging : {count} values")
            self._write_log(_FILE, _DATA_LINE, f"time = {self._stamps.millis(record.wall_ns)} data = {data}")

    def close(self) -> None:
        """Nothing is held."""


class LineLogExporter:
    """One line a record, made by `lines`; the line is the whole line of the log, without a prefix."""

    def __init__(self, context: ExporterContext, lines: JsonLines | LogfmtLines) -> None:
        self.destination = context.settings.text("log_file") or "stderr"
        self._write_line = context.write_line
        self._lines = lines

    def export(self, records: Sequence[Record]) -> None:
        """Write the records; the log itself counts what a full disk loses."""
        for record in records:
            self._write_line(self._lines.line(record))

    def close(self) -> None:
        """Nothing is held."""


def make(context: ExporterContext) -> Exporter:
    """The exporter of the form that --log_format names."""
    match context.settings.text(LOG_FORMAT.name):
        case "json":
            return LineLogExporter(context, JsonLines(context.hostname))
        case "logfmt":
            return LineLogExporter(context, LogfmtLines(context.hostname))
        case _:
            return LogExporter(context)


SPEC = ExporterSpec(name="log", summary="records in the daemon's log", flags=(USE_JSON, LOG_FORMAT), factory=make)
