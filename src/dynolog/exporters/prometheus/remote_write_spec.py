"""Prometheus remote-write (`--use_remote_write`): the flags. What they make is in remote_write_messages; why no library:
docs/architecture.md.
"""

from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag
from dynolog.pipeline.delivery import Exporter

_SECTION = "exporters"
FLAGS = (
    Flag(
        name="use_remote_write",
        default=False,
        help="send records to a Prometheus remote-write receiver, under the names of --prometheus_names=standard",
        section=_SECTION,
    ),
    Flag(
        name="remote_write_url",
        default="http://localhost:9090/api/v1/write",
        help="URL of the receiver (Prometheus with --web.enable-remote-write-receiver, Mimir, VictoriaMetrics, ...)",
        section=_SECTION,
    ),
    Flag(
        name="remote_write_headers",
        default="",
        help="headers of each request (authorization, x-scope-orgid): key=value,key=value, with %2C for a comma",
        section=_SECTION,
        secret=True,
    ),
    Flag(
        name="remote_write_ca_file",
        default="",
        help="PEM file of the authorities that may vouch for the receiver; empty: the system's",
        section=_SECTION,
    ),
    Flag(
        name="remote_write_certificate_file", default="", help="PEM file of the client's certificate", section=_SECTION
    ),
    Flag(name="remote_write_key_file", default="", help="PEM file of the client certificate's key", section=_SECTION),
)


def make(context: ExporterContext) -> Exporter:
    """From the flags. Raises FlagError, also when what it needs is not installed."""
    # Only a daemon with this exporter should pay for these.
    from dynolog.exporters.delivery.http_transport import HttpTransport, TlsFiles  # noqa: PLC0415
    from dynolog.exporters.delivery.sending import NetworkExporter  # noqa: PLC0415
    from dynolog.exporters.otlp.headers import parse_headers  # noqa: PLC0415

    try:
        import cramjam  # noqa: PLC0415
    except ModuleNotFoundError:
        raise FlagError("--use_remote_write needs snappy: pip install 'dynolog[remote-write]'") from None
    from dynolog.exporters.prometheus.remote_write_messages import HEADERS, RemoteWriteEncoder  # noqa: PLC0415

    settings = context.settings
    headers, bad = parse_headers(settings.text("remote_write_headers"))
    if bad:
        raise FlagError(f"--remote_write_headers: {bad[0]}")
    transport = HttpTransport(
        settings.text("remote_write_url"),
        headers={**headers, **HEADERS},
        tls=TlsFiles(
            settings.text("remote_write_ca_file"),
            settings.text("remote_write_certificate_file"),
            settings.text("remote_write_key_file"),
        ),
        said_by="--remote_write_url",
    )
    encoder = RemoteWriteEncoder(
        context.catalogue,
        context.hostname,
        lambda message: bytes(cramjam.snappy.compress_raw(message)),
        context.owners,
    )
    return NetworkExporter("remote_write", transport.destination, encoder, transport, context)


SPEC = ExporterSpec(
    name="remote_write", summary="a Prometheus remote-write receiver", flags=(*FLAGS, *DELIVERY_FLAGS), factory=make
)
