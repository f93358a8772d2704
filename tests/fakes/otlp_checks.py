"""What a strict OTLP receiver demands of metrics and log records; it remembers streams, and says everything that is wrong."""

import math
import re
from collections.abc import Iterable

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    Metric,
    NumberDataPoint,
)

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-/]{0,254}")
# UCUM, as far as it is used here.
UNIT = re.compile(r"(1|[kMG]?(By|bit|Hz|W|J|s|Cel|rpm)|[mun]s|\{[a-z_]+\})(/(s|min))?")
YEAR_2000_NS, YEAR_2100_NS = 946_684_800 * 10**9, 4_102_444_800 * 10**9
Attributes = frozenset[tuple[str, str]]


def attribute_faults(attributes: Iterable[KeyValue], where: str) -> list[str]:
    keys = [pair.key for pair in attributes]
    faults = [f"{where}: attribute without a key"] if "" in keys else []
    faults += [f"{where}: attribute {key} twice" for key in {key for key in keys if keys.count(key) > 1}]
    faults += [
        f"{where}: attribute {pair.key} has no value" for pair in attributes if pair.value.WhichOneof("value") is None
    ]
    return faults


def identity(attributes: Iterable[KeyValue]) -> Attributes:
    return frozenset((pair.key, str(plain(pair.value))) for pair in attributes)


def plain(value: AnyValue) -> object:
    """An attribute's value as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def number(point: NumberDataPoint) -> int | float:
    """A point's value."""
    return point.as_int if point.WhichOneof("value") == "as_int" else point.as_double


class StrictMetrics:
    """Looks at each request of one sender, in order; `faults` collects what is wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._forms: dict[str, tuple[object, ...]] = {}
        self._last: dict[tuple[str, Attributes], NumberDataPoint] = {}

    def look(self, request: ExportMetricsServiceRequest) -> None:
        if not request.resource_metrics:
            self.faults.append("a request with nothing in it")
        for of_resource in request.resource_metrics:
            resource = {pair.key: plain(pair.value) for pair in of_resource.resource.attributes}
            self.faults += attribute_faults(of_resource.resource.attributes, "resource")
            self.faults += [f"resource: no {key}" for key in ("service.name", "host.name") if not resource.get(key)]
            for scope in of_resource.scope_metrics:
                if not scope.scope.name:
                    self.faults.append("a scope without a name")
                names = [metric.name for metric in scope.metrics]
                self.faults += [f"{name}: twice in a request" for name in set(names) if names.count(name) > 1]
                for metric in scope.metrics:
                    self._metric(metric)

    def _metric(self, metric: Metric) -> None:
        name, kind = metric.name, metric.WhichOneof("data")
        if not NAME.fullmatch(name):
            self.faults.append(f"{name!r}: no legal name")
        if not UNIT.fullmatch(metric.unit):
            self.faults.append(f"{name}: unit {metric.unit!r}")
        if not metric.description:
            self.faults.append(f"{name}: no description")
        if kind not in ("gauge", "sum"):
            self.faults.append(f"{name}: {kind}")
            return
        form: tuple[object, ...] = (kind, metric.unit)
        if kind == "sum":
            form += (metric.sum.is_monotonic, metric.sum.aggregation_temporality)
            if metric.sum.aggregation_temporality not in (
                AGGREGATION_TEMPORALITY_DELTA,
                AGGREGATION_TEMPORALITY_CUMULATIVE,
            ):
                self.faults.append(f"{name}: a sum without temporality")
        if self._forms.setdefault(name, form) != form:
            self.faults.append(f"{name}: was {self._forms[name]}, is {form}")
        points = metric.sum.data_points if kind == "sum" else metric.gauge.data_points
        if not points:
            self.faults.append(f"{name}: no points")
        for point in points:
            self._point(metric, point)

    def _point(self, metric: Metric, point: NumberDataPoint) -> None:
        name = metric.name
        self.faults += attribute_faults(point.attributes, name)
        if point.WhichOneof("value") is None or not math.isfinite(number(point)):
            self.faults.append(f"{name}: value {point.WhichOneof('value')} {number(point)}")
        if not YEAR_2000_NS < point.time_unix_nano < YEAR_2100_NS:
            self.faults.append(f"{name}: time {point.time_unix_nano}")
        key = (name, identity(point.attributes))
        before = self._last.get(key)
        if before is not None and before.time_unix_nano >= point.time_unix_nano:
            self.faults.append(f"{key}: two points at {point.time_unix_nano}, or one that is older than the one before")
        if metric.WhichOneof("data") == "sum":
            self._sum_point(metric, point, before)
        elif point.start_time_unix_nano:
            self.faults.append(f"{name}: a gauge with a start time")
        self._last[key] = point

    def _sum_point(self, metric: Metric, point: NumberDataPoint, before: NumberDataPoint | None) -> None:
        name, start_ns = metric.name, point.start_time_unix_nano
        if not 0 < start_ns < point.time_unix_nano:
            self.faults.append(f"{name}: start {start_ns}, time {point.time_unix_nano}")
        if number(point) < 0:
            self.faults.append(f"{name}: a monotonic sum of {number(point)}")
        if before is None:
            return
        if metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA:
            if start_ns < before.time_unix_nano:
                self.faults.append(f"{name}: intervals overlap")
        elif start_ns == before.start_time_unix_nano:
            if number(point) < number(before):
                self.faults.append(
                    f"{name}: a total that fell from {number(before)} to {number(point)} without a new start"
                )
        elif start_ns < before.time_unix_nano:
            self.faults.append(f"{name}: a new total begins before the old one ended")


class StrictLogs:
    """The same for log records."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def look(self, request: ExportLogsServiceRequest) -> None:
        for of_resource in request.resource_logs:
            self.faults += attribute_faults(of_resource.resource.attributes, "resource")
            for scope in of_resource.scope_logs:
                if not scope.scope.name:
                    self.faults.append("a scope without a name")
                for record in scope.log_records:
                    self.faults += attribute_faults(record.attributes, "log record")
                    if not YEAR_2000_NS < record.time_unix_nano < YEAR_2100_NS:
                        self.faults.append(f"log record: time {record.time_unix_nano}")
                    for pair in record.attributes:
                        value = plain(pair.value)
                        if isinstance(value, float) and not math.isfinite(value):
                            self.faults.append(f"log record: {pair.key} is {value}")
        if not request.resource_logs:
            self.faults.append("a request with nothing in it")
