"""Catalogues for tests of OTLP: every metric that the collectors declare, and the fabric metrics of the public Dynolog."""

from dynolog.collectors.registry import COLLECTORS
from dynolog.model.metric import Catalogue, Kind, Metric, Scope

_RDMA = (
    ("port_xmit_packets", "{packet}"),
    ("port_rcv_packets", "{packet}"),
    ("rx_read_requests", "{request}"),
    ("np_cnp_sent", "{packet}"),
)
# By which collector each is given.
OWNERS: dict[tuple[str, Scope], str] = {
    **{(name, Scope.RDMA): "rdma" for name, _ in _RDMA},
    **{(metric.name, metric.scope): spec.name for spec in COLLECTORS for metric in spec.metrics},
}


def full_catalogue() -> Catalogue:
    """Everything; the RDMA metrics come on top where no collector declares them yet."""
    metrics = {(metric.name, metric.scope): metric for spec in COLLECTORS for metric in spec.metrics}
    for name, unit in _RDMA:
        metric = Metric(name=name, kind=Kind.DELTA, unit=unit, description=f"{name} of a port", scope=Scope.RDMA)
        metrics.setdefault((name, Scope.RDMA), metric)
    return Catalogue(metrics.values())


def example_instance(metric: Metric) -> str:
    """A device, CPU or control group that a metric may be about; "" for the host's and a GPU's."""
    if metric.scope in (Scope.HOST, Scope.GPU):
        return ""
    return {Scope.CPU: "7", Scope.NODE: "7", Scope.CGROUP: "/job"}.get(metric.scope, "dev")
