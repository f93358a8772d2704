"""The daemon measures itself: what it costs, how its collectors fare, what its exporters lose."""

import time
from collections.abc import Mapping

import msgspec

from dynolog.collectors.spec import CollectorSpec, Context, Values, counter_delta, put
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.model.status import LOSS_REASONS, CollectorState, CollectorStatus, ExporterState, ExporterStatus, IpcStatus
from dynolog.sources.own_process import OwnProcess, OwnProcessReader

METRICS = (
    Metric(
        name="dynolog_cpu_pct",
        kind=Kind.RATIO,
        unit="%",
        description="CPU time of the daemon and of its children that have ended, as a share of one core",
    ),
    Metric(name="dynolog_rss_bytes", kind=Kind.GAUGE, unit="By", description="Resident memory of the daemon"),
    Metric(name="dynolog_threads", kind=Kind.GAUGE, unit="{thread}", description="Threads of the daemon"),
    Metric(name="dynolog_open_fds", kind=Kind.GAUGE, unit="{file}", description="Open descriptors of the daemon"),
    Metric(
        name="dynolog_wakeups",
        kind=Kind.DELTA,
        unit="{wakeup}",
        description="How often a thread of the daemon gave up its CPU to wait (voluntary context switches)",
    ),
    Metric(name="dynolog_records", kind=Kind.DELTA, unit="{record}", description="Records made"),
    Metric(
        name="dynolog_collector_failures",
        kind=Kind.DELTA,
        unit="{failure}",
        description="Rounds of any collector that failed or found its source unavailable",
    ),
    Metric(
        name="dynolog_collector_stalls",
        kind=Kind.DELTA,
        unit="{stall}",
        description="Reads of any collector that had not returned by the deadline (--collector_deadline_s)",
    ),
    Metric(
        name="dynolog_collector_up",
        scope=Scope.COLLECTOR,
        kind=Kind.GAUGE,
        unit="1",
        description="1 while a collector gives values, 0 while it is unavailable, failing or stalled",
    ),
    Metric(
        name="dynolog_collector_ms",
        scope=Scope.COLLECTOR,
        kind=Kind.GAUGE,
        unit="ms",
        description="Duration of a collector's last round; missing while it is stalled",
    ),
    Metric(
        name="dynolog_collector_max_ms",
        scope=Scope.COLLECTOR,
        kind=Kind.GAUGE,
        unit="ms",
        description="Duration of a collector's longest round since the start",
    ),
    Metric(name="dynolog_trainers", kind=Kind.GAUGE, unit="{process}", description="Processes registered over the IPC"),
    Metric(
        name="dynolog_ipc_requests",
        kind=Kind.DELTA,
        unit="{request}",
        description="Polls of trainers that were understood",
    ),
    Metric(
        name="dynolog_ipc_dropped_replies",
        kind=Kind.DELTA,
        unit="{reply}",
        description="Answers to trainers that were not sent: the trainer had gone, or took none",
    ),
    Metric(
        name="dynolog_ipc_malformed",
        kind=Kind.DELTA,
        unit="{message}",
        description="Messages on the IPC that do not follow its protocol",
    ),
    Metric(
        name="dynolog_log_lines_lost",
        kind=Kind.DELTA,
        unit="{line}",
        description="Lines of the daemon's log that could not be written (a full disk, a blocked pipe)",
    ),
    Metric(
        name="dynolog_exporter_sent",
        scope=Scope.EXPORTER,
        kind=Kind.DELTA,
        unit="{record}",
        description="Records that an exporter delivered",
    ),
    Metric(
        name="dynolog_exporter_dropped",
        scope=Scope.EXPORTER,
        kind=Kind.DELTA,
        unit="{record}",
        description="Records that an exporter lost: its queue was full, or its destination refused them",
    ),
    Metric(
        name="dynolog_exporter_queue",
        scope=Scope.EXPORTER,
        kind=Kind.GAUGE,
        unit="{record}",
        description="Records that wait for an exporter",
    ),
    Metric(
        name="dynolog_exporter_queue_bytes",
        scope=Scope.EXPORTER,
        kind=Kind.GAUGE,
        unit="By",
        description="Memory that the records which wait for an exporter take",
    ),
    Metric(
        name="dynolog_exporter_spool_bytes",
        scope=Scope.EXPORTER,
        kind=Kind.GAUGE,
        unit="By",
        description="What a network exporter keeps in --spool_dir; missing without one",
    ),
    Metric(
        name="dynolog_exporter_up",
        scope=Scope.EXPORTER,
        kind=Kind.GAUGE,
        unit="1",
        description="1 while an exporter delivers, 0 while its destination is away or refuses; missing before its first attempt",
    ),
    Metric(
        name="dynolog_exporter_retries",
        scope=Scope.EXPORTER,
        kind=Kind.DELTA,
        unit="{attempt}",
        description="Attempts of a network exporter that have to be made again",
    ),
    Metric(
        name="dynolog_exporter_last_success_age",
        scope=Scope.EXPORTER,
        kind=Kind.GAUGE,
        unit="s",
        description="How long ago an exporter last delivered anything; missing before the first time",
    ),
    *(
        Metric(
            name=f"dynolog_exporter_dropped_{reason}",
            scope=Scope.EXPORTER,
            kind=Kind.DELTA,
            unit="{record}",
            description=f"Of dynolog_exporter_dropped: {what}",
        )
        for reason, what in LOSS_REASONS.items()
    ),
)
_NOT_UP = (CollectorState.UNAVAILABLE, CollectorState.FAILING, CollectorState.STALLED)


class OwnSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of the process, and of the counters of its parts."""

    process: OwnProcess
    records: int | None
    collectors: Mapping[str, CollectorStatus]
    exporters: Mapping[str, ExporterStatus]
    ipc: IpcStatus | None = None
    log_lines_lost: int | None = None
    wall_ns: int = 0


class OwnCollector:
    """Gauges and deltas of the daemon itself."""

    def __init__(self, context: Context) -> None:
        self._reader = OwnProcessReader()
        self._own = context.own

    def read(self) -> OwnSnapshot:
        """One reading."""
        return OwnSnapshot(
            process=self._reader.read(),
            records=self._own.records(),
            collectors={status.name: status for status in self._own.collectors()},
            exporters={status.name: status for status in self._own.exporters()},
            ipc=self._own.ipc(),
            log_lines_lost=self._own.log_lines_lost(),
            wall_ns=time.time_ns(),
        )

    def compute(self, before: OwnSnapshot, after: OwnSnapshot, elapsed_s: float) -> Values:
        """The process, then its collectors, then its exporters; a part that is new has no delta yet."""
        values: Values = {}
        old, new = before.process, after.process
        if elapsed_s > 0:
            values["dynolog_cpu_pct"] = (new.cpu_ns - old.cpu_ns) / 1e7 / elapsed_s
        put(values, "dynolog_rss_bytes", new.rss_bytes)
        put(values, "dynolog_threads", new.threads)
        put(values, "dynolog_open_fds", new.open_files)
        put(values, "dynolog_wakeups", counter_delta(old.wakeups, new.wakeups))
        put(values, "dynolog_records", counter_delta(before.records, after.records))
        put(values, "dynolog_log_lines_lost", counter_delta(before.log_lines_lost, after.log_lines_lost))
        _add_ipc(values, before.ipc, after.ipc)
        _add_collectors(values, before.collectors, after.collectors)
        _add_exporters(values, before.exporters, after.exporters, after.wall_ns)
        return values


def _add_ipc(values: Values, before: IpcStatus | None, after: IpcStatus | None) -> None:
    if after is None:
        return
    values["dynolog_trainers"] = after.trainers
    if before is not None:
        values["dynolog_ipc_requests"] = after.requests - before.requests
        values["dynolog_ipc_dropped_replies"] = after.dropped_replies - before.dropped_replies
        values["dynolog_ipc_malformed"] = after.malformed - before.malformed


def _add_collectors(
    values: Values, before: Mapping[str, CollectorStatus], after: Mapping[str, CollectorStatus]
) -> None:
    failures = stalls = 0
    for name, status in after.items():
        if (old := before.get(name)) is not None:
            failures += status.failures - old.failures
            stalls += status.stalls - old.stalls
        if status.state is not CollectorState.STARTING:
            values[f"dynolog_collector_up.{name}"] = int(status.state not in _NOT_UP)
        if status.rounds and status.state is not CollectorState.STALLED:
            values[f"dynolog_collector_ms.{name}"] = status.last_ms
        if status.rounds:
            values[f"dynolog_collector_max_ms.{name}"] = status.max_ms
    if after:
        values["dynolog_collector_failures"] = failures
        values["dynolog_collector_stalls"] = stalls


def _add_exporters(
    values: Values, before: Mapping[str, ExporterStatus], after: Mapping[str, ExporterStatus], wall_ns: int
) -> None:
    for name, status in after.items():
        values[f"dynolog_exporter_queue.{name}"] = status.queued
        values[f"dynolog_exporter_queue_bytes.{name}"] = status.queued_bytes
        if status.spool:
            values[f"dynolog_exporter_spool_bytes.{name}"] = status.spool_bytes
        if status.state is not ExporterState.IDLE:
            values[f"dynolog_exporter_up.{name}"] = int(status.state is ExporterState.OK)
        if status.last_success_wall_ns and wall_ns >= status.last_success_wall_ns:
            values[f"dynolog_exporter_last_success_age.{name}"] = (wall_ns - status.last_success_wall_ns) / 1e9
        if (old := before.get(name)) is not None:
            values[f"dynolog_exporter_sent.{name}"] = status.sent - old.sent
            values[f"dynolog_exporter_dropped.{name}"] = status.dropped - old.dropped
            values[f"dynolog_exporter_retries.{name}"] = status.retries - old.retries
            for reason in old.dropped_by.keys() | status.dropped_by.keys():
                lost = status.dropped_by.get(reason, 0) - old.dropped_by.get(reason, 0)
                values[f"dynolog_exporter_dropped_{reason}.{name}"] = lost


SPEC = CollectorSpec(
    name="own",
    summary="what the daemon itself costs and loses",
    needs="/proc/self",
    factory=OwnCollector,
    metrics=METRICS,
    # What watches the cost is not to be the cost: it reads the state of every other collector.
    shortest_interval_s=10.0,
)
