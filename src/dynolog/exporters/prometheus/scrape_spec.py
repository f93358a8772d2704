"""Metrics for Prometheus to scrape (`--use_prometheus`). What serves a scrape is imported when it is on."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.clock import Clock, SystemClock
from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag
from dynolog.model.record import Record
from dynolog.pipeline.delivery import Exporter

if TYPE_CHECKING:
    from dynolog.exporters.prometheus.library import Negotiation
    from dynolog.exporters.prometheus.series import SeriesStore
    from dynolog.exporters.prometheus.server import ScrapeServer

_log = logging.getLogger(__name__)
_LIBRARY = "prometheus_client"

USE_PROMETHEUS = Flag(
    name="use_prometheus",
    default=False,
    help="serve metrics for Prometheus to scrape, at /metrics; needs dynolog[prometheus]",
    section="exporters",
)
ADDRESS = Flag(
    name="prometheus_address",
    default="127.0.0.1",
    help="address that Prometheus scrapes: IPv4, IPv6, or * for all of both",
    section="exporters",
)
PORT = Flag(
    name="prometheus_port",
    default=8080,
    minimum=0,
    maximum=65535,
    help="port that Prometheus scrapes; 0: one that is free, which the log names",
    section="exporters",
)
NAMES = Flag(
    name="prometheus_names",
    default="dynolog",
    choices=("dynolog", "standard"),
    help="dynolog: the names of the log, as gauges; standard: base units, suffixes and counters by the conventions of Prometheus",
    section="exporters",
)


class PrometheusExporter:
    """Keeps what came last, and the sums of what grew; a thread of its own answers those who ask for it."""

    def __init__(self, store: "SeriesStore", server: "ScrapeServer", destination: str) -> None:
        self.destination = destination
        self._store = store
        self._server = server

    def export(self, records: Sequence[Record]) -> None:
        """Take the records in. Raises OSError when nobody can scrape them any more."""
        for record in records:
            self._store.put(record)
        if self._server.error:
            raise OSError(self._server.error)

    def take_over(self, before: Exporter) -> None:
        """Go on with its counters."""
        if isinstance(before, PrometheusExporter):
            self._store.take_over(before._store)  # noqa: SLF001 - of its own kind

    def close(self) -> None:
        """Stop serving."""
        self._server.close()


def make(context: ExporterContext, clock: Clock | None = None) -> PrometheusExporter:
    """Listen and serve. Raises FlagError, AddressInUse and CannotServe, all of them DynologError."""
    store, negotiation = _pages(context, clock or SystemClock())
    # asyncio must not be imported before the daemon has seen to it that ssl stays out.
    from dynolog.exporters.prometheus.server import ScrapeServer, listen  # noqa: PLC0415

    settings = context.settings
    listener = listen(settings.text(ADDRESS.name), settings.integer(PORT.name))
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
    exporter = PrometheusExporter(store, ScrapeServer(listener, negotiation.answer), url)
    _log.info("Prometheus can scrape %s", url)
    return exporter


def check(context: ExporterContext) -> None:
    """Raise the FlagError of flags with which `make` could not serve anywhere. Nothing is listened on."""
    _pages(context, SystemClock())
    from dynolog.exporters.prometheus.server import check_address  # noqa: PLC0415 - as in make

    check_address(context.settings.text(ADDRESS.name))


def _pages(context: ExporterContext, clock: Clock) -> "tuple[SeriesStore, Negotiation]":
    try:
        # 3 MB that only a daemon with this exporter should have.
        from dynolog.exporters.prometheus.library import Negotiation  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _LIBRARY:
            raise
        raise FlagError("--use_prometheus needs the Prometheus client: pip install 'dynolog[prometheus]'") from error
    # The same.
    from dynolog.exporters.prometheus.names import Families  # noqa: PLC0415
    from dynolog.exporters.prometheus.series import SeriesStore  # noqa: PLC0415

    style = context.settings.text(NAMES.name)
    store = SeriesStore(
        context.catalogue,
        Families(context.catalogue, style),
        clock,
        owners=context.owners,
        common_labels={} if style == "standard" else {"host_name": context.hostname},
        hostname=context.hostname,
    )
    return store, Negotiation(store)


SPEC = ExporterSpec(
    name="prometheus",
    summary="metrics for Prometheus to scrape",
    flags=(USE_PROMETHEUS, ADDRESS, PORT, NAMES),
    factory=make,
    check=check,
)
