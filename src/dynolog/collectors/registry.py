"""Every collector, in the order in which they run in a round; `own` is last, to see what the others did in it."""

from dynolog.collectors import (
    activity,
    cpu,
    cpu_frequency,
    edac,
    interrupts,
    load,
    memory,
    numa,
    own,
    pcie_aer,
    pressure,
    rapl,
    sensors,
    thermal_throttle,
    uptime,
    vmstat,
)
from dynolog.collectors.spec import CollectorSpec

COLLECTORS: tuple[CollectorSpec, ...] = (
    cpu.SPEC,
    activity.SPEC,
    memory.SPEC,
    vmstat.SPEC,
    load.SPEC,
    uptime.SPEC,
    pressure.SPEC,
    interrupts.SPEC,
    cpu_frequency.SPEC,
    thermal_throttle.SPEC,
    numa.SPEC,
    edac.SPEC,
    pcie_aer.SPEC,
    sensors.SPEC,
    rapl.SPEC,
    own.SPEC,
)
