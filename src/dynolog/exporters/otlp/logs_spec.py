"""OpenTelemetry log records (`--use_otel`): the flags. What they make is in otlp_exporters."""

import os

from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.flag import Flag
from dynolog.pipeline.delivery import Exporter

_SECTION = "exporters"
FLAGS = (
    Flag(
        name="use_otel",
        default=False,
        help="send each record as a log record to an OpenTelemetry receiver; headers, certificates, protocol and compression come "
        "from the OTEL_EXPORTER_OTLP_* variables, which also win over --otel_endpoint",
        section=_SECTION,
    ),
    Flag(
        name="otel_endpoint",
        default="http://localhost:4318",
        help="address of the receiver, to which /v1/logs is added",
        section=_SECTION,
    ),
    Flag(
        name="otel_resource_attrs",
        default="",
        help="resource attributes beside service.name and host_name: KEY=VALUE,KEY=VALUE; keys are lower-cased",
        section=_SECTION,
    ),
    Flag(
        name="otel_resource_env_file",
        default="",
        help="file of more resource attributes, KEY=VALUE a line; keys are lower-cased",
        section=_SECTION,
    ),
    Flag(
        name="otel_metric_mappings_file",
        default="",
        help="CSV file: NAME,OUTPUT or NAME,OUTPUT,SCALE renames a value, NAME,COLUMN[SUBKEY] puts it into a key-value list",
        section=_SECTION,
    ),
    *DELIVERY_FLAGS,
)


def make(context: ExporterContext) -> Exporter:
    """The exporter that the flags and variables describe. Raises FlagError, also when an extra is missing."""
    # Only a daemon with this exporter loads what it is made of.
    from dynolog.exporters.otlp.making import logs_exporter  # noqa: PLC0415

    return logs_exporter(context, os.environ)


SPEC = ExporterSpec(name="otel", summary="records as OpenTelemetry log records", flags=FLAGS, factory=make)
