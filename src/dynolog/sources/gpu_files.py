"""Which GPUs a process holds, by its open device files alone: for hosts where nothing asks the driver."""

from collections.abc import Iterable

from dynolog.model.held_gpu import HeldGpu
from dynolog.sources.device_files import DeviceFile, DeviceKind
from dynolog.sources.host_files import HostFiles
from dynolog.sources.nvidia_proc import mig_capabilities, nvidia_devices


def held_gpus(files: Iterable[DeviceFile], host: HostFiles) -> tuple[HeldGpu, ...]:
    """The devices behind open files, in the order of their numbers; () where they name none (only /dev/kfd).

    A process with a right to a MIG instance holds that instance, not the device around it. A render node is named by its minor number.
    """
    files = frozenset(files)
    if not files:
        return ()
    by_minor = {device.minor: device for device in nvidia_devices(host)}
    capabilities = mig_capabilities(host)
    rights = [capabilities[file.minor] for file in files if _is_right(file) and file.minor in capabilities]
    instances = {(right.gpu_minor, right.gpu_instance_id) for right in rights}
    split = {gpu_minor for gpu_minor, _ in instances}

    def number(minor: int) -> str:
        return str(by_minor[minor].index if minor in by_minor else minor)

    held = [HeldGpu(device=number(minor), gpu_instance_id=instance) for minor, instance in instances]
    for file in files:
        if file.kind is DeviceKind.NVIDIA and file.minor not in split:
            uuid = by_minor[file.minor].uuid if file.minor in by_minor else ""
            held.append(HeldGpu(device=number(file.minor), uuid=uuid))
        elif file.kind is DeviceKind.RENDER:
            held.append(HeldGpu(device=f"renderD{file.minor}"))
    return tuple(sorted(held, key=lambda gpu: (len(gpu.device), gpu.device, gpu.gpu_instance_id or 0)))


def _is_right(file: DeviceFile) -> bool:
    return file.kind is DeviceKind.NVIDIA_CAPABILITY
