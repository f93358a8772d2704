"""What an OTLP exporter is told: by flags, and by the standard OpenTelemetry variables, which win over flags.

Of a variable and its signal's own form (OTEL_EXPORTER_OTLP_METRICS_ENDPOINT) the latter wins; an empty one counts as not set. A
value of a variable that cannot be used is left out with a warning, as the specification asks, except where nothing could be sent.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from dynolog.exporters.delivery.http_transport import TlsFiles
from dynolog.exporters.otlp.endpoint import Endpoint, grpc_endpoint, http_endpoint
from dynolog.exporters.otlp.headers import parse_headers

_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")
GRPC = "grpc"
HTTP = "http/protobuf"
PROTOCOLS = (HTTP, GRPC)
COMPRESSIONS = ("none", "gzip")
_DEFAULTS = {HTTP: "http://localhost:4318", GRPC: "http://localhost:4317"}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags say, each as its text; empty where a flag says nothing."""

    endpoint: str = ""
    endpoint_flag: str = ""
    headers: str = ""
    headers_flag: str = ""
    timeout_ms: int = 10_000
    protocol: str = HTTP
    compression: str = "none"
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""


class OtlpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How one signal is sent."""

    protocol: str
    endpoint: Endpoint
    headers: Mapping[str, str]
    timeout_s: float
    gzip: bool
    tls: TlsFiles


class Variables:
    """The OTEL_EXPORTER_OTLP_* variables of one signal (`METRICS`, `LOGS`)."""

    def __init__(self, environ: Mapping[str, str], signal: str) -> None:
        self._environ = environ
        self._signal = signal

    def name(self, option: str) -> str:
        """The variable that decides an option, or "" when none is set."""
        names = (f"OTEL_EXPORTER_OTLP_{self._signal}_{option}", f"OTEL_EXPORTER_OTLP_{option}")
        return next((name for name in names if self._environ.get(name, "").strip()), "")

    def text(self, option: str, otherwise: str) -> str:
        """An option's value, or what the flag says."""
        name = self.name(option)
        return self._environ[name].strip() if name else otherwise

    def parsed(self, option: str, parse: Callable[[str], _Value], otherwise: _Value, wanted: str) -> _Value:
        """An option that must be understood (`parse` raises ValueError); else a warning, and what the flag says."""
        name = self.name(option)
        if not name:
            return otherwise
        try:
            return parse(self._environ[name].strip().lower())
        except ValueError:
            _log.warning("%s is ignored: it is not %s", name, wanted)
            return otherwise


def resolve(told: Told, environ: Mapping[str, str], signal: str) -> OtlpSettings:
    """How a signal (`metrics` or `logs`) is to be sent. Raises FlagError when there is no address to send it to."""
    variables = Variables(environ, signal.upper())
    protocol = variables.parsed("PROTOCOL", _one_of(PROTOCOLS), told.protocol, " or ".join(PROTOCOLS))
    compression = variables.parsed("COMPRESSION", _one_of(COMPRESSIONS), told.compression, " or ".join(COMPRESSIONS))
    return OtlpSettings(
        protocol=protocol,
        endpoint=_endpoint(told, variables, protocol, signal),
        headers=_headers(told, variables),
        timeout_s=variables.parsed("TIMEOUT", _milliseconds, told.timeout_ms, "a number of milliseconds") / 1000,
        gzip=compression == "gzip",
        tls=TlsFiles(
            ca_file=variables.text("CERTIFICATE", told.ca_file),
            certificate_file=variables.text("CLIENT_CERTIFICATE", told.certificate_file),
            key_file=variables.text("CLIENT_KEY", told.key_file),
        ),
    )


def _endpoint(told: Told, variables: Variables, protocol: str, signal: str) -> Endpoint:
    name = variables.name("ENDPOINT")
    text = variables.text("ENDPOINT", told.endpoint.strip() or _DEFAULTS[protocol])
    said_by = name or f"--{told.endpoint_flag}"
    if protocol == GRPC:
        insecure = variables.parsed("INSECURE", _boolean, False, "true or false")
        return grpc_endpoint(text, insecure=insecure, said_by=said_by)
    is_signals_own = f"_{signal.upper()}_" in name
    return http_endpoint(text, f"/v1/{signal}", verbatim=is_signals_own, said_by=said_by)


def _headers(told: Told, variables: Variables) -> Mapping[str, str]:
    headers, bad = parse_headers(variables.text("HEADERS", told.headers))
    for reason in bad:
        _log.warning("%s: %s; it is left out", variables.name("HEADERS") or f"--{told.headers_flag}", reason)
    return headers


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return parse


def _milliseconds(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"
