"""OpenTelemetry metrics (`--use_otlp`): the flags. What they make is in otlp_exporters."""

import os

from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.pipeline.delivery import Exporter

_SECTION = "exporters"
FLAGS = (
    Flag(
        name="use_otlp",
        default=False,
        help="send metrics to an OpenTelemetry receiver; the OTEL_EXPORTER_OTLP_* variables win over the --otlp_* flags",
        section=_SECTION,
    ),
    Flag(
        name="otlp_endpoint",
        default="",
        help="address of the receiver, to which /v1/metrics is added; empty: http://localhost:4318, or :4317 for gRPC",
        section=_SECTION,
    ),
    Flag(name="otlp_service_name", default="dynolog", help="service.name; OTEL_SERVICE_NAME wins", section=_SECTION),
    Flag(
        name="otlp_headers",
        default="",
        help="headers of each request: key=value,key=value, with %2C for a comma",
        section=_SECTION,
        secret=True,
    ),
    Flag(
        name="otlp_timeout_ms",
        default=30_000,
        minimum=1,
        maximum=3_600_000,
        help="milliseconds that one request may take",
        section=_SECTION,
    ),
    Flag(
        name="otlp_max_queue_size",
        default=1000,
        minimum=1,
        maximum=1_000_000,
        help="records that may wait for the receiver; the oldest are dropped first",
        section=_SECTION,
    ),
    Flag(
        name="otlp_export_interval_ms",
        default=60_000,
        help="accepted for the original's sake and ignored: records are sent as they come",
        section=_SECTION,
    ),
    Flag(
        name="otlp_ssl_ca_cert_path",
        default="",
        help="PEM file of the authorities that may vouch for the receiver; empty: the system's",
        section=_SECTION,
    ),
    Flag(name="otlp_ssl_client_cert_path", default="", help="PEM file of the client's certificate", section=_SECTION),
    Flag(
        name="otlp_ssl_client_key_path", default="", help="PEM file of the client certificate's key", section=_SECTION
    ),
    Flag(
        name="otlp_protocol",
        default="http/protobuf",
        choices=("http/protobuf", "grpc"),
        help="how metrics travel; grpc needs the extra otlp-grpc",
        section=_SECTION,
    ),
    Flag(
        name="otlp_compression",
        default="none",
        choices=("none", "gzip"),
        help="compression of requests",
        section=_SECTION,
    ),
    Flag(
        name="otlp_names",
        default="dynolog",
        choices=("dynolog", "semconv"),
        help="names of metrics: as in the log, or those of the OpenTelemetry semantic conventions (system.cpu.utilization)",
        section=_SECTION,
    ),
    Flag(
        name="otlp_gauges",
        default=False,
        help="send what was added in an interval as a gauge, as the original does, not as a sum",
        section=_SECTION,
    ),
    Flag(
        name="otlp_temporality",
        default="delta",
        choices=("delta", "cumulative"),
        help="whether sums are what was added in an interval or running totals; "
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE wins",
        section=_SECTION,
    ),
    *DELIVERY_FLAGS,
)


def make(context: ExporterContext) -> Exporter:
    """The exporter that the flags and variables describe. Raises FlagError, also when an extra is missing."""
    # Only a daemon with this exporter loads what it is made of.
    from dynolog.exporters.otlp.making import metrics_exporter  # noqa: PLC0415

    return metrics_exporter(context, os.environ)


SPEC = ExporterSpec(name="otlp", summary="metrics to an OpenTelemetry receiver", flags=FLAGS, factory=make)
