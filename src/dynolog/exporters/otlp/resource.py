"""Who sends: the resource attributes of OTLP messages."""

import logging
from collections.abc import Mapping

from dynolog import __version__
from dynolog.exporters.otlp.headers import parse_pairs

_log = logging.getLogger(__name__)


def metrics_resource(service_name: str, hostname: str, environ: Mapping[str, str]) -> dict[str, str]:
    """service.name, service.version, host.name, os.type, and what OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say, which win."""
    attributes = {
        "service.name": service_name,
        "service.version": __version__,
        "host.name": hostname,
        "os.type": "linux",
    }
    attributes.update(_told(environ))
    return attributes


def logs_resource(hostname: str, told: str, env_file: str, environ: Mapping[str, str]) -> dict[str, str]:
    """service.name and host_name; then `told` (--otel_resource_attrs), then the KEY=VALUE lines of `env_file`; their keys are
    lower-cased, as the public Dynolog has them; then the standard variables.
    """
    attributes = {"service.name": "dynolog", "host_name": hostname}
    for entry in told.split(","):
        _add(attributes, entry)
    if env_file:
        try:
            with open(env_file, encoding="utf-8", errors="replace") as file:
                for line in file:
                    _add(attributes, line)
        except OSError as error:
            _log.warning(
                "--otel_resource_env_file=%s cannot be read (%s): nothing of it is sent", env_file, error.strerror
            )
    attributes.update(_told(environ))
    return attributes


def _add(attributes: dict[str, str], entry: str) -> None:
    key, _, value = entry.partition("=")
    if key.strip() and value.strip():
        attributes[key.strip().lower()] = value.strip()


def _told(environ: Mapping[str, str]) -> dict[str, str]:
    pairs, bad = parse_pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    if bad:
        # The specification: one bad entry, and the whole variable is not to be trusted.
        _log.warning("OTEL_RESOURCE_ATTRIBUTES is ignored: %s", bad[0])
        pairs = []
    attributes = dict(pairs)
    if service_name := environ.get("OTEL_SERVICE_NAME", "").strip():
        attributes["service.name"] = service_name
    return attributes
