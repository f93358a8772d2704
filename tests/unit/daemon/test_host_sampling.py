"""What GPUs and memory controllers say beside a trace, in the words of counter tracks."""

import pytest

from dynolog.daemon.host_sampling import LatestBandwidth, LatestGpus
from dynolog.daemon.throttle_bits import throttle_bits
from dynolog.model.gpu import GpuProcess, GpuReading, GpuSample
from dynolog.model.record import Record
from fakes.profiling import ManualClock


def test_gpus_are_as_they_were_last_measured_at_that_moment() -> None:
    """Each look asks for new values. Instances of a device and devices that are lost have no track; what is not known is missing."""
    clock = ManualClock()
    asked: list[int] = []
    gpus = LatestGpus(clock, lambda: asked.append(1))
    assert gpus.latest() is None
    assert len(asked) == 1
    readings = (
        GpuReading(
            device="0", values={"gpu_power_draw": 310.5, "gpu_frequency_mhz": 1200, "gpu_clock_event_reasons": 128}
        ),
        GpuReading(device="1", values={"gpu_power_draw": 70}),
        GpuReading(device="1", gpu_instance_id=3, values={"gpu_power_draw": 7}),
        GpuReading(device="2", is_up=False, error="lost", values={"gpu_power_draw": 1}),
    )
    gpus.put(GpuSample(backend="nvml", readings=readings, age_s=0.25))
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


def test_processes_are_named_with_their_devices_as_of_the_last_sample() -> None:
    clock = ManualClock()
    gpus = LatestGpus(clock, lambda: None)

    def put(*pids: int) -> None:
        whole = GpuReading(device="5", processes=tuple(GpuProcess(pid=pid) for pid in pids))
        part = GpuReading(device="6", gpu_instance_id=2, processes=(GpuProcess(pid=900),))
        gpus.put(GpuSample(backend="nvml", readings=(whole, part)))

    put(77)
    first = gpus.holders()
    assert first is not None
    assert first.values == {"gpu_process.5.77": 1.0, "gpu_process.6.900": 1.0}
    clock.pass_s(120)
    put(77, 78)
    others = gpus.holders()
    assert others is not None
    assert "gpu_process.5.78" in others.values
    assert others.wall_ns == clock.wall_ns(), "old ones would be taken for out of date"
    gpus.put(None)
    assert gpus.holders() is None


@pytest.mark.parametrize(
    ("backend", "values", "bits"),
    [
        ("nvml", {"gpu_clock_event_reasons": 0x88}, 0x88),
        # DCGM names only some of its bits: they are NVML's as they are.
        ("dcgm", {"gpu_clock_event_reasons": 0x81, "gpu_throttle_active.hw_power_brake": 1}, 0x81),
        # amdgpu has a numbering of its own: its bit 7 is a power limit, no power brake, and heat is above 32.
        ("amd", {"gpu_clock_event_reasons": 0x80, "gpu_throttle_active.power": 1, "gpu_throttle_active.thermal": 0}, 4),
        ("amd", {"gpu_clock_event_reasons": 1 << 34, "gpu_throttle_active.hbm_thermal": 1}, 0x40),
        ("intel", {"gpu_throttle_active.pl1": 1, "gpu_throttle_active.prochot": 1}, 0x0C),
        ("intel", {"gpu_throttle_active.thermal": 0}, 0),
        ("intel", {"gpu_frequency_mhz": 900}, None),
    ],
)
def test_reasons_of_every_maker_are_in_the_bits_of_nvml(backend: str, values: dict[str, int], bits: int | None) -> None:
    assert throttle_bits(backend, values) == bits


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
