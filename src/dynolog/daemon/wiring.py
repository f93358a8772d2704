"""Puts the rooms together: one daemon from its settings. The order of starting and stopping is life_cycle's."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

from dynolog.collectors import tpu
from dynolog.collectors.registry import COLLECTORS, declared_catalogue
from dynolog.collectors.spec import CollectorSpec, Context, Notices
from dynolog.daemon import exporter_reload
from dynolog.daemon.glog import GlogSink
from dynolog.daemon.gpu_owners import GpuOwners
from dynolog.daemon.gpus import Gpus
from dynolog.daemon.host_sampling import HostSampling
from dynolog.daemon.recent_troubles import RecentTroubles
from dynolog.daemon.status import Status
from dynolog.exporters.registry import EXPORTERS, chosen
from dynolog.exporters.selection.selected_exporter import Selections
from dynolog.exporters.spec import ExporterContext
from dynolog.ipc.listener import IPC_NAME, IpcListener
from dynolog.model.clock import SystemClock
from dynolog.model.errors import DynologError
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.gpu import GpuSample
from dynolog.model.metric import Catalogue, Metric, Scope
from dynolog.model.record import Record
from dynolog.model.reload import ReloadReport
from dynolog.model.status import IpcStatus
from dynolog.pipeline.config import config_of
from dynolog.pipeline.device_records import DeviceBoard
from dynolog.pipeline.fanout import Fanout
from dynolog.pipeline.latest import LatestRecords
from dynolog.pipeline.notice_board import NoticeBoard
from dynolog.pipeline.own_counters import PipelineCounters
from dynolog.pipeline.rounds import Pipeline
from dynolog.profiling.destinations import check_destinations
from dynolog.profiling.service import TraceService
from dynolog.profiling.trace_watch import TraceWatch
from dynolog.rpc.server import RpcServer
from dynolog.rpc.services import NoReload, ReloadService, Services
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import ProcessReader


def hostname() -> str:
    """The name records carry: the node's, when a container is told it (K8S_NODE_NAME), else this machine's."""
    return os.environ.get("K8S_NODE_NAME") or os.uname().nodename


def owners_of_metrics() -> dict[tuple[str, Scope], str]:
    """The collector that gives each metric, by its name and scope."""
    return {(metric.name, metric.scope): spec.name for spec in COLLECTORS for metric in spec.metrics}


def exporter_context(
    settings: Settings,
    catalogue: Catalogue,
    owners: dict[tuple[str, Scope], str],
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
        owners=owners,
    )


class Daemon:
    """All parts of a running daemon. Made and used on the socket thread."""

    def __init__(
        self,
        settings: Settings,
        sink: GlogSink,
        troubles: RecentTroubles,
        loop: asyncio.AbstractEventLoop,
        *,
        said: tuple[str, ...] = (),
        reload: ReloadService | None = None,
    ) -> None:
        self.settings = settings
        clock = SystemClock()
        catalogue = self._catalogue = declared_catalogue()
        self._owners = owners_of_metrics()
        host = HostFiles(settings.text("root_dir"))
        self.notices = NoticeBoard("ipc")
        self.exporters = chosen(settings)
        self.selections = Selections(
            settings.text("exporters_config"),
            (spec.name for spec in EXPORTERS),
            exporter_context(settings, catalogue, self._owners, sink.write_at_info, sink.write_line),
        )
        self.fanout = Fanout(((spec.name, self.selections.make(spec)) for spec in self.exporters), clock)
        self.latest = LatestRecords(catalogue, COLLECTORS, clock)
        self.ipc: IpcListener | None = None
        counters = PipelineCounters()
        self.gpu_owners = GpuOwners(settings, host, NoticeBoard("gpu owners"))
        board = DeviceBoard(self.gpu_owners)
        self.gpus = Gpus(settings, board, loop)
        tpu.check_flags(settings)

        def context_of(spec: CollectorSpec, notices: Notices) -> Context:
            return Context(
                host=host,
                settings=settings,
                notices=notices,
                own=counters,
                declare=lambda metrics: self._declare(spec, metrics),
                gpu=self.gpus.source,
            )

        self.pipeline = Pipeline(
            COLLECTORS, context_of, clock, self._deliver, config_of(settings, COLLECTORS), board=board
        )
        counters.attach(self.pipeline, self.fanout, self.ipc_status, lambda: sink.lost_lines)
        self.host = HostSampling(settings.text("root_dir"), clock, self.gpus.source.freshen)
        self.traces = TraceService(
            loop,
            clock=clock,
            reader=ProcessReader(HostFiles("/")),
            check_destinations=check_destinations,
            make_watch=TraceWatch,
            ipc_enabled=settings.on("enable_ipc_monitor"),
            sampler=self.host.burst,
        )
        self.gpus.source.on_sample = self._on_gpu_sample
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
        self.status = Status(self, sink, troubles, hostname(), said)
        services = Services(
            traces=self.traces,
            metrics=self.latest,
            status=self.status,
            gpus=self.gpus,
            reload=reload or NoReload(),
            host=self.host.burst,
        )
        self.rpc = RpcServer(loop, services, settings, clock)

    def ipc_status(self) -> IpcStatus | None:
        """The counters of the IPC, None when it is off. From any thread."""
        return self.ipc.status(self.traces.trainer_count) if self.ipc is not None else None

    def refuses_exporters(self, given: Mapping[str, FlagValue]) -> str:
        """Why the exporters could not run with these flags, or ""."""
        new = Settings(self.settings.flags.values(), given)
        try:
            exporter_reload.check(self.selections, exporter_reload.replacements(self.settings, new), new)
        except DynologError as error:
            return str(error)
        return ""

    async def reload_exporters(self, before: Settings) -> ReloadReport:
        """Let the exporters follow the flags, which were as in `before`."""
        wanted = exporter_reload.replacements(before, self.settings)
        errors = await exporter_reload.apply(self.selections, self.fanout, wanted, before, self.settings)
        self.exporters = chosen(self.settings)
        return ReloadReport(errors=errors)

    def _declare(self, spec: CollectorSpec, metrics: Sequence[Metric]) -> None:
        """Take metrics that only a running source can describe into the catalogue."""
        for metric in self._catalogue.declare(metrics):
            self._owners[metric.name, metric.scope] = spec.name

    def _on_gpu_sample(self, sample: GpuSample | None) -> None:
        self.traces.gpus.put(sample)
        self.host.gpus.put(sample)

    def _deliver(self, record: Record) -> None:
        self.host.bandwidth.put(record)
        self.latest.put(record)
        self.fanout.put(record)
