"""GPUs that are divided into MIG instances."""

from collections.abc import Callable

import pytest

from dynolog.model.gpu import GpuReading, GpuSample
from fakes.nvml.backend_process import BackendProcess

Start = Callable[..., BackendProcess]
GIB = 1 << 30
# GPU 0 has instances 7 and 9, and 11 with two compute instances in it.
DIVIDED: dict[str, object] = {
    "count": 2,
    "gpu.0.mig": 1,
    "gpu.0.mig.0.gi": 7,
    "gpu.0.mig.0.ci": 0,
    "gpu.0.mig.0.memory_used": 2 * GIB,
    "gpu.0.mig.0.memory_total": 20 * GIB,
    "gpu.0.mig.0.memory_reserved": 0,
    "gpu.0.mig.2.gi": 9,
    "gpu.0.mig.2.ci": 0,
    "gpu.0.mig.3.gi": 11,
    "gpu.0.mig.3.ci": 0,
    "gpu.0.mig.4.gi": 11,
    "gpu.0.mig.4.ci": 1,
    "gpu.0.gi.7.gpm.2": 70,
    "gpu.0.gi.9.gpm.2": 90,
    "gpu.0.gi.11.gpm.2": 11,
    "gpu.0.compute": f"100:{GIB}:7:0,200:{2 * GIB}:9:0,201:5:9:0,300:7:11:1,400:9",
    "gpu.*.utilization": 55,
}


def instances(sample: GpuSample) -> dict[tuple[int | None, int | None], GpuReading]:
    return {
        (one.gpu_instance_id, one.compute_instance_id): one
        for one in sample.readings
        if one.gpu_instance_id is not None
    }


def test_one_reading_for_each_instance(opened: Start) -> None:
    """B11: device, instance and compute instance name it, with its own uuid; gaps in the numbering are no error."""
    sample = opened(DIVIDED).sample(0)
    found = instances(sample)
    assert set(found) == {(7, 0), (9, 0), (11, 0), (11, 1)}
    assert {one.device for one in found.values()} == {"0"}
    assert len({one.uuid for one in found.values()}) == 4
    assert all(one.uuid.startswith("MIG-") for one in found.values())
    assert (sample.expected, sample.seen) == (2, 2)


def test_memory_is_the_instances_own_and_utilisation_is_left_out(opened: Start) -> None:
    """B11: NVML has no utilisation in MIG mode, neither of the GPU nor of an instance: missing, not 0."""
    sample = opened(DIVIDED).sample(0)
    instance = instances(sample)[7, 0]
    assert instance.values["gpu_memory_used_bytes"] == 2 * GIB
    assert instance.values["gpu_memory_free_bytes"] == 18 * GIB
    for reading in (instance, sample.readings[0]):
        assert "gpu_device_utilization" not in reading.values
        assert "gpu_memory_utilization" not in reading.values
    assert "gpu_power_draw" in sample.readings[0].values
    assert "gpu_power_draw" not in instance.values
    whole = [reading for reading in sample.readings if reading.device == "1"]
    assert [reading.values["gpu_device_utilization"] for reading in whole] == [55]


def test_activity_is_measured_by_gpu_instance(opened: Start) -> None:
    """Where two compute instances share a GPU instance nobody knows whose activity it is: it is given to neither."""
    backend = opened(DIVIDED)
    backend.sample(0)
    found = instances(backend.sample(10))
    ratios = {ids: one.values.get("sm_active_ratio") for ids, one in found.items()}
    assert ratios == {(7, 0): 0.7, (9, 0): pytest.approx(0.9), (11, 0): None, (11, 1): None}


def test_processes_are_on_their_instance(opened: Start) -> None:
    """The GPU's own reading has those of no instance, and the count of all."""
    sample = opened(DIVIDED).sample(0)
    pids = {ids: [process.pid for process in one.processes] for ids, one in instances(sample).items()}
    assert pids == {(7, 0): [100], (9, 0): [200, 201], (11, 0): [], (11, 1): [300]}
    counts = {ids: one.values["gpu_processes"] for ids, one in instances(sample).items()}
    assert counts == {(7, 0): 1, (9, 0): 2, (11, 0): 0, (11, 1): 1}
    assert [process.pid for process in sample.readings[0].processes] == [400]
    assert sample.readings[0].values["gpu_processes"] == 5


def test_instances_come_and_go(opened: Start) -> None:
    """They are looked for every ten seconds; one that stays keeps its means, and samples of those that go are given back."""
    backend = opened(DIVIDED)
    backend.sample(0)
    assert backend.ask("alive").number == 4 + 2 * 2
    backend.script.set({"gpu.0.mig.2.gi": None, "gpu.0.mig.5.gi": 13, "gpu.0.mig.5.ci": 0})
    found = instances(backend.sample(10))
    assert set(found) == {(7, 0), (11, 0), (11, 1), (13, 0)}
    assert found[7, 0].values["sm_active_ratio"] == 0.7
    assert backend.ask("alive").number == 4 + 2 * 2
    backend.script.set({"gpu.0.mig": 0})
    assert instances(backend.sample(20)) == {}
    assert backend.ask("alive").number == 4


def test_instances_stay_when_they_cannot_be_listed_for_once(opened: Start) -> None:
    backend = opened(DIVIDED)
    backend.sample(0)
    backend.script.set({"fn.nvmlDeviceGetMigMode": "!999"})
    found = instances(backend.sample(10))
    assert len(found) == 4
    assert found[7, 0].values["sm_active_ratio"] == 0.7


def test_instances_of_a_lost_gpu_are_down_with_it(opened: Start) -> None:
    backend = opened(DIVIDED)
    backend.sample(0)
    backend.script.set({"gpu.0.answers": "!15"})
    sample = backend.sample(5)
    assert [reading.is_up for reading in sample.readings] == [False] * 5 + [True]
    assert all("the GPU is lost" in reading.error for reading in sample.readings[:5])
    assert all(reading.values == {} for reading in sample.readings[:5])
    assert (sample.expected, sample.seen) == (2, 1)
