"""ODS: one form a record, POSTed to the Graph API (`--use_ODS`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.forms.sample_json import quote
from dynolog.exporters.graph.flags import GRAPH_FLAGS
from dynolog.exporters.graph.form import FORM, form
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.model.record import Record

if TYPE_CHECKING:
    from dynolog.exporters.delivery.sending import NetworkExporter

FLAGS = (
    Flag(
        name="use_ODS",
        default=False,
        help="send records to ODS. Its datapoints carry no time: what could not be sent within 2 minutes is dropped",
        section="exporters",
    ),
    Flag(name="category_id", default="", help="category id of the ODS endpoint", section="exporters"),
    Flag(name="ods_entity_prefix", default="", help="what the names of ODS entities begin with", section="exporters"),
    Flag(
        name="ods_url",
        default="https://graph.facebook.com/v2.2/ods_metrics",
        help="where ODS takes datapoints",
        section="exporters",
    ),
)
_OLDEST_S = 120.0
_MOST_KEYS = 20_000


class OdsEncoder:
    """A payload for each record: the datapoints carry no time, so those of two records may not be in one. Texts are no datapoints."""

    def __init__(self, hostname: str, prefix: str, category_id: str) -> None:
        self._entity = prefix + hostname
        self._rest = form({"category_id": category_id})
        # Percent-encoding takes ten times what the rest does, and the keys of one record are those of the next.
        self._starts: dict[tuple[str, str], str] = {}

    def encode(self, records: Sequence[Record]) -> list[Payload]:
        """None for a record without numbers."""
        payloads = []
        for record in records:
            if datapoints := self._datapoints(record):
                body = b"datapoints=%5B" + "%2C".join(datapoints).encode() + b"%5D&" + self._rest
                payloads.append(Payload(body=body, records=1, content_type=FORM, kind=str(record.wall_ns)))
        return payloads

    def _datapoints(self, record: Record) -> list[str]:
        """Percent-encoded. A number with a sign and a point needs no encoding, the quotes around a float do."""
        device = record.about
        entity = self._entity if not device else f"{self._entity}.gpu.{device}"
        starts = self._starts
        points = []
        for key, value in sorted(record.values.items()):
            # The difference is not 0 for infinities and NaN.
            if isinstance(value, str) or value - value != 0:
                continue
            start = starts.get((entity, key)) or self._start(entity, key)
            points.append(f"{start}%22{value:.3f}%22%7D" if isinstance(value, float) else f"{start}{value}%7D")
        return points

    def _start(self, entity: str, key: str) -> str:
        """A datapoint up to its value."""
        if len(self._starts) >= _MOST_KEYS:  # devices that come and go must not fill memory
            self._starts.clear()
        text = f'{{"entity":{quote(entity)},"key":{quote(f"dynolog.{key}")},"value":'
        start = self._starts[entity, key] = form({"": text})[1:].decode()
        return start


def make(context: ExporterContext) -> "NetworkExporter":
    """From the flags. Raises FlagError."""
    # Only a daemon with such an exporter should pay for these: 5 MB.
    from dynolog.exporters.delivery.sending import NetworkExporter  # noqa: PLC0415
    from dynolog.exporters.graph.forms_transport import graph_transport  # noqa: PLC0415

    settings = context.settings
    encoder = OdsEncoder(context.hostname, settings.text("ods_entity_prefix"), settings.text("category_id"))
    destination, transport = graph_transport(settings, "ods_url", _OLDEST_S)
    return NetworkExporter("ods", destination, encoder, transport, context)


SPEC = ExporterSpec(name="ods", summary="ODS, over https", flags=(*FLAGS, *GRAPH_FLAGS), factory=make)
