"""The public Dynolog's relay: JSON objects, one after another without anything between them, over TCP (`--use_fbrelay`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynolog import __version__
from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.forms.sample_json import SampleJson, quote
from dynolog.exporters.forms.stamps import Stamps
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.model.record import Record

if TYPE_CHECKING:
    from dynolog.exporters.delivery.sending import NetworkExporter

FLAGS = (
    Flag(name="use_fbrelay", default=False, help="send records to an FB relay over TCP", section="exporters"),
    Flag(name="fbrelay_address", default="127.0.0.1", help="address or name of the relay", section="exporters"),
    Flag(name="fbrelay_port", default=10000, minimum=1, maximum=65535, help="port of the relay", section="exporters"),
)
_ENTITY = "dyno"
_DEVICE = ("device",)


class RelayEncoder:
    """One object a record, its keys sorted, and a payload for each: a relay may take what one read gives it for an object."""

    def __init__(self, hostname: str) -> None:
        self._samples = SampleJson()
        self._stamps = Stamps()
        host = quote(hostname)
        self._agent = f'{{"hostname":{host},"name":{host},"type":"dyno","version":{quote(__version__)}}}'

    def encode(self, records: Sequence[Record]) -> list[Payload]:
        """A payload for each record."""
        return [Payload(body=self._object(record).encode(), records=1) for record in records]

    def _object(self, record: Record) -> str:
        device = record.labels.get("device")
        entity = quote(_ENTITY if device is None else f"{_ENTITY}.device{device}")
        _, sample = self._samples.data(record, without=_DEVICE)
        return (
            f'{{"@timestamp":"{self._stamps.millis(record.wall_ns)}","agent":{self._agent},"backend":0,{entity}:{sample},'
            f'"event":{{"module":{entity}}},"stack_metrics":false}}'
        )


def make(context: ExporterContext) -> "NetworkExporter":
    """From the flags."""
    # Only a daemon with such an exporter should pay for these: 5 MB.
    from dynolog.exporters.delivery.sending import NetworkExporter  # noqa: PLC0415
    from dynolog.exporters.delivery.stream_transport import StreamTransport, tcp  # noqa: PLC0415

    address, port = context.settings.text("fbrelay_address"), context.settings.integer("fbrelay_port")
    return NetworkExporter(
        "fbrelay",
        f"{address} port {port}",
        RelayEncoder(context.hostname),
        StreamTransport(tcp(address, port)),
        context,
    )


SPEC = ExporterSpec(
    name="fbrelay", summary="the public Dynolog's relay, over TCP", flags=(*FLAGS, *DELIVERY_FLAGS), factory=make
)
