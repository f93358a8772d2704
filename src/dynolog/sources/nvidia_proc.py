"""What NVIDIA's kernel driver shows without any library: `/proc/driver/nvidia/gpus` and `/proc/driver/nvidia-caps/mig-minors`."""

import re

import msgspec

from dynolog.sources.host_files import HostFiles

_GPUS = "proc/driver/nvidia/gpus"
_MIG_MINORS = "proc/driver/nvidia-caps/mig-minors"
_INSTANCE = re.compile(r"^gpu(\d+)/gi(\d+)(?:/ci(\d+))?/access (\d+)$")


class NvidiaDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device. `index` counts them in the order of their PCI addresses, which is how NVML and DCGM number them."""

    index: int
    minor: int
    uuid: str
    pci_bus_id: str


class MigCapability(msgspec.Struct, frozen=True, kw_only=True):
    """What one file of /dev/nvidia-caps gives a right to: a GPU instance, or a compute instance in it. `gpu_minor` is of /dev/nvidia<N>."""

    gpu_minor: int
    gpu_instance_id: int
    compute_instance_id: int | None = None


def nvidia_devices(host: HostFiles) -> tuple[NvidiaDevice, ...]:
    """All devices that the driver has; one whose file does not parse costs only itself, but keeps its place in the count."""
    found = []
    for index, address in enumerate(sorted(host.list(_GPUS))):
        text = host.read_text(f"{_GPUS}/{address}/information")
        facts = dict(_line(line) for line in (text or "").splitlines())
        minor = facts.get("Device Minor", "")
        if minor.isdecimal():
            uuid = facts.get("GPU UUID", "")
            # Question marks stand in it until the device has been opened once.
            found.append(
                NvidiaDevice(index=index, minor=int(minor), uuid="" if "?" in uuid else uuid, pci_bus_id=address)
            )
    return tuple(found)


def _line(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def mig_capabilities(host: HostFiles) -> dict[int, MigCapability]:
    """The rights behind the files of /dev/nvidia-caps, by minor number; {} without MIG."""
    found = {}
    for line in (host.read_text(_MIG_MINORS) or "").splitlines():
        if match := _INSTANCE.match(line.strip()):
            gpu, instance, compute, minor = match.groups()
            found[int(minor)] = MigCapability(
                gpu_minor=int(gpu),
                gpu_instance_id=int(instance),
                compute_instance_id=None if compute is None else int(compute),
            )
    return found
