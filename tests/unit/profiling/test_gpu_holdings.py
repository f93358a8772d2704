"""Trainers and their GPUs: who is meant by --gpu, who is preferred, and what views show."""

from typing import Any

import pytest

from dynolog.model.gpu import GpuProcess, GpuReading, GpuSample
from dynolog.model.held_gpu import HeldGpu
from dynolog.profiling.gpu_holdings import listed_by_pid
from fakes.profiling import FakeService, facts


def sample(*readings: tuple[str, tuple[int, ...]], **more: Any) -> GpuSample:
    """Devices with the host pids on each."""
    return GpuSample(
        backend="nvml",
        readings=tuple(
            GpuReading(
                device=device,
                uuid=f"GPU-8f6e0c1{device}-aaaa",
                processes=tuple(GpuProcess(pid=pid) for pid in pids),
                **more,
            )
            for device, pids in readings
        ),
    )


def chosen(service: FakeService, **request: Any) -> list[int]:
    return list(service.ask(dry_run=True, **request).triggered)


def test_a_device_is_meant_by_number_or_uuid(service: FakeService) -> None:
    for pid in (10, 11, 12):
        service.trainer(facts(pid))
    service.service.gpus.put(sample(("0", (10,)), ("1", (11, 77))))
    assert chosen(service, gpus=("0",)) == [10]
    assert chosen(service, gpus=("0", "1")) == [10, 11]
    assert chosen(service, gpus=("gpu-8f6e0c11-AAAA",)) == [11]
    assert chosen(service, gpus=("GPU-8f6e0c11",)) == [11]
    assert chosen(service) == [10, 11, 12]


def test_when_nobody_holds_it_the_answer_says_who_holds_what(service: FakeService) -> None:
    """An empty match has a reason."""
    service.trainer(facts(10, gpus=("0",)))
    service.trainer(facts(11))
    outcome = service.ask(gpus=("7",))
    assert outcome.no_match_code == "no_gpu"
    assert "no trainer that matches holds GPU 7. Held: GPU 0: pid 10." in outcome.no_match_reason
    service.end(10)
    assert "No trainer is known to hold one" in service.ask(gpus=("7",)).no_match_reason


def test_open_device_files_count_where_no_monitor_asks_the_driver(service: FakeService) -> None:
    service.trainer(facts(10, gpus=("0", "1")))
    service.trainer(facts(11, gpus=("1",)))
    assert chosen(service, gpus=("0",)) == [10]
    assert [info.gpus for info in service.service.trainers()] == [("0", "1"), ("1",)]


def test_the_drivers_list_wins_over_open_files(service: FakeService) -> None:
    """Counting the devices opens the files of all."""
    service.trainer(facts(10, gpus=("0", "1")))
    service.service.gpus.put(sample(("1", (10,))))
    assert [info.gpus for info in service.service.trainers()] == [("1",)]
    assert service.ask(gpus=("0",)).no_match_code == "no_gpu"
    service.service.gpus.put(None)
    assert [info.gpus for info in service.service.trainers()] == [("0", "1")]


def test_a_gpu_that_was_opened_after_the_first_look_is_found(service: FakeService) -> None:
    service.trainer(facts(10))
    service.reader.processes[10] = facts(10, gpus=("3",))
    assert chosen(service, gpus=("3",)) == [10]


def test_a_process_limit_never_goes_to_launchers_that_only_counted_the_devices(service: FakeService) -> None:
    """A08: a tree 6 → 90 → 355 → {389, 390} of which all have the files open and only the last two compute."""
    service.trainer(facts(6, gpus=("0", "1"), command="python run.py"))
    service.trainer(facts(90, ancestors=((6,), (1,)), gpus=("0", "1"), command="python run.py"))
    service.trainer(facts(355, ancestors=((90,), (6,), (1,)), gpus=("0", "1"), command="python run.py"))
    for pid in (389, 390):
        service.trainer(facts(pid, ancestors=((355,), (90,), (6,), (1,)), gpus=("0", "1")))
    service.service.gpus.put(sample(("0", (389,)), ("1", (390,))))
    assert chosen(service, process_limit=5) == [389, 390]
    assert chosen(service, process_limit=2, include_launchers=True) == [389, 390]
    assert chosen(service, process_limit=1, include_launchers=True) == [389]


def test_a_parent_that_computes_on_a_gpu_is_no_launcher_though_its_children_do_too(service: FakeService) -> None:
    service.trainer(facts(10, gpus=("0",)))
    service.trainer(facts(11, ancestors=((10,), (1,)), gpus=("0",)))
    assert chosen(service) == [11]
    service.service.gpus.put(sample(("0", (10, 11))))
    assert chosen(service) == [10, 11]


def test_a_pid_that_a_process_claims_is_never_looked_up_among_the_drivers(service: FakeService) -> None:
    """A09: pid 7 of a container is not the host's pid 7, and a pid 0 of the driver's is nobody."""
    service.trainer(facts(500, inner=(7,), namespace=8), 7)
    service.poll(0, 7, host_pid=0, socket=1)
    service.service.gpus.put(sample(("0", (7, 0)), ("1", (500,))))
    assert [(info.host_pid, info.gpus) for info in service.service.trainers()] == [(500, ("1",)), (0, ())]


def test_a_process_in_a_mig_instance_holds_that_and_not_the_device_around_it() -> None:
    whole = GpuReading(device="0", uuid="GPU-a", processes=(GpuProcess(pid=5), GpuProcess(pid=6)))
    instance = GpuReading(device="0", uuid="MIG-b", gpu_instance_id=3, processes=(GpuProcess(pid=5),))
    found = listed_by_pid(GpuSample(backend="nvml", readings=(whole, instance)))
    assert [gpu.text for gpu in found[5]] == ["0/gi3"]
    assert [gpu.text for gpu in found[6]] == ["0"]


@pytest.mark.parametrize(
    ("name", "means"), [("0", True), ("0/gi3", True), ("MIG-1234", True), ("MIG-123", False), ("1", False), ("", False)]
)
def test_what_a_person_may_call_a_device(name: str, means: bool) -> None:
    assert HeldGpu(device="0", uuid="MIG-1234-5", gpu_instance_id=3).answers_to(name) is means
