"""GPUs on the PCI bus of a tree of files."""

import os

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.nvml.backoff import Backoff
from dynolog.sources.nvml.pci import as_in_sysfs, gpus_on_bus
from fakes.collector_context import HostTree


def add(tree: HostTree, address: str, vendor: str = "0x10de", kind: str = "0x030200", driver: str = "") -> None:
    folder = f"sys/bus/pci/devices/{address}"
    tree.write(f"{folder}/vendor", vendor + "\n")
    tree.write(f"{folder}/class", kind + "\n")
    if driver:
        os.symlink(f"../../../bus/pci/drivers/{driver}", tree.root / folder / "driver")


def found(tree: HostTree) -> list[str]:
    return gpus_on_bus(HostFiles(str(tree.root)))


def test_only_gpus_that_the_driver_should_serve(host_tree: HostTree) -> None:
    """Not the audio function of the card, no other maker's, none that a virtual machine has; one that no driver took is expected."""
    add(host_tree, "0000:01:00.0", driver="nvidia")
    add(host_tree, "0000:01:00.1", kind="0x040300")
    add(host_tree, "0000:02:00.0", kind="0x030000", driver="nvidia")
    add(host_tree, "0000:03:00.0", driver="vfio-pci")
    add(host_tree, "0000:04:00.0", driver="nouveau")
    add(host_tree, "0000:05:00.0")
    add(host_tree, "0000:06:00.0", vendor="0x1002")
    assert found(host_tree) == ["0000:01:00.0", "0000:02:00.0", "0000:05:00.0"]


def test_a_container_expects_what_it_was_given(host_tree: HostTree) -> None:
    """The bus shows all GPUs of the host there, the device files only its own."""
    for number in range(4):
        add(host_tree, f"0000:1{number}:00.0", driver="nvidia")
        host_tree.write(f"proc/driver/nvidia/gpus/0000:1{number}:00.0/information", f"Device Minor: \t {number}\n")
    host_tree.write("dev/nvidia2", "")
    assert found(host_tree) == ["0000:12:00.0"]


def test_no_bus_is_no_gpu(host_tree: HostTree) -> None:
    assert found(host_tree) == []


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 255), st.integers(0, 31))
def test_addresses_are_as_in_sysfs(domain: int, bus: int, device: int) -> None:
    """NVML writes eight digits of domain, the kernel at least four."""
    text = as_in_sysfs(f"{domain:08X}:{bus:02X}:{device:02X}.0")
    assert text == f"{domain:04x}:{bus:02x}:{device:02x}.0" or domain > 0xFFFF
    assert text.endswith(f":{bus:02x}:{device:02x}.0")


def test_waiting_doubles_up_to_a_limit() -> None:
    backoff = Backoff(10, 35)
    now_s, tries = 0.0, []
    while now_s < 150:
        if backoff.is_due(now_s):
            tries.append(now_s)
            backoff.tried(now_s)
        now_s += 1
    assert tries == [0, 10, 30, 65, 100, 135]
    backoff.worked()
    assert backoff.is_due(0)
    assert not backoff.is_waiting
