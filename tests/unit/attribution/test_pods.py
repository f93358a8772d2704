"""Pods joined on devices, and what becomes of it when the kubelet is away."""

import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.attribution.pod_device_ids import DeviceKey, key_of_id, keys_of_reading
from dynolog.attribution.pods import EVERY_S, GOOD_FOR_S, GPU_RESOURCES, Pods, kubelet
from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading
from dynolog.sources.pod_resources_messages import ContainerDevices
from fakes.kubelet import FakeKubelet, response

UUID = "GPU-8f6e0c1d-4d2a-5b3c-9e7f-0123456789ab"
MIG = "MIG-11aa22bb-4d2a-5b3c-9e7f-0123456789ab"
DEADLINE_S = 30.0


@pytest.mark.parametrize(
    ("device_id", "key"),
    [
        (UUID, DeviceKey("uuid", UUID.lower())),
        (f"{UUID}::3", DeviceKey("uuid", UUID.lower())),
        (MIG, DeviceKey("uuid", MIG.lower())),
        (f"{MIG}::0", DeviceKey("uuid", MIG.lower())),
        (f"MIG-{UUID}/3/0", DeviceKey("uuid", UUID.lower(), 3)),
        ("nvidia0", DeviceKey("file", "0")),
        ("nvidia12/gi1", DeviceKey("file", "12", 1)),
        ("nvidia0/vgpu2", DeviceKey("file", "0")),
        ("nvidia0/gi1/vgpu0", DeviceKey("file", "0", 1)),
        ("0000:0C:00.0", DeviceKey("pci", "0:0c:00.0")),
        ("3", DeviceKey("number", "3")),
        ("tpu-7", DeviceKey("uuid", "tpu-7")),
    ],
)
def test_ids_of_device_plugins(device_id: str, key: DeviceKey) -> None:
    assert key_of_id(device_id) == key


@given(st.text(), st.integers(0, 99))
def test_every_id_is_a_key_and_a_sharers_number_does_not_matter(device_id: str, sharer: int) -> None:
    key_of_id(device_id)
    assert key_of_id(f"{UUID}::{sharer}") == key_of_id(UUID)


def test_a_device_has_all_the_names_that_plugins_use() -> None:
    whole = GpuReading(device="2", uuid=UUID, minor=5, pci_bus_id="00000000:0C:00.0")
    for device_id in (UUID, "nvidia5", "0000:0c:00.0", "2"):
        assert key_of_id(device_id) in keys_of_reading(whole, UUID)
    instance = GpuReading(device="2", uuid=MIG, minor=5, gpu_instance_id=3, pci_bus_id="00000000:0C:00.0")
    names = keys_of_reading(instance, UUID)
    for device_id in (MIG, "nvidia5/gi3", f"MIG-{UUID}/3/0"):
        assert key_of_id(device_id) in names
    for device_id in (UUID, "nvidia5", "0000:0c:00.0", "2", "nvidia5/gi4"):
        assert key_of_id(device_id) not in names


class Kubelet:
    """Answers what a test says, and time stands still."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.answer: tuple[ContainerDevices, ...] | Exception = ()
        self.pods = Pods(GPU_RESOURCES, self.ask, lambda: self.now)

    def ask(self) -> tuple[ContainerDevices, ...]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def of(self, reading: GpuReading) -> list[dict[str, str]]:
        """What is known after a question was answered."""
        self.pods.of(reading)
        assert self.pods.wait(DEADLINE_S)
        return [dict(labels) for labels in self.pods.of(reading)]


def has(pod: str, *ids: str, resource: str = "nvidia.com/gpu") -> ContainerDevices:
    return ContainerDevices(namespace="research", pod=pod, container="main", resource=resource, device_ids=ids)


def labels(pod: str) -> dict[str, str]:
    return {"pod_namespace": "research", "pod_name": pod, "container_name": "main"}


GPU = GpuReading(device="0", uuid=UUID, minor=0)
SLICE = GpuReading(device="0", uuid=MIG, minor=0, gpu_instance_id=3)


def test_a_device_is_its_pods_from_the_first_answer_on() -> None:
    kubelet = Kubelet()
    kubelet.answer = (has("a", UUID), has("b", "GPU-other"))
    assert kubelet.pods.of(GPU) == ()
    assert kubelet.of(GPU) == [labels("a")]


def test_pods_that_share_a_device_and_those_in_its_instances_are_told_apart() -> None:
    kubelet = Kubelet()
    kubelet.answer = (
        has("a", f"{UUID}::0"),
        has("a", f"{UUID}::1"),
        has("b", f"{UUID}::2", resource="nvidia.com/gpu.shared"),
        has("c", MIG, resource="nvidia.com/mig-3g.40gb"),
        has("d", UUID, resource="rdma/hca"),
    )
    assert kubelet.of(GPU) == [labels("a"), labels("b")]
    assert kubelet.of(SLICE) == [labels("c")]


def test_a_kubelet_that_goes_away_is_said_and_what_it_said_grows_old() -> None:
    kubelet = Kubelet()
    kubelet.answer = (has("a", UUID),)
    assert kubelet.of(GPU) == [labels("a")]
    kubelet.answer = SourceUnavailable("pod-resources", "gone", "look after it")
    kubelet.now += EVERY_S
    assert kubelet.of(GPU) == [labels("a")]
    assert ["gone" in sentence for _, sentence in kubelet.pods.notices] == [True]
    kubelet.now += GOOD_FOR_S
    assert kubelet.of(GPU) == []
    kubelet.answer = (has("b", UUID),)
    kubelet.now += EVERY_S
    assert kubelet.of(GPU) == [labels("b")]
    assert not kubelet.pods.notices


def test_an_error_of_ours_costs_only_the_pods() -> None:
    kubelet = Kubelet()
    kubelet.answer = RuntimeError("x")
    assert kubelet.of(GPU) == []
    assert kubelet.pods.notices == (("pod-resources", "pod-resources: RuntimeError: x"),)


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="pods") as directory:
        yield f"{directory}/kubelet.sock"


def test_a_restarted_kubelet_is_found_on_its_new_socket(path: str) -> None:
    now = [0.0]
    pods = Pods(GPU_RESOURCES, kubelet(path), lambda: now[0])

    def ask() -> Any:
        now[0] += EVERY_S
        pods.of(GPU)
        assert pods.wait(DEADLINE_S)
        return [found["pod_name"] for found in pods.of(GPU)]

    for name in ("before", "after"):
        fake = FakeKubelet()
        fake.fixed = response([("research", name, (("main", {"nvidia.com/gpu": [UUID]}),))])
        with fake.serve(path):
            assert ask() == [name]
