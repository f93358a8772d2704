"""The public Dynolog's relay on the same machine: `::CATEGORY,{json}` lines over a unix stream socket (`--use_udsrelay`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.forms.sample_json import SampleJson
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.model.record import Record

if TYPE_CHECKING:
    from dynolog.exporters.delivery.sending import NetworkExporter

FLAGS = (
    Flag(name="use_udsrelay", default=False, help="send records to a relay on a unix socket", section="exporters"),
    Flag(
        name="udsrelay_socket_path",
        default="/var/run/dyno-relay-logger.sock",
        help="socket of that relay",
        section="exporters",
    ),
)
_GPU, _KERNEL = "dynolog_dcgm_gpu_monitor", "dynolog_cpu_monitor"
_SECOND_NS = 1_000_000_000


class UdsRelayEncoder:
    """One line a record: its sample, with the host, the time in seconds, and the measured interval in whole seconds."""

    def __init__(self, hostname: str) -> None:
        self._samples = SampleJson()
        self._hostname = hostname

    def encode(self, records: Sequence[Record]) -> list[Payload]:
        """A payload for each record."""
        return [Payload(body=self._line(record).encode(), records=1) for record in records]

    def _line(self, record: Record) -> str:
        more: dict[str, int | float | str] = {"hostname": self._hostname, "t": record.wall_ns // _SECOND_NS}
        if record.intervals_ns:
            # An int, as the original's flag is one; of an interval below a second the nearest that is not nothing.
            more["interval_s"] = max(round(min(record.intervals_ns.values()) / _SECOND_NS), 1)
        _, sample = self._samples.data(record, more)
        return f"::{category(record)},{sample}\n"


def category(record: Record) -> str:
    """The original knows two: its GPU monitor and its kernel monitor. Other sources are named by the same pattern."""
    if "device" in record.labels:
        return _GPU
    return _KERNEL if record.source == "kernel" else f"dynolog_{record.source}_monitor"


def make(context: ExporterContext) -> "NetworkExporter":
    """From the flags."""
    # Only a daemon with such an exporter should pay for these: 5 MB.
    from dynolog.exporters.delivery.sending import NetworkExporter  # noqa: PLC0415
    from dynolog.exporters.delivery.stream_transport import StreamTransport, unix_stream  # noqa: PLC0415

    path = context.settings.text("udsrelay_socket_path")
    return NetworkExporter(
        "udsrelay", path, UdsRelayEncoder(context.hostname), StreamTransport(unix_stream(path)), context
    )


SPEC = ExporterSpec(
    name="udsrelay",
    summary="the public Dynolog's relay, on a unix socket",
    flags=(*FLAGS, *DELIVERY_FLAGS),
    factory=make,
)
