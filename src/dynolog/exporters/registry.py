"""Every exporter, and which of them the flags turn on."""

from dynolog.exporters import fbrelay, file, log, statsd, udsrelay
from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.graph import ods, scuba
from dynolog.exporters.otlp import logs_spec as otel
from dynolog.exporters.otlp import metrics_spec as otlp
from dynolog.exporters.prometheus import remote_write_spec as remote_write
from dynolog.exporters.prometheus import scrape_spec as prometheus
from dynolog.exporters.selection.rules import FLAG as RULES_FLAG
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
# A reload puts all of them into effect, but for the format, which is the log's own as well, and the rules, which are read again.
_NOT_LIVE = frozenset((log.LOG_FORMAT.name, RULES_FLAG))
SHARED_FLAGS = frozenset(flag.name for flag in DELIVERY_FLAGS) - _NOT_LIVE
LIVE_FLAGS = SHARED_FLAGS | {flag.name for spec in EXPORTERS for flag in spec.flags} - _NOT_LIVE


def chosen(settings: Settings) -> tuple[ExporterSpec, ...]:
    """The exporters whose flag is on. The log stands in when there is no other, unless it was switched off; () means that
    records go nowhere, which the daemon should say at its start.
    """
    on = tuple(spec for spec in EXPORTERS if settings.on(spec.flags[0].name))
    if not on and not settings.is_given(log.USE_JSON.name):
        return (log.SPEC,)
    return on
