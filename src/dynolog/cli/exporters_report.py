"""What `dyno exporters` prints."""

from collections.abc import Sequence

from dynolog.cli.printable import printable
from dynolog.cli.quantities import age, count, duration, size
from dynolog.cli.table import table
from dynolog.model.status import LOSS_REASONS, ExporterStatus

NONE = "No exporter is on: nothing that is measured leaves this daemon but by `dyno metrics`. --use_JSON logs it."
EXPORTERS_HEADER = ("EXPORTER", "TO", "STATE", "LAST SUCCESS", "QUEUED", "SPOOL", "SENT", "DROPPED")


def exporters_report(exporters: Sequence[ExporterStatus], now_wall_ns: int, columns: int | None) -> str:
    """A line for each exporter, then what is wrong with those that lost or hold back something."""
    rows = [exporter_row(exporter, now_wall_ns) for exporter in exporters]
    remarks = [f"{exporter.name}: {remark}" for exporter in exporters for remark in exporter_remarks(exporter)]
    listed = table(EXPORTERS_HEADER, rows, right=(4, 5, 6, 7), columns=columns)
    return "\n\n".join(filter(None, (listed, "\n".join(map(printable, remarks)))))


def exporter_row(exporter: ExporterStatus, now_wall_ns: int) -> tuple[str, ...]:
    """The cells below EXPORTERS_HEADER."""
    return (
        exporter.name,
        exporter.destination,
        exporter.state,
        age(exporter.last_success_wall_ns, now_wall_ns),
        _queued(exporter),
        size(exporter.spool_bytes) if exporter.spool else "-",
        f"{exporter.sent:,}",
        f"{exporter.dropped:,}",
    )


def _queued(exporter: ExporterStatus) -> str:
    return f"{exporter.queued:,}" + (f" ({size(exporter.queued_bytes)})" if exporter.queued_bytes else "")


def exporter_remarks(exporter: ExporterStatus) -> list[str]:
    """What is wrong with one, in sentences."""
    remarks = []
    if exporter.error:
        again = f" (tried again in {duration(exporter.next_try_s)})" if exporter.next_try_s else ""
        remarks.append(exporter.error + again)
    if exporter.spool.startswith("off"):
        remarks.append(f"spool {exporter.spool}")
    remarks += [
        f"{count(records, 'record')} lost because {LOSS_REASONS.get(reason, reason)}"
        for reason, records in sorted(exporter.dropped_by.items())
    ]
    return remarks
