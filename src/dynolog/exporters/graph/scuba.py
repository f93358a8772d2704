"""Scuba: one form a record, POSTed to the Graph API (`--use_scuba`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.forms.json_line import encode_object
from dynolog.exporters.graph.flags import GRAPH_FLAGS
from dynolog.exporters.graph.form import FORM, form
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.model.record import Record

if TYPE_CHECKING:
    from dynolog.exporters.delivery.sending import NetworkExporter

FLAGS = (
    Flag(name="use_scuba", default=False, help="send records to Scuba", section="exporters"),
    Flag(name="scribe_category", default="perfpipe_dynolog_hpc", help="category of Scuba", section="exporters"),
    Flag(
        name="scuba_url",
        default="https://graph.facebook.com/v2.2/scribe_logs",
        help="where Scuba takes logs",
        section="exporters",
    ),
)
_SECOND_NS = 1_000_000_000


class ScubaEncoder:
    """A payload for each record: one log, whose message holds its values by type."""

    def __init__(self, hostname: str, category: str) -> None:
        self._hostname = hostname
        self._category = category

    def encode(self, records: Sequence[Record]) -> list[Payload]:
        """A payload for each record."""
        return [
            Payload(body=form({"logs": f"[{self._log(record).decode()}]"}), records=1, content_type=FORM)
            for record in records
        ]

    def _log(self, record: Record) -> bytes:
        return encode_object(
            {"category": self._category, "line_escape": False, "message": self.message(record).decode()}
        )

    def message(self, record: Record) -> bytes:
        """`{"double":{...},"int":{..., "time"},"normal":{..., "host_name"}}`; numbers that are not finite are left out."""
        doubles: dict[str, object] = {}
        ints: dict[str, object] = {}
        texts: dict[str, object] = {}
        for key, value in {**record.values, **record.labels}.items():
            if isinstance(value, float):
                # The difference is not 0 for infinities and NaN.
                if value - value == 0:
                    doubles[key] = value
            elif isinstance(value, int):
                ints[key] = value
            elif key == "device" and value.isdecimal() and value.isascii():
                ints[key] = int(value)
            else:
                texts[key] = value
        texts["host_name"] = self._hostname
        ints["time"] = record.wall_ns // _SECOND_NS
        parts = (("double", doubles), ("int", ints), ("normal", texts))
        return b"{" + b",".join(b'"%s":%s' % (name.encode(), encode_object(part)) for name, part in parts) + b"}"


def make(context: ExporterContext) -> "NetworkExporter":
    """From the flags. Raises FlagError."""
    # Only a daemon with such an exporter should pay for these: 5 MB.
    from dynolog.exporters.delivery.sending import NetworkExporter  # noqa: PLC0415
    from dynolog.exporters.graph.forms_transport import graph_transport  # noqa: PLC0415

    settings = context.settings
    encoder = ScubaEncoder(context.hostname, settings.text("scribe_category"))
    destination, transport = graph_transport(settings, "scuba_url")
    return NetworkExporter("scuba", destination, encoder, transport, context)


SPEC = ExporterSpec(name="scuba", summary="Scuba, over https", flags=(*FLAGS, *GRAPH_FLAGS), factory=make)
