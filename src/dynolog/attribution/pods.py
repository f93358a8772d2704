"""Which pods have which device, kept fresh in the background; a kubelet that hangs or is not there costs only this."""

import time
from collections.abc import Callable, Mapping, Sequence

from dynolog.attribution.pod_device_ids import DeviceKey, key_of_id, keys_of_reading
from dynolog.attribution.uses import pod_labels
from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading
from dynolog.sources.errand import Errand
from dynolog.sources.pod_names import PodName
from dynolog.sources.pod_resources import list_pod_resources
from dynolog.sources.pod_resources_messages import ContainerDevices

EVERY_S = 10.0
# An answer counts that long; then a pod may have ended, and another have its device.
GOOD_FOR_S = 35.0
# Resources that are GPUs, whatever the flag says; * stands for the rest of a name.
GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*", "amd.com/gpu")

ListResources = Callable[[], tuple[ContainerDevices, ...]]


class Pods:
    """Used from one thread, which never waits. `resources` are the names that count; `clock` gives monotonic seconds."""

    def __init__(
        self, resources: Sequence[str], ask: ListResources, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._resources = tuple(resources)
        self._clock = clock
        self._errand = Errand("pod-resources", ask)
        self._next_s = 0.0
        self._answered_s = 0.0
        self._by_key: dict[DeviceKey, list[PodName]] = {}
        self._device_uuids: dict[str, str] = {}
        self.error = ""

    def of(self, reading: GpuReading) -> tuple[Mapping[str, str], ...]:
        """Labels of each container that has this device or instance, () when nothing is known. Begins a new question when it is time."""
        self._refresh()
        if reading.gpu_instance_id is None and reading.uuid:
            self._device_uuids[reading.device] = reading.uuid
        found: dict[PodName, None] = {}
        for key in keys_of_reading(reading, self._device_uuids.get(reading.device, "")):
            found |= dict.fromkeys(self._by_key.get(key, ()))
        return tuple(pod_labels(pod) for pod in found)

    @property
    def notices(self) -> tuple[tuple[str, str], ...]:
        """(key, sentence) while the kubelet cannot be asked."""
        return (("pod-resources", self.error),) if self.error else ()

    def _refresh(self) -> None:
        now_s = self._clock()
        try:
            answer = self._errand.take()
        except SourceUnavailable as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - the boundary of the errand's thread: said, and only pods are missing
            self.error = f"pod-resources: {type(error).__name__}: {error}"
        else:
            if answer is not None:
                self.error = ""
                self._answered_s = now_s
                self._by_key = self._indexed(answer)
        if self._by_key and now_s - self._answered_s > GOOD_FOR_S:
            self._by_key = {}
        if now_s >= self._next_s and self._errand.start():
            self._next_s = now_s + EVERY_S

    def _indexed(self, answer: tuple[ContainerDevices, ...]) -> dict[DeviceKey, list[PodName]]:
        found: dict[DeviceKey, list[PodName]] = {}
        for devices in answer:
            if not any(_matches(devices.resource, pattern) for pattern in self._resources):
                continue
            pod = PodName(namespace=devices.namespace, pod=devices.pod, container=devices.container)
            for device_id in devices.device_ids:
                found.setdefault(key_of_id(device_id), []).append(pod)
        return found

    def wait(self, timeout_s: float) -> bool:
        """Whether the question that is on its way has been answered within that time; for tests."""
        return self._errand.wait(timeout_s)


def _matches(resource: str, pattern: str) -> bool:
    return resource.startswith(pattern[:-1]) if pattern.endswith("*") else resource == pattern


def kubelet(path: str) -> ListResources:
    """Asks the kubelet behind this socket."""
    return lambda: list_pod_resources(path)
