"""What the parts of the daemon say about themselves, for `getStatus` with `verbose` and for self-metrics."""

from enum import StrEnum

import msgspec

from dynolog.model.gpu_view import GpuStatus


class CollectorState(StrEnum):
    """How a collector fares."""

    STARTING = "starting"  # no delta yet
    OK = "ok"
    UNAVAILABLE = "unavailable"  # the source is missing or forbidden; `error` has reason and remedy
    FAILING = "failing"  # it raised; `error` has what
    STALLED = "stalled"  # its read has not returned by the deadline


class CollectorStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One collector: state, times of its last and longest round in ms, rounds, failures, stalls."""

    name: str
    state: CollectorState
    interval_s: float
    configured_interval_s: float
    last_ms: float = 0.0
    max_ms: float = 0.0
    rounds: int = 0
    failures: int = 0
    stalls: int = 0
    error: str = ""
    notices: tuple[str, ...] = ()


# Why an exporter loses records: one word for programs each, and what a person reads.
QUEUE_FULL = "queue_full"
SPOOL_FULL = "spool_full"
SPOOL_DAMAGED = "spool_damaged"
REFUSED = "refused"
REJECTED = "rejected"
ERROR = "error"
SHUTDOWN = "shutdown"
LOSS_REASONS = {
    QUEUE_FULL: "the queue is full",
    SPOOL_FULL: "the spool is full (--spool_max_mb)",
    SPOOL_DAMAGED: "entries of the spool were damaged",
    REFUSED: "the destination refused them",
    REJECTED: "the destination took the rest of the request",
    ERROR: "they could not be written",
    SHUTDOWN: "the daemon stopped",
}


class ExporterState(StrEnum):
    """How an exporter fares."""

    IDLE = "idle"  # nothing delivered yet
    OK = "ok"
    RETRYING = "retrying"  # the destination cannot be reached or has no time; what is queued will be tried again
    FAILING = "failing"  # what was tried last was refused, and is lost


class ExporterStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One exporter: where it writes, what it sent and dropped, when it last succeeded (0: never).

    `queued` and `queued_bytes` are what waits in memory, `spool_bytes` what waits in --spool_dir. `spool` is "" without
    one, "on", or "off: " and why. `dropped_by` gives the records of `dropped` by reason, one word in snake_case each.
    `next_try_s` is how long until the next attempt while it is retrying.
    """

    name: str
    destination: str
    sent: int = 0
    dropped: int = 0
    queued: int = 0
    last_success_wall_ns: int = 0
    error: str = ""
    state: ExporterState = ExporterState.IDLE
    queued_bytes: int = 0
    spool: str = ""
    spool_bytes: int = 0
    dropped_by: dict[str, int] = {}
    retries: int = 0
    next_try_s: float = 0.0


class IpcStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The IPC: addresses it listens on, counters since start, and what is missing."""

    enabled: bool
    addresses: tuple[str, ...] = ()
    requests: int = 0
    replies: int = 0
    dropped_replies: int = 0
    malformed: int = 0
    trainers: int = 0
    notices: tuple[str, ...] = ()


class SelfStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon itself costs. CPU as percent of one core since start and over the last minute."""

    pid: int
    cpu_pct: float
    cpu_pct_1m: float
    rss_bytes: int
    threads: int
    open_files: int
    uptime_s: float


class RecentTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that went wrong within the last hour: when it last did (Unix ns), in words, and how often since it was first kept."""

    wall_ns: int
    text: str
    times: int = 1


class DaemonStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `dyno status --verbose` shows. `missing` says what cannot work here, why, and what would give it; `recent` what went wrong
    in the last hour and may be over; `gpu` is None unless GPUs are monitored.
    """

    version: str
    hostname: str
    wall_ns: int
    own: SelfStatus
    ipc: IpcStatus
    collectors: tuple[CollectorStatus, ...] = ()
    exporters: tuple[ExporterStatus, ...] = ()
    rpc_addresses: tuple[str, ...] = ()
    active_captures: int = 0
    missing: tuple[str, ...] = ()
    gpu: GpuStatus | None = None
    recent: tuple[RecentTrouble, ...] = ()
