"""Stores, records and pages for the tests of the Prometheus exporter and its bench."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import Metric as ParsedFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from dynolog.collectors.registry import COLLECTORS
from dynolog.exporters.prometheus.names import Families
from dynolog.exporters.prometheus.series import SeriesStore
from dynolog.exporters.prometheus.text import Pages
from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Catalogue, Kind, Metric, Scope
from dynolog.model.record import Record
from fakes.big_host import build
from fakes.collector_context import HostTree

SECOND_NS = 1_000_000_000
WALL_NS = 1_700_000_000 * SECOND_NS
OWNERS = {(metric.name, metric.scope): spec.name for spec in COLLECTORS for metric in spec.metrics}


RDMA_METRICS = tuple(
    Metric(name=name, kind=Kind.DELTA, unit=unit, description=f"Port counter {name}", scope=Scope.RDMA)
    for name, unit in (
        ("port_xmit_data", "By"),
        ("port_xmit_packets", "{packet}"),
        ("port_xmit_discards", "{packet}"),
        ("port_rcv_data", "By"),
        ("port_rcv_packets", "{packet}"),
        ("port_rcv_errors", "{error}"),
        ("np_cnp_sent", "{packet}"),
        ("rp_cnp_handled", "{packet}"),
        ("np_ecn_marked_roce_packets", "{packet}"),
    )
)


def catalogue() -> Catalogue:
    """What the registered collectors declare, and the fabric metrics that none of them does."""
    declared = [metric for spec in COLLECTORS for metric in spec.metrics]
    names = {(metric.name, metric.scope) for metric in declared}
    return Catalogue([*declared, *(metric for metric in RDMA_METRICS if (metric.name, metric.scope) not in names)])


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 5_000 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return WALL_NS + self.now_ns

    def move(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND_NS)


class Scraped:
    """A store and its pages; `samples` are what a real parser makes of a scrape, by `name{label="text",...}`."""

    def __init__(self, style: str = "standard", metrics: Catalogue | None = None, **owners: str) -> None:
        self.clock = ManualClock()
        metrics = metrics or catalogue()
        self.store = SeriesStore(
            metrics,
            Families(metrics, style),
            self.clock,
            owners=OWNERS,
            common_labels={} if style == "standard" else {"host_name": "h"},
            hostname="h",
        )
        self.pages = Pages(self.store)

    def put(
        self,
        source: str = "kernel",
        *,
        every_s: float = 1.0,
        labels: Mapping[str, str] = {},
        wall_s: float = WALL_NS / SECOND_NS,
        **parts: Any,
    ) -> None:
        """A record whose values come by collector: `put(network={"rx_bytes.eth0": 5})`; "whole" is no collector."""
        values = {key: value for part in parts.values() for key, value in part.items()}
        intervals = {name: round(every_s * SECOND_NS) for name in parts if name != "whole"}
        wall_ns = round(wall_s) * SECOND_NS
        self.store.put(Record(wall_ns=wall_ns, source=source, values=values, labels=labels, intervals_ns=intervals))

    def text(self) -> str:
        return self.pages.page(openmetrics=False, compressed=False).decode()

    def families(self, openmetrics: bool = False) -> dict[str, ParsedFamily]:
        page = self.pages.page(openmetrics=openmetrics, compressed=False).decode()
        parse = parse_openmetrics if openmetrics else parse_text
        return {family.name: family for family in parse(page)}

    def samples(self, openmetrics: bool = False) -> dict[str, float]:
        found: dict[str, float] = {}
        for family in self.families(openmetrics).values():
            for sample in family.samples:
                labels = ",".join(f'{name}="{text}"' for name, text in sorted(sample.labels.items()))
                key = f"{sample.name}{{{labels}}}" if labels else sample.name
                assert key not in found, f"{key} is there twice"
                found[key] = sample.value
        return found


def big_host_records(root: Path) -> list[Record]:
    """One report of 256 CPUs with --per_cpu, 16 NICs, 64 disks and 8 GPUs."""
    tree = HostTree(root)
    context = tree.context(per_cpu=True)
    collectors = {spec.name: spec.factory(context) for spec in COLLECTORS}
    build(tree.root, 0)
    before: dict[str, Any] = {}
    for name, collector in collectors.items():
        with contextlib.suppress(SourceUnavailable):
            before[name] = collector.read()
    build(tree.root, 1)
    values: dict[str, Any] = {}
    for name, first in before.items():
        values.update(collectors[name].compute(first, collectors[name].read(), 1.0))
    intervals = dict.fromkeys(before, SECOND_NS)
    records = [Record(wall_ns=WALL_NS, source="kernel", values=values, intervals_ns=intervals)]
    for device in range(8):
        gpu = {
            metric.name: 0.125 * device + index
            for index, metric in enumerate(GPU_METRICS)
            if metric.scope is Scope.GPU and metric.kind is not Kind.LABEL
        }
        labels = {"device": str(device), "job_id": "90210_2", "username": "ada", "gpu_uuid": f"GPU-{device:032x}"}
        records.append(
            Record(wall_ns=WALL_NS, source="gpu", values=gpu, labels=labels, intervals_ns={"gpu": SECOND_NS})
        )
    return records
