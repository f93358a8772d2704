"""The OpenTelemetry exporters, made from flags and variables."""

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from dynolog.exporters.delivery.payload import Transport
from dynolog.exporters.delivery.sending import NetworkExporter
from dynolog.exporters.otlp.logs import LogsEncoder
from dynolog.exporters.otlp.mappings import read_mappings
from dynolog.exporters.otlp.metrics import MetricsEncoder
from dynolog.exporters.otlp.resource import logs_resource, metrics_resource
from dynolog.exporters.otlp.settings import GRPC, OtlpSettings, Told, Variables, resolve
from dynolog.exporters.spec import ExporterContext
from dynolog.pipeline.delivery import Exporter

_TEMPORALITIES = {"delta": False, "lowmemory": False, "cumulative": True}


def metrics_exporter(context: ExporterContext, environ: Mapping[str, str]) -> Exporter:
    """The exporter of --use_otlp. Raises FlagError, also when an extra is missing."""
    settings = context.settings
    told = Told(
        endpoint=settings.text("otlp_endpoint"),
        endpoint_flag="otlp_endpoint",
        headers=settings.text("otlp_headers"),
        headers_flag="otlp_headers",
        timeout_ms=settings.integer("otlp_timeout_ms"),
        protocol=settings.text("otlp_protocol"),
        compression=settings.text("otlp_compression"),
        ca_file=settings.text("otlp_ssl_ca_cert_path"),
        certificate_file=settings.text("otlp_ssl_client_cert_path"),
        key_file=settings.text("otlp_ssl_client_key_path"),
    )
    how = resolve(told, environ, "metrics")
    encoder = MetricsEncoder(
        context.catalogue,
        context.owners,
        metrics_resource(settings.text("otlp_service_name"), context.hostname, environ),
        style=settings.text("otlp_names"),
        gauges=settings.on("otlp_gauges"),
        cumulative=_is_cumulative(settings.text("otlp_temporality"), environ),
    )
    return NetworkExporter(
        "otlp",
        destination(how),
        encoder,
        transport(how, "metrics"),
        context,
        queue_records=settings.integer("otlp_max_queue_size"),
        gzip=compresses_itself(how),
    )


def logs_exporter(context: ExporterContext, environ: Mapping[str, str]) -> Exporter:
    """The exporter of --use_otel. Raises FlagError, also when an extra is missing."""
    settings = context.settings
    told = Told(endpoint=settings.text("otel_endpoint"), endpoint_flag="otel_endpoint")
    how = resolve(told, environ, "logs")
    resource = logs_resource(
        context.hostname, settings.text("otel_resource_attrs"), settings.text("otel_resource_env_file"), environ
    )
    encoder = LogsEncoder(resource, read_mappings(settings.text("otel_metric_mappings_file")))
    return NetworkExporter(
        "otel", destination(how), encoder, transport(how, "logs"), context, gzip=compresses_itself(how)
    )


def destination(how: OtlpSettings) -> str:
    """The address for people: what may hold a secret (user, password, query) is left out."""
    if how.protocol == GRPC:
        return f"{how.endpoint.address} (gRPC)"
    parts = urlsplit(how.endpoint.address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def compresses_itself(how: OtlpSettings) -> bool:
    """Whether payloads are compressed before they are queued; gRPC compresses calls by itself."""
    return how.gzip and how.protocol != GRPC


def transport(how: OtlpSettings, signal: str) -> Transport:
    """What carries a signal."""
    # Each pulls in a library that the other does not need.
    if how.protocol == GRPC:
        from dynolog.exporters.otlp.grpc_transport import GrpcTransport  # noqa: PLC0415

        return GrpcTransport(how, signal)
    from dynolog.exporters.delivery.http_transport import HttpTransport  # noqa: PLC0415
    from dynolog.exporters.otlp.answers import http_verdict, refusal  # noqa: PLC0415

    return HttpTransport(
        how.endpoint.address,
        headers=how.headers,
        timeout_s=how.timeout_s,
        tls=how.tls,
        on_success=lambda answer: http_verdict(answer, signal),
        explain=refusal,
    )


def _is_cumulative(told: str, environ: Mapping[str, str]) -> bool:
    def parse(word: str) -> bool:
        if word not in _TEMPORALITIES:
            raise ValueError(word)
        return _TEMPORALITIES[word]

    variables = Variables(environ, "METRICS")
    return variables.parsed("TEMPORALITY_PREFERENCE", parse, _TEMPORALITIES[told], " or ".join(_TEMPORALITIES))
