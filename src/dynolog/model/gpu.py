"""What an accelerator says about itself: the one form in which every backend (DCGM, NVML, AMD, Intel) answers.

A backend runs in a child process; these are the messages that come back, so nothing here does I/O.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from dynolog.model.metric import Metric


class ProfilingState(StrEnum):
    """Whether the profiling counters (SM, tensor, DRAM activity) are being read."""

    ON = "on"
    OFF = "off"  # nothing of them was asked for, or no device has them
    PAUSED = "paused"  # a person asked: another tool may use the hardware
    TAKEN = "taken"  # another user of the profiling hardware holds it


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that uses a device. `pid` is the host's; memory in bytes, None when the driver does not say."""

    pid: int
    used_memory_bytes: int | None = None
    is_compute: bool = True


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """One device, or one MIG instance of it, at one moment.

    `device` is the number by which records and people name the whole device (DCGM entity id, NVML index); an instance has its
    parent's, and its own `gpu_instance_id` and `compute_instance_id`. `values` are gauges, ratios and rates ready for a record, in
    the unit of the catalogue; `counters` only grow (since the driver started), and the collector makes deltas of them. Keys of both are
    keys of the catalogue (`gpu_power_draw`, `xid_errors.31`). What is blank, unsupported or failed is a missing key. A device
    that is known but cannot be read has `is_up` False and says why in `error`.
    """

    device: str
    uuid: str = ""
    name: str = ""
    pci_bus_id: str = ""
    minor: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    is_up: bool = True
    error: str = ""
    values: Mapping[str, int | float | str] = {}
    counters: Mapping[str, int | float] = {}
    processes: tuple[GpuProcess, ...] = ()

    @property
    def identity(self) -> tuple[str, str, int | None, int | None]:
        """What tells this device or instance from every other one, also after a replaced card."""
        return (self.device, self.uuid, self.gpu_instance_id, self.compute_instance_id)


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """All devices of one backend at one moment.

    `expected` is the number of whole devices that are known to be in the machine (the most ever seen, or what PCI shows), `seen` those
    that answered. `declared` are metrics that the catalogue does not have yet (any field that DCGM describes). `notices` are
    (key, sentence) pairs for a person, each said once. `age_s` is the age of the oldest value in it.
    """

    backend: str
    readings: tuple[GpuReading, ...] = ()
    expected: int = 0
    seen: int = 0
    driver_version: str = ""
    library_version: str = ""
    profiling: ProfilingState = ProfilingState.OFF
    profiling_why: str = ""
    blank_values: int = 0
    declared: tuple[Metric, ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    age_s: float = 0.0
