"""The sampler beside traces, and what other parts of the daemon measure at their own interval, in the words of counter tracks."""

from collections.abc import Callable, Mapping

from dynolog.collectors.host_counters import HostCounters
from dynolog.daemon.throttle_bits import throttle_bits
from dynolog.model.clock import Clock
from dynolog.model.gpu import GpuSample
from dynolog.model.host_samples import process_series
from dynolog.model.record import Record
from dynolog.pipeline.host_burst import HostBurst, Sample
from dynolog.sources.host_files import HostFiles

_GPU_TRACKS = {
    "gpu_power_draw": "gpu_power_watts",
    "gpu_frequency_mhz": "gpu_clock_mhz",
    "gpu_frequency_max_mhz": "gpu_clock_max_mhz",
    "gpu_memory_frequency_mhz": "gpu_memory_clock_mhz",
    "gpu_temperature_celsius": "gpu_temperature_celsius",
}
_BANDWIDTH = "membw_bytes_per_s"
_BANDWIDTH_TRACK = "memory_bandwidth_bytes_per_s"


class LatestGpus:
    """The last sample of the GPU monitor. `ask` has a new one made, when that is cheap enough: asking drivers could take whole cores."""

    def __init__(self, clock: Clock, ask: Callable[[], None]) -> None:
        self._clock = clock
        self._ask = ask
        self._latest: Sample | None = None
        self._holders: Sample | None = None

    def put(self, sample: GpuSample | None) -> None:
        """As it comes, None when there is none any more. From any thread."""
        if sample is None:
            self._latest = self._holders = None
            return
        age_ns = int(sample.age_s * 1e9)
        wall_ns, monotonic_ns = self._clock.wall_ns() - age_ns, self._clock.monotonic_ns() - age_ns
        self._latest = Sample(wall_ns, monotonic_ns, 0, gpu_values(sample))
        self._holders = Sample(wall_ns, monotonic_ns, 0, gpu_processes(sample))

    def latest(self) -> Sample | None:
        """The same object until there is a new one, for which this asks."""
        self._ask()
        return self._latest

    def holders(self) -> Sample | None:
        """Which processes have work on which devices; a sample of its own, because they come and go."""
        return self._holders


def gpu_values(sample: GpuSample) -> Mapping[str, float]:
    """Values of whole devices by track."""
    values: dict[str, float] = {}
    for reading in sample.readings:
        if not reading.is_up or reading.gpu_instance_id is not None:
            continue
        for name, track in _GPU_TRACKS.items():
            if isinstance(value := reading.values.get(name), int | float):
                values[f"{track}.{reading.device}"] = float(value)
        if (bits := throttle_bits(sample.backend, reading.values)) is not None:
            values[f"gpu_throttle.{reading.device}"] = float(bits)
    return values


def gpu_processes(sample: GpuSample) -> Mapping[str, float]:
    """1 for each device and process that the driver lists on it, or on a part of it (MIG)."""
    return {
        process_series(reading.device, process.pid): 1.0 for reading in sample.readings for process in reading.processes
    }


class LatestBandwidth:
    """Memory bandwidth of each socket, of the last interval of the perf collector, when it counts that (--perf_metrics=membw)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest: Sample | None = None

    def put(self, record: Record) -> None:
        """Every record. From any thread."""
        interval_ns = record.intervals_ns.get("perf")
        if interval_ns is None:
            return
        values = {
            key.replace(_BANDWIDTH, _BANDWIDTH_TRACK): float(value)
            for key, value in record.values.items()
            if key.startswith(_BANDWIDTH) and isinstance(value, int | float)
        }
        if values:
            # A record comes a moment after its stamp.
            late_ns = self._clock.wall_ns() - record.wall_ns
            self._latest = Sample(
                record.wall_ns - interval_ns, self._clock.monotonic_ns() - late_ns - interval_ns, interval_ns, values
            )

    def latest(self) -> Sample | None:
        """The same object until there is a new one."""
        return self._latest


class HostSampling:
    """All of it, as the daemon is wired."""

    def __init__(self, root: str, clock: Clock, ask_gpus: Callable[[], None]) -> None:
        self.gpus = LatestGpus(clock, ask_gpus)
        self.bandwidth = LatestBandwidth(clock)
        held: tuple[Callable[[], Sample | None], ...] = (self.gpus.latest, self.gpus.holders, self.bandwidth.latest)
        # Made anew for each burst, so that its files are closed between.
        self.burst = HostBurst(lambda: HostCounters(HostFiles(root), clock), clock, held)
