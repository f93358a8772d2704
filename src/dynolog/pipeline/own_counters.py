"""What the pipeline counts, for the collector that measures the daemon (collectors.spec.OwnCounters)."""

from collections.abc import Sequence

from dynolog.model.status import CollectorStatus, ExporterStatus
from dynolog.pipeline.fanout import Fanout
from dynolog.pipeline.rounds import Pipeline


class PipelineCounters:
    """Made before the pipeline, because contexts hold it; `attach` it before the pipeline starts."""

    def __init__(self) -> None:
        self._pipeline: Pipeline | None = None
        self._fanout: Fanout | None = None

    def attach(self, pipeline: Pipeline, fanout: Fanout) -> None:
        """Count these."""
        self._pipeline = pipeline
        self._fanout = fanout

    def collectors(self) -> Sequence[CollectorStatus]:
        """Each collector that is on."""
        return self._pipeline.statuses() if self._pipeline else ()

    def exporters(self) -> Sequence[ExporterStatus]:
        """Each exporter that is on."""
        return self._fanout.statuses() if self._fanout else ()

    def records(self) -> int | None:
        """Records made since the start."""
        return self._pipeline.records if self._pipeline else None
