"""Network exporters: records are encoded, queued, and sent by a thread of their own until the destination has them."""

from collections.abc import Sequence

from dynolog.exporters.payload import Encoder, Transport
from dynolog.exporters.spec import ExporterContext
from dynolog.model.record import Record
from dynolog.pipeline.delivery import Progress


class NetworkExporter:
    """An encoder, a queue and a transport (pipeline.delivery.QueueingExporter)."""

    def __init__(
        self,
        name: str,
        destination: str,
        encoder: Encoder,
        transport: Transport,
        context: ExporterContext,
        *,
        queue_records: int = 1000,
        gzip: bool = False,
    ) -> None:
        """`name` is that of the spec, and of the directory below --spool_dir. `destination` is for people: without secrets.

        `gzip` compresses each payload once, before it is queued.
        """
        self.destination = destination

    def export(self, records: Sequence[Record]) -> None:
        """Encode and queue the records."""
        raise NotImplementedError

    def progress(self) -> Progress:
        """Counters, queue, state and last error."""
        raise NotImplementedError

    def end_by(self, monotonic_ns: int) -> None:
        """Stop waiting between attempts, and give up at this time."""
        raise NotImplementedError

    def close(self) -> None:
        """Deliver what is queued, as far as time allows; what is on disk stays there for the next start."""
        raise NotImplementedError
