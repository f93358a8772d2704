"""A catalogue with a metric of each kind and scope that selections tell apart."""

from dynolog.model.metric import Catalogue, Kind, Metric, Scope


def metric(name: str, kind: Kind, scope: Scope = Scope.HOST) -> Metric:
    return Metric(name=name, kind=kind, unit="1", description="x", scope=scope)


CATALOGUE = Catalogue(
    (
        metric("cpu_u", Kind.RATIO),
        metric("cpu_u", Kind.RATIO, Scope.NODE),
        metric("cpu_u", Kind.RATIO, Scope.CPU),
        metric("mips", Kind.RATE),
        metric("uptime", Kind.GAUGE),
        metric("rx_bytes", Kind.DELTA, Scope.NIC),
        metric("port_rcv_data", Kind.DELTA, Scope.RDMA),
        metric("gpu_power_draw", Kind.GAUGE, Scope.GPU),
        metric("boot_id", Kind.LABEL),
        metric("gpu_name", Kind.LABEL, Scope.GPU),
    )
)
