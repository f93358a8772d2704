"""What GPUs and memory controllers say beside a trace, in the words of counter tracks."""

from dynolog.daemon.host_sampling import LatestBandwidth, LatestGpus
from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.model.record import Record
from fakes.profiling import ManualClock


def test_gpus_are_as_they_were_last_measured_at_that_moment() -> None:
    """No driver is asked for it. Instances of a device and devices that are lost have no track; what is not known is missing."""
    clock = ManualClock()
    gpus = LatestGpus(clock)
    assert gpus.latest() is None
    readings = (
        GpuReading(
            device="0", values={"gpu_power_draw": 310.5, "gpu_frequency_mhz": 1200, "gpu_clock_event_reasons": 128}
        ),
        GpuReading(device="1", values={"gpu_power_draw": 70}),
        GpuReading(device="1", gpu_instance_id=3, values={"gpu_power_draw": 7}),
        GpuReading(device="2", is_up=False, error="lost", values={"gpu_power_draw": 1}),
    )
    gpus.put(GpuSample(backend="fake", readings=readings, age_s=0.25))
    measured_ns = clock.wall_ns() - 250_000_000
    clock.pass_s(3)
    latest = gpus.latest()
    assert latest is not None
    assert (latest.wall_ns, latest.elapsed_ns) == (measured_ns, 0)
    assert latest.values == {
        "gpu_power_watts.0": 310.5,
        "gpu_clock_mhz.0": 1200.0,
        "gpu_throttle.0": 128.0,
        "gpu_power_watts.1": 70.0,
    }
    assert gpus.latest() is latest
    gpus.put(None)
    assert gpus.latest() is None


def test_memory_bandwidth_is_of_the_interval_of_its_collector() -> None:
    clock = ManualClock()
    bandwidth = LatestBandwidth(clock)
    bandwidth.put(Record(wall_ns=clock.wall_ns(), source="kernel", values={"cpu_u": 3.0}, intervals_ns={"cpu": 10**9}))
    assert bandwidth.latest() is None
    values = {
        "membw_bytes_per_s": 3e9,
        "membw_bytes_per_s.0": 1e9,
        "membw_bytes_per_s.1": 2e9,
        "membw_read_bytes_per_s": 5.0,
    }
    bandwidth.put(Record(wall_ns=clock.wall_ns(), source="kernel", values=values, intervals_ns={"perf": 10**9}))
    latest = bandwidth.latest()
    assert latest is not None
    assert (latest.wall_ns, latest.elapsed_ns) == (clock.wall_ns() - 10**9, 10**9)
    assert latest.values == {
        "memory_bandwidth_bytes_per_s": 3e9,
        "memory_bandwidth_bytes_per_s.0": 1e9,
        "memory_bandwidth_bytes_per_s.1": 2e9,
    }
