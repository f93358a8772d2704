"""The store as the client library sees it: a registry of its own with one collector, never the global registry."""

import gzip
from collections.abc import Callable, Iterator, Sequence

import prometheus_client.exposition as library
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from dynolog.exporters.prometheus.names import Family
from dynolog.exporters.prometheus.series import SeriesStore
from dynolog.exporters.prometheus.text import Pages

_OPENMETRICS = "application/openmetrics-text"


class StoreCollector(Collector):
    """Families of the store as the library's metrics."""

    def __init__(self, store: SeriesStore) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        """Every family that there may be, without samples; the registry refuses two of one name."""
        return [_metric(family) for family in self._store.families]

    def collect(self) -> Iterator[Metric]:
        """Every family that has samples."""
        with self._store.lock:
            metrics = []
            for family, samples in self._store.view().families:
                metric = _metric(family)
                for sample in samples:
                    metric.add_sample(family.sample, sample.labels, sample.scaled)
                metrics.append(metric)
        return iter(metrics)


def _metric(family: Family) -> Metric:
    return Metric(family.name, family.help, str(family.type), family.unit)


class Negotiation:
    """What a scraper gets for its headers: ours for the two formats that Prometheus asks for, else the library's."""

    def __init__(self, store: SeriesStore) -> None:
        self.pages = Pages(store)
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(StoreCollector(store))

    def answer(
        self, accept: str, accept_encoding: str, names: Sequence[str] = ()
    ) -> tuple[list[tuple[str, str]], bytes]:
        """Headers and body. `names` restricts it to some families, as the library's `name[]` does."""
        encode: Callable[[Collector], bytes]
        try:
            encode, content_type = library.choose_encoder(accept)
        except (TypeError, ValueError):
            # A version that is no number breaks the library; whoever sends one gets what everybody understands.
            encode, content_type = library.choose_encoder("")
        compressed = library.gzip_accepted(accept_encoding)
        kind = [("Content-Type", content_type), ("Vary", "Accept, Accept-Encoding")]
        if compressed:
            kind.append(("Content-Encoding", "gzip"))
        if names:
            body = encode(self.registry.restricted_registry(list(names)))
            return kind, gzip.compress(body) if compressed else body
        # All our names are legal in every version, so escaping changes nothing, and later versions of both formats are the same for
        # gauges, counters and infos.
        openmetrics = content_type.startswith(_OPENMETRICS)
        return kind, self.pages.page(openmetrics=openmetrics, compressed=compressed)
