"""Every exporter, and which of them the flags turn on."""

from dynolog.exporters import fbrelay, file, log, ods, otel, otlp, prometheus, remote_write, scuba, statsd, udsrelay
from dynolog.exporters.spec import ExporterSpec
from dynolog.model.flag import Settings

EXPORTERS: tuple[ExporterSpec, ...] = (
    log.SPEC,
    prometheus.SPEC,
    remote_write.SPEC,
    otlp.SPEC,
    otel.SPEC,
    file.SPEC,
    statsd.SPEC,
    fbrelay.SPEC,
    udsrelay.SPEC,
    ods.SPEC,
    scuba.SPEC,
)


def chosen(settings: Settings) -> tuple[ExporterSpec, ...]:
    """The exporters whose flag is on. The log stands in when there is no other, unless it was switched off; () means that
    records go nowhere, which the daemon should say at its start.
    """
    on = tuple(spec for spec in EXPORTERS if settings.on(spec.flags[0].name))
    if not on and not settings.is_given(log.USE_JSON.name):
        return (log.SPEC,)
    return on
