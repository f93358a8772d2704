"""The seam between a device's processes and its records: who uses it, and which labels that gives."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dynolog.model.gpu import GpuReading


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """One job, pod or user on a device.

    `labels` as in a record (`job_id`, `username`, `pod_name`...), `values` what is known for it alone (keys of the catalogue: the memory of
    its processes), `pids` its processes on this device, as the host numbers them.
    """

    labels: Mapping[str, str] = {}
    values: Mapping[str, int | float] = {}
    pids: tuple[int, ...] = ()


class DeviceAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """Who is behind a device or MIG instance.

    `labels` go on the device's own record: those of its one use, or only what all its uses have in common. `uses` lists every one of
    them, for `dyno gpus` too; with two and more, each also gets a record of its own with its labels and values.
    """

    labels: Mapping[str, str] = {}
    uses: tuple[DeviceUse, ...] = ()


class Labelling(Protocol):
    """Tells who is behind a device. Called on a collector's thread after each reading, once for each device and instance."""

    def labels_for(self, reading: GpuReading) -> DeviceAttribution:
        """From `reading.processes` and ids of the device. May read /proc; must not wait for anything, and never raises for a process
        that has gone.
        """
        ...


class NoLabelling:
    """Nobody is known: attribution is off."""

    def labels_for(self, reading: GpuReading) -> DeviceAttribution:
        """The process list alone, as one use without labels."""
        pids = tuple(process.pid for process in reading.processes)
        return DeviceAttribution(uses=(DeviceUse(pids=pids),) if pids else ())
