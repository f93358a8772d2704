"""Every collector, in the order in which they run in a round; `own` is last, to see what the others did in it."""

from dynolog.collectors import (
    activity,
    cpu,
    cpu_frequency,
    disk,
    edac,
    ethtool,
    filesystem,
    gpu,
    interrupts,
    load,
    memory,
    network,
    numa,
    own,
    pcie_aer,
    perf,
    pressure,
    rapl,
    rdma,
    sensors,
    sockets,
    tcp_udp,
    thermal_throttle,
    tpu,
    uptime,
    vmstat,
)
from dynolog.collectors.spec import CollectorSpec
from dynolog.model.metric import Catalogue

COLLECTORS: tuple[CollectorSpec, ...] = (
    cpu.SPEC,
    activity.SPEC,
    memory.SPEC,
    vmstat.SPEC,
    load.SPEC,
    uptime.SPEC,
    pressure.SPEC,
    interrupts.SPEC,
    network.SPEC,
    rdma.SPEC,
    ethtool.SPEC,
    tcp_udp.SPEC,
    sockets.SPEC,
    disk.SPEC,
    filesystem.SPEC,
    cpu_frequency.SPEC,
    thermal_throttle.SPEC,
    numa.SPEC,
    edac.SPEC,
    pcie_aer.SPEC,
    sensors.SPEC,
    rapl.SPEC,
    perf.SPEC,
    gpu.SPEC,
    tpu.SPEC,
    own.SPEC,
)


def declared_catalogue() -> Catalogue:
    """All metrics that these collectors declare."""
    return Catalogue(metric for spec in COLLECTORS for metric in spec.metrics)
