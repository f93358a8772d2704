"""Devices by open files, on recorded trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.held_gpu import HeldGpu
from dynolog.sources.device_files import DeviceFile, DeviceKind, accelerators_present, device_file
from dynolog.sources.gpu_files import held_gpus
from dynolog.sources.host_files import HostFiles
from dynolog.sources.nvidia_proc import MigCapability, mig_capabilities, nvidia_devices
from fakes.collector_context import HostTree


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("/dev/nvidia0", DeviceFile(DeviceKind.NVIDIA, 0)),
        ("/dev/nvidia15", DeviceFile(DeviceKind.NVIDIA, 15)),
        ("/dev/nvidia-caps/nvidia-cap21", DeviceFile(DeviceKind.NVIDIA_CAPABILITY, 21)),
        ("/dev/dri/renderD128", DeviceFile(DeviceKind.RENDER, 128)),
        ("/dev/kfd", DeviceFile(DeviceKind.KFD, 0)),
        ("/dev/nvidiactl", None),
        ("/dev/nvidia-uvm", None),
        ("/dev/nvidia-modeset", None),
        ("/dev/dri/card0", None),
        ("/tmp/dev/nvidia0", None),
        ("/dev/nvidia0 (deleted)", None),
        ("socket:[5]", None),
    ],
)
def test_only_files_of_a_device_count(link: str, expected: DeviceFile | None) -> None:
    assert device_file(link) == expected


@given(st.text())
def test_no_link_text_is_an_error(link: str) -> None:
    device_file(link)


def devices(tree: HostTree) -> HostFiles:
    """Two devices whose minor numbers are not in the order of their addresses."""
    for address, minor, uuid in (("0000:07:00.0", 1, "GPU-aaaa"), ("0000:3c:00.0", 0, "GPU-bbbb")):
        tree.write(
            f"proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t NVIDIA H100\nIRQ:   \t\t 17\nGPU UUID: \t {uuid}\nBus Location: \t {address}\nDevice Minor: \t {minor}\n",
        )
    return HostFiles(str(tree.root))


def test_devices_are_numbered_by_their_addresses_as_the_vendors_library_does(host_tree: HostTree) -> None:
    host = devices(host_tree)
    assert [(one.index, one.minor, one.uuid) for one in nvidia_devices(host)] == [
        (0, 1, "GPU-aaaa"),
        (1, 0, "GPU-bbbb"),
    ]
    held = held_gpus([DeviceFile(DeviceKind.NVIDIA, 1)], host)
    assert held == (HeldGpu(device="0", uuid="GPU-aaaa"),)


def test_a_device_without_information_costs_itself_and_keeps_its_place(host_tree: HostTree) -> None:
    host = devices(host_tree)
    host_tree.write("proc/driver/nvidia/gpus/0000:00:01.0/information", "Model: x\nGPU UUID: GPU-????\n")
    assert [one.index for one in nvidia_devices(host)] == [1, 2]


def test_without_the_drivers_word_the_minor_number_stands(host_tree: HostTree) -> None:
    host = HostFiles(str(host_tree.root))
    files = [DeviceFile(DeviceKind.NVIDIA, 10), DeviceFile(DeviceKind.NVIDIA, 9), DeviceFile(DeviceKind.KFD, 0)]
    assert [gpu.device for gpu in held_gpus(files, host)] == ["9", "10"]
    assert held_gpus([DeviceFile(DeviceKind.KFD, 0)], host) == ()
    assert [gpu.text for gpu in held_gpus([DeviceFile(DeviceKind.RENDER, 128)], host)] == ["renderD128"]


def test_a_right_to_a_mig_instance_means_the_instance(host_tree: HostTree) -> None:
    host = devices(host_tree)
    host_tree.write(
        "proc/driver/nvidia-caps/mig-minors",
        "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi1/access 147\n",
    )
    assert mig_capabilities(host)[13] == MigCapability(gpu_minor=0, gpu_instance_id=1, compute_instance_id=0)
    files = [
        DeviceFile(DeviceKind.NVIDIA, 0),
        DeviceFile(DeviceKind.NVIDIA_CAPABILITY, 12),
        DeviceFile(DeviceKind.NVIDIA_CAPABILITY, 13),
        DeviceFile(DeviceKind.NVIDIA_CAPABILITY, 1),
    ]
    assert [gpu.text for gpu in held_gpus(files, host)] == ["1/gi1"]


def test_a_machine_with_a_driver_has_its_files(host_tree: HostTree) -> None:
    dev = str(host_tree.root / "dev")
    assert not accelerators_present(dev)
    host_tree.write("dev/null", "")
    assert not accelerators_present(dev)
    host_tree.write("dev/nvidiactl", "")
    assert accelerators_present(dev)
