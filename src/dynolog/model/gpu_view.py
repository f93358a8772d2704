"""Devices and their source as people see them (`dyno gpus`, `dyno status`)."""

from collections.abc import Mapping

import msgspec

from dynolog.model.gpu import ProfilingState


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """A job, pod or user on a device: its labels (`job_id`, `username`, `pod_name`...), its pids on the host, and its values."""

    labels: Mapping[str, str] = {}
    pids: tuple[int, ...] = ()
    values: Mapping[str, int | float] = {}


class GpuDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device or MIG instance: its labels, its latest values by key of the catalogue, and its counters since the driver started.

    `is_up` False: it is known to be there and does not answer, `error` says why.
    """

    subject: str
    labels: Mapping[str, str]
    values: Mapping[str, int | float | str]
    counters: Mapping[str, int | float] = {}
    is_up: bool = True
    error: str = ""
    uses: tuple[GpuUse, ...] = ()


class GpuStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The source of all of them. `backend` is "" while none is open; `why` is what is wrong, in a sentence, or "".

    `notes` tell what was chosen and what happened. `paused_until_wall_ns` is 0 unless profiling is paused.
    """

    enabled: bool
    backend: str = ""
    why: str = ""
    driver_version: str = ""
    library_version: str = ""
    expected: int = 0
    seen: int = 0
    profiling: ProfilingState = ProfilingState.OFF
    profiling_why: str = ""
    paused_until_wall_ns: int = 0
    notes: tuple[str, ...] = ()
