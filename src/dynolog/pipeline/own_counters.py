"""What the pipeline counts, for the collector that measures the daemon (collectors.spec.OwnCounters)."""

from collections.abc import Callable, Sequence

from dynolog.model.status import CollectorStatus, ExporterStatus, IpcStatus
from dynolog.pipeline.fanout import Fanout
from dynolog.pipeline.rounds import Pipeline


class PipelineCounters:
    """Made before the pipeline, because contexts hold it; `attach` it before the pipeline starts."""

    def __init__(self) -> None:
        self._pipeline: Pipeline | None = None
        self._fanout: Fanout | None = None
        self._ipc: Callable[[], IpcStatus | None] = _nothing
        self._log_lines_lost: Callable[[], int | None] = _nothing

    def attach(
        self,
        pipeline: Pipeline,
        fanout: Fanout,
        ipc: Callable[[], IpcStatus | None] | None = None,
        log_lines_lost: Callable[[], int | None] | None = None,
    ) -> None:
        """Count these; the last two are asked from a worker thread."""
        self._pipeline = pipeline
        self._fanout = fanout
        self._ipc = ipc or _nothing
        self._log_lines_lost = log_lines_lost or _nothing

    def collectors(self) -> Sequence[CollectorStatus]:
        """Each collector that is on."""
        return self._pipeline.statuses() if self._pipeline else ()

    def exporters(self) -> Sequence[ExporterStatus]:
        """Each exporter that is on."""
        return self._fanout.statuses() if self._fanout else ()

    def records(self) -> int | None:
        """Records made since the start."""
        return self._pipeline.records if self._pipeline else None

    def ipc(self) -> IpcStatus | None:
        """The counters of the IPC; None when it is off."""
        return self._ipc()

    def log_lines_lost(self) -> int | None:
        """Lines of the daemon's log that could not be written."""
        return self._log_lines_lost()


def _nothing() -> None:
    return None
