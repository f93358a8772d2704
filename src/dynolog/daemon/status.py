"""What the daemon says of itself: `getStatus`."""

import os
import time
from typing import TYPE_CHECKING

from dynolog import __version__
from dynolog.daemon.glog import GlogSink
from dynolog.daemon.idle_flags import idle_flags
from dynolog.daemon.recent_troubles import KEPT_NS, RecentTroubles
from dynolog.model.status import CollectorState, DaemonStatus, IpcStatus, RecentTrouble, SelfStatus
from dynolog.sources.own_process import OwnProcessReader

if TYPE_CHECKING:
    from dynolog.daemon.wiring import Daemon

_HEALTHY, _FAILING = 1, 0
_BAD = (CollectorState.UNAVAILABLE, CollectorState.FAILING, CollectorState.STALLED)


class Status:
    """Answers for the whole daemon (rpc.services.StatusService). `said` are the sentences about its flags at start."""

    def __init__(
        self, daemon: "Daemon", sink: GlogSink, troubles: RecentTroubles, hostname: str, said: tuple[str, ...]
    ) -> None:
        self._daemon = daemon
        self._sink = sink
        self._troubles = troubles
        self._hostname = hostname
        self._said = said
        self._process = OwnProcessReader()
        self._started_ns = time.monotonic_ns()
        self._started_cpu_ns = self._process.read().cpu_ns

    def health(self) -> int:
        """1; with GPU monitoring on, 0 while the GPU source fails."""
        daemon = self._daemon
        return _FAILING if daemon.gpus.is_wanted and daemon.pipeline.state_of("gpu") in _BAD else _HEALTHY

    def describe(self) -> DaemonStatus:
        """Everything `dyno status --verbose` shows."""
        daemon = self._daemon
        return DaemonStatus(
            version=__version__,
            hostname=self._hostname,
            wall_ns=time.time_ns(),
            own=self._own(),
            ipc=daemon.ipc_status() or IpcStatus(enabled=False),
            collectors=daemon.pipeline.statuses(),
            exporters=daemon.fanout.statuses(),
            rpc_addresses=daemon.rpc.addresses,
            active_captures=daemon.traces.active_captures,
            missing=self._missing(),
            gpu=daemon.gpus.status() if daemon.gpus.is_enabled else None,
            recent=self.recent(),
        )

    def recent(self) -> tuple[RecentTrouble, ...]:
        """What went wrong in the last hour, but for what another part of the status says now."""
        daemon = self._daemon
        collectors = [one.error for one in daemon.pipeline.statuses()]
        exporters = [one.error for one in daemon.fanout.statuses()]
        standing = (*collectors, *exporters, *self._missing())
        return (*self._troubles.since_an_hour(standing), *self._lost_lines())

    def _lost_lines(self) -> tuple[RecentTrouble, ...]:
        """What the log lost cannot have been logged."""
        sink = self._sink
        ago_ns = time.monotonic_ns() - sink.lost_ns
        if not sink.lost_lines or ago_ns > KEPT_NS:
            return ()
        text = f"{sink.lost_lines} log lines were lost since the start, lately: {sink.last_error}"
        return (RecentTrouble(wall_ns=time.time_ns() - ago_ns, text=text),)

    def _own(self) -> SelfStatus:
        now = self._process.read()
        uptime_ns = max(time.monotonic_ns() - self._started_ns, 1)
        return SelfStatus(
            pid=os.getpid(),
            cpu_pct=100 * (now.cpu_ns - self._started_cpu_ns) / uptime_ns,
            cpu_pct_1m=self._daemon.pipeline.cpu_pct_1m,
            rss_bytes=now.rss_bytes or 0,
            threads=now.threads or 0,
            open_files=now.open_files or 0,
            uptime_s=uptime_ns / 1e9,
        )

    def _missing(self) -> tuple[str, ...]:
        """What cannot work here, why, and what would give it."""
        daemon = self._daemon
        sentences = [
            *self._said,
            *idle_flags(daemon.settings),
            *daemon.rpc.notices,
            *daemon.traces.notices,
            *daemon.pipeline.missing(),
        ]
        sentences += daemon.gpu_owners.notices
        if daemon.ipc is None:
            sentences.append("IPC monitor is off, so no process can be traced: start dynolog with --enable_ipc_monitor")
        if not daemon.exporters:
            sentences.append("no destination is on: records are kept for dyno metrics only: --use_JSON logs them")
        return tuple(sentences)
