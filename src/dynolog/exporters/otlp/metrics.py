"""Records as OTLP metrics, in the official message classes (extra `otlp`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dynolog import __version__
from dynolog.exporters.delivery.payload import Encoder, Payload
from dynolog.exporters.otlp.intervals import Intervals
from dynolog.exporters.otlp.messages import key_values, messages
from dynolog.exporters.otlp.names import LABELS, OtlpName, series_name, unknown_name
from dynolog.model.metric import Catalogue, Kind, Scope
from dynolog.model.record import Record

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint

CONTENT_TYPE = "application/x-protobuf"
# A request of this many points is about 1 MB; receivers refuse 4 MB and more.
_MOST_POINTS = 8192
_MOST_PLANS = 65_536
_INT64 = 1 << 63
_Labels = tuple[tuple[str, str], ...]


class _Plan(msgspec.Struct, frozen=True):
    """How the values of one key become points. `metric` is the metric with one point that lacks only value and times, `point` that
    point; `adds` marks a counter's growth."""

    name: str
    times: int
    over: int
    adds: bool
    collector: str
    metric: Any
    point: Any


class MetricsEncoder:
    """One request for each batch of records. A metric is a gauge, or where its kind is a delta a monotonic sum with a start time:
    the growth over its collector's interval, or with `cumulative` the total since the first record that it has been in without a gap.

    `gauges` sends growths as gauges without a start, as the public Dynolog does. `owners` names the collector of a metric.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        owners: Mapping[tuple[str, Scope], str],
        resource: Mapping[str, str],
        *,
        style: str = "dynolog",
        gauges: bool = False,
        cumulative: bool = False,
    ) -> None:
        self._catalogue = catalogue
        self._owners = owners
        self._style = style
        self._gauges = gauges
        self._messages = messages()
        self._resource = self._messages.resource.Resource(attributes=key_values(resource.items()))
        self._cumulative = cumulative
        sums = self._messages.metrics
        self._temporality = (
            sums.AGGREGATION_TEMPORALITY_CUMULATIVE if cumulative else sums.AGGREGATION_TEMPORALITY_DELTA
        )
        self._intervals = Intervals()
        # By the labels of the record, then by key.
        self._plans: dict[_Labels, dict[str, _Plan | None]] = {}
        self._plan_count = 0

    def take_over(self, before: Encoder) -> None:
        """Go on with its intervals and totals, where totals are of the same unit: names go with units."""
        if isinstance(before, MetricsEncoder) and before._style == self._style:  # noqa: SLF001 - of its own kind
            self._intervals = before._intervals  # noqa: SLF001 - of its own kind

    def encode(self, records: Sequence[Record]) -> Sequence[Payload]:
        """Payloads of some 8,000 points at most, a record never split."""
        payloads: list[Payload] = []
        request = _Request(self._messages, self._resource)
        for record in records:
            self._add(record, request)
            if request.points >= _MOST_POINTS:
                payloads.extend(request.payloads())
                request = _Request(self._messages, self._resource)
        payloads.extend(request.payloads())
        return payloads

    def _add(self, record: Record, request: "_Request") -> None:
        request.records += 1
        labels = tuple(record.labels.items())
        plans = self._plans.get(labels)
        if plans is None:
            plans = self._plans[labels] = {}
        # Collectors that gave no counter this time have had their interval as well.
        intervals = {collector: self._intervals.of(record, collector) for collector in record.intervals_ns}
        wall_ns = record.wall_ns
        for key, value in record.values.items():
            # The difference is not 0 for infinities and NaN.
            if isinstance(value, str) or value - value != 0:
                continue
            try:
                plan = plans[key]
            except KeyError:
                plan = plans[key] = self._plan(key, labels)
            if plan is None or (plan.adds and value < 0):
                continue
            # OtlpName.value without the call.
            number = value * plan.times if plan.over == 1 else value * plan.times / plan.over
            point = request.point(plan)
            if plan.adds:
                interval = intervals.get(plan.collector)
                if interval is None:
                    interval = intervals[plan.collector] = self._intervals.of(record, plan.collector)
                start_ns = interval.start_ns
                if self._cumulative:
                    start_ns, number = interval.totals.add(key, number, start_ns)
                point.start_time_unix_nano = start_ns
            point.time_unix_nano = wall_ns
            if isinstance(number, int) and -_INT64 <= number < _INT64:
                point.as_int = number
            else:
                point.as_double = number

    def _plan(self, key: str, labels: _Labels) -> _Plan | None:
        self._plan_count += 1
        if self._plan_count >= _MOST_PLANS:  # devices and jobs that come and go must not fill memory
            self._plans.clear()
            self._plan_count = 0
        series = self._catalogue.resolve(key)
        if series is None:
            return self._planned(unknown_name(key, self._style), "", False, "", labels)
        metric = series.metric
        if metric.kind is Kind.LABEL:
            return None
        adds = metric.kind is Kind.DELTA and not self._gauges
        owner = self._owners.get((metric.name, metric.scope), "")
        return self._planned(series_name(series, self._style), metric.description, adds, owner, labels)

    def _planned(self, name: OtlpName, description: str, adds: bool, collector: str, labels: _Labels) -> _Plan:
        attributes = dict(name.attributes)
        renamed = LABELS[self._style]
        for label, value in labels:
            if attribute := renamed.get(label, label):
                attributes.setdefault(attribute, value)
        point = self._messages.metrics.NumberDataPoint(attributes=key_values(attributes.items()))
        metric = self._messages.metrics.Metric(name=name.name, unit=name.unit, description=description)
        if adds:
            metric.sum.is_monotonic = True
            metric.sum.aggregation_temporality = self._temporality
        (metric.sum if adds else metric.gauge).data_points.append(point)
        return _Plan(name.name, name.times, name.over, adds, collector, metric, point)


class _Request:
    """A request that grows: the points of one metric stand together, whatever record they are from."""

    def __init__(self, found: Any, resource: Any) -> None:
        self._request: ExportMetricsServiceRequest = found.metrics_service.ExportMetricsServiceRequest()
        of_resource = self._request.resource_metrics.add()
        of_resource.resource.CopyFrom(resource)
        scope = of_resource.scope_metrics.add()
        scope.scope.name = "dynolog"
        scope.scope.version = __version__
        self._new_metric = scope.metrics.add
        self._adders: dict[str, Callable[[], NumberDataPoint]] = {}
        self.points = 0
        self.records = 0

    def point(self, plan: _Plan) -> "NumberDataPoint":
        """A new point, without value and times."""
        self.points += 1
        add = self._adders.get(plan.name)
        if add is not None:
            point = add()
            point.CopyFrom(plan.point)
            return point
        metric = self._new_metric()
        metric.CopyFrom(plan.metric)
        points = metric.sum.data_points if plan.adds else metric.gauge.data_points
        self._adders[plan.name] = points.add
        first: NumberDataPoint = points[0]
        return first

    def payloads(self) -> list[Payload]:
        """The request as a payload; none when there is no point in it."""
        if not self.points:
            return []
        return [Payload(body=self._request.SerializeToString(), records=self.records, content_type=CONTENT_TYPE)]
