"""What `dyno status --verbose` prints of a daemon."""

import time
from collections.abc import Iterable, Sequence

from dynolog.cli.gpus.table import no_gpus, source_lines
from dynolog.cli.printable import printable
from dynolog.cli.quantities import age, count, duration, size
from dynolog.cli.table import table, terminal_columns
from dynolog.cli.trainers_table import no_trainers, trainers_table
from dynolog.model.status import (
    CollectorState,
    CollectorStatus,
    DaemonStatus,
    ExporterStatus,
    IpcStatus,
    RecentTrouble,
    SelfStatus,
)
from dynolog.model.trainer import TrainerInfo

_A_MINUTE_S = 60


def report(daemon: DaemonStatus, trainers: Sequence[TrainerInfo]) -> str:
    """All of it, as paragraphs."""
    paragraphs = (
        _daemon(daemon),
        _collectors(daemon.collectors),
        _gpu(daemon),
        _exporters(daemon.exporters, daemon.wall_ns),
        _ipc(daemon.ipc),
        _trainers(daemon, trainers),
        _missing(daemon),
        _recent(daemon.recent, daemon.wall_ns),
    )
    return "\n\n".join(filter(None, paragraphs))


def _daemon(daemon: DaemonStatus) -> str:
    own = daemon.own
    rpc = ", ".join(daemon.rpc_addresses) or "none"
    lines = (
        f"dynolog {daemon.version} on {daemon.hostname}, pid {own.pid}, up {duration(own.uptime_s)}",
        f"  cost      {_cpu(own)}",
        f"            {size(own.rss_bytes)} resident, {count(own.threads, 'thread')}, {count(own.open_files, 'open file')}",
        f"  rpc       {rpc}",
        f"  captures  {daemon.active_captures} going on",
    )
    return "\n".join(map(printable, lines))


def _cpu(own: SelfStatus) -> str:
    """A daemon younger than a minute has only one figure, and what starting cost weighs in it."""
    if own.uptime_s < _A_MINUTE_S:
        return f"{own.cpu_pct:.2f} % of a core since start, the start itself included"
    return f"{own.cpu_pct_1m:.2f} % of a core in the last minute ({own.cpu_pct:.2f} % since start)"


def _collectors(collectors: Iterable[CollectorStatus]) -> str:
    rows = [
        (
            f"  {collector.name}",
            collector.state,
            _interval(collector),
            f"{collector.last_ms:.2f}",
            f"{collector.max_ms:.2f}",
            _troubles(collector),
        )
        for collector in collectors
    ]
    if not rows:
        return "No collector is on."
    header = ("  COLLECTOR", "STATE", "EVERY", "LAST ms", "MAX ms", "REMARKS")
    return table(header, rows, right=(2, 3, 4), columns=None)


def _interval(collector: CollectorStatus) -> str:
    configured = collector.configured_interval_s
    stretched = f" (set: {configured:g} s)" if configured and configured != collector.interval_s else ""
    return f"{collector.interval_s:g} s{stretched}"


def _troubles(collector: CollectorStatus) -> str:
    remarks = [collector.error, *collector.notices]
    if collector.failures and collector.state is not CollectorState.UNAVAILABLE:
        remarks.append(count(collector.failures, "failure"))
    if collector.stalls:
        remarks.append(count(collector.stalls, "stall"))
    return "; ".join(filter(None, remarks))


def _gpu(daemon: DaemonStatus) -> str:
    if daemon.gpu is None:
        return ""
    lines = source_lines(daemon.gpu, daemon.wall_ns) or [no_gpus(daemon.gpu)]
    return "\n".join(map(printable, lines))


def _exporters(exporters: Iterable[ExporterStatus], now_wall_ns: int) -> str:
    rows = [
        (
            f"  {exporter.name}",
            exporter.destination,
            f"{exporter.sent:,}",
            f"{exporter.dropped:,}",
            f"{exporter.queued:,}",
            age(exporter.last_success_wall_ns, now_wall_ns),
            exporter.error,
        )
        for exporter in exporters
    ]
    if not rows:
        return (
            "No exporter is on: nothing that is measured leaves this daemon but by `dyno metrics`. --use_JSON logs it."
        )
    return table(("  EXPORTER", "TO", "SENT", "DROPPED", "QUEUED", "LAST SUCCESS", "ERROR"), rows, right=(2, 3, 4))


def _ipc(ipc: IpcStatus) -> str:
    if not ipc.enabled:
        return "The IPC is off: no trainer can be traced. Start the daemon with --enable_ipc_monitor."
    addresses = ", ".join(ipc.addresses) or "no address"
    lines = [
        f"The IPC listens on {addresses}",
        f"  {count(ipc.requests, 'request')}, {ipc.replies:,} answered, {ipc.malformed:,} malformed",
        *(
            [f"  {count(ipc.dropped_replies, 'answer')} dropped: the trainer had gone or took none"]
            if ipc.dropped_replies
            else []
        ),
        *(f"  {notice}" for notice in ipc.notices),
    ]
    return "\n".join(map(printable, lines))


def _trainers(daemon: DaemonStatus, trainers: Sequence[TrainerInfo]) -> str:
    if not trainers:
        # That the IPC is off was said just before.
        return no_trainers(ipc_enabled=True) if daemon.ipc.enabled else ""
    return trainers_table(trainers, terminal_columns())


def _missing(daemon: DaemonStatus) -> str:
    if not daemon.missing:
        return ""
    return "\n".join(map(printable, ("Missing here, and how to get it:", *(f"  {what}" for what in daemon.missing))))


def _recent(troubles: Sequence[RecentTrouble], now_wall_ns: int) -> str:
    if not troubles:
        return ""
    lines = []
    for trouble in troubles:
        at = time.strftime("%H:%M:%S", time.gmtime(trouble.wall_ns // 1_000_000_000))
        often = f", {trouble.times:,} times" if trouble.times > 1 else ""
        lines.append(f"  {at} UTC ({age(trouble.wall_ns, now_wall_ns)}{often})  {trouble.text}")
    return "\n".join(map(printable, ("Went wrong in the last hour:", *lines)))
