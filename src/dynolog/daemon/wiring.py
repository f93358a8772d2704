"""Puts the rooms together: one daemon from its settings. The order of starting and stopping is life_cycle's."""

import asyncio
import os
from collections.abc import Callable

from dynolog.collectors.registry import COLLECTORS, declared_catalogue
from dynolog.collectors.spec import Context
from dynolog.daemon.glog import GlogSink
from dynolog.daemon.status import Status
from dynolog.exporters.registry import EXPORTERS, chosen
from dynolog.exporters.selected import Selections
from dynolog.exporters.spec import ExporterContext
from dynolog.ipc.listener import IPC_NAME, IpcListener
from dynolog.model.clock import SystemClock
from dynolog.model.flag import Settings
from dynolog.model.metric import Catalogue
from dynolog.model.record import Record
from dynolog.model.status import IpcStatus
from dynolog.pipeline.config import config_of
from dynolog.pipeline.fanout import Fanout
from dynolog.pipeline.latest import LatestRecords
from dynolog.pipeline.notice_board import NoticeBoard
from dynolog.pipeline.own_counters import PipelineCounters
from dynolog.pipeline.rounds import Pipeline
from dynolog.profiling.destinations import check_destinations
from dynolog.profiling.service import TraceService
from dynolog.profiling.trace_watch import TraceWatch
from dynolog.rpc.server import RpcServer
from dynolog.rpc.services import Services
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import ProcessReader


def hostname() -> str:
    """The name records carry: the node's, when a container is told it (K8S_NODE_NAME), else this machine's."""
    return os.environ.get("K8S_NODE_NAME") or os.uname().nodename


def exporter_context(
    settings: Settings,
    catalogue: Catalogue,
    write_log: Callable[[str, int, str], None],
    write_line: Callable[[bytes], None],
) -> ExporterContext:
    """What the exporters of this machine are made from."""
    return ExporterContext(
        settings=settings,
        catalogue=catalogue,
        hostname=hostname(),
        write_log=write_log,
        write_line=write_line,
        owners={(metric.name, metric.scope): spec.name for spec in COLLECTORS for metric in spec.metrics},
    )


class Daemon:
    """All parts of a running daemon. Made and used on the socket thread."""

    def __init__(
        self, settings: Settings, sink: GlogSink, loop: asyncio.AbstractEventLoop, said: tuple[str, ...] = ()
    ) -> None:
        self.settings = settings
        clock = SystemClock()
        catalogue = declared_catalogue()
        host = HostFiles(settings.text("root_dir"))
        self.notices = NoticeBoard("ipc")
        self.exporters = chosen(settings)
        self.selections = Selections(
            settings.text("exporters_config"),
            (spec.name for spec in EXPORTERS),
            exporter_context(settings, catalogue, sink.write_at_info, sink.write_line),
        )
        self.fanout = Fanout(((spec.name, self.selections.make(spec)) for spec in self.exporters), clock)
        self.latest = LatestRecords(catalogue, COLLECTORS, clock)
        self.ipc: IpcListener | None = None
        counters = PipelineCounters()
        self.pipeline = Pipeline(
            COLLECTORS,
            lambda _spec, notices: Context(host=host, settings=settings, notices=notices, own=counters),
            clock,
            self._deliver,
            config_of(settings, COLLECTORS),
        )
        counters.attach(self.pipeline, self.fanout, self.ipc_status, lambda: sink.lost_lines)
        self.traces = TraceService(
            loop,
            clock=clock,
            reader=ProcessReader(HostFiles("/")),
            check_destinations=check_destinations,
            make_watch=TraceWatch,
            ipc_enabled=settings.on("enable_ipc_monitor"),
        )
        if settings.on("enable_ipc_monitor"):
            self.ipc = IpcListener(
                self.traces.handler,
                loop,
                self.notices,
                socket_dir=settings.text("ipc_socket_dir"),
                namespaces=settings.on("ipc_namespaces"),
                name=settings.text("ipc_fabric_name"),
                file_name=IPC_NAME,
            )
        self.status = Status(self, sink, hostname(), said)
        self.rpc = RpcServer(
            loop, Services(traces=self.traces, metrics=self.latest, status=self.status), settings, clock
        )

    def ipc_status(self) -> IpcStatus | None:
        """The counters of the IPC, None when it is off. From any thread."""
        return self.ipc.status(self.traces.trainer_count) if self.ipc is not None else None

    def _deliver(self, record: Record) -> None:
        self.latest.put(record)
        self.fanout.put(record)
