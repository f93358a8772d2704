"""Holders of devices by open files."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.attribution import device_scan
from dynolog.attribution.device_scan import FULL_SCAN_EVERY_S, HOLDERS_EVERY_S, DeviceScan
from dynolog.model.gpu import GpuReading
from fakes.proc_tree import ProcTree


class Clock:
    """Stands still, or moves by `step` at every look."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def gpu(device: str, **more: object) -> GpuReading:
    return GpuReading(device=device, **more)  # type: ignore[arg-type]


def pids(scan: DeviceScan, reading: GpuReading) -> list[int]:
    return [process.pid for process in scan.processes_of(reading)]


def test_who_has_the_file_of_a_device_open_holds_it(tree: ProcTree, clock: Clock) -> None:
    tree.process(5, files=("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia0", "socket:[3]"))
    tree.process(6, files=("/dev/nvidia0", "/dev/nvidia1"))
    tree.process(7, files=("/dev/nvidiactl",))
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    assert pids(scan, gpu("0")) == [5, 6]
    assert pids(scan, gpu("1")) == [6]
    assert pids(scan, gpu("2")) == []
    assert scan.processes_of(gpu("0"))[0].used_memory_bytes is None


def test_of_a_process_with_very_many_files_only_the_first_are_looked_at(
    tree: ProcTree, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may hold a million descriptors open: reading them all would hold up every collector for seconds."""
    tree.process(5, files=())
    looked = itertools.count()

    def endless(_directory: str) -> Iterator[str]:
        yield "/dev/nvidia0"
        for number in looked:
            yield f"socket:[{number}]"

    monkeypatch.setattr(device_scan, "open_links", endless)
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    assert pids(scan, gpu("0")) == [5]
    assert next(looked) < device_scan.MOST_LINKS


def test_monitors_and_our_own_children_use_no_device(tree: ProcTree, clock: Clock) -> None:
    tree.process(5, name="nvidia-persiste", files=("/dev/nvidia0",))
    tree.process(6, name="dcgm-exporter", files=("/dev/nvidia0",))
    tree.process(7, parent=os.getpid(), files=("/dev/nvidia0",))
    tree.process(8, files=("/dev/nvidia0",))
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    assert pids(scan, gpu("0")) == [8]


def test_amd_and_intel_are_found_by_their_render_nodes(tree: ProcTree, clock: Clock) -> None:
    tree.process(5, files=("/dev/kfd", "/dev/dri/renderD129"))
    tree.process(6, name="Xorg", files=("/dev/dri/renderD129",))
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    assert pids(scan, gpu("1", minor=129)) == [5]
    assert pids(scan, gpu("0", minor=128)) == []


def test_a_right_to_a_mig_instance_is_use_of_the_instance(tree: ProcTree, clock: Clock) -> None:
    tree.write("proc/driver/nvidia-caps/mig-minors", "gpu0/gi3/access 30\ngpu0/gi3/ci0/access 31\n")
    tree.process(5, files=("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"))
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    assert pids(scan, gpu("0", gpu_instance_id=3)) == [5]
    assert pids(scan, gpu("0", gpu_instance_id=4)) == []
    assert pids(scan, gpu("0")) == []


def test_new_holders_are_seen_by_the_next_pass_and_ended_ones_soon(tree: ProcTree, clock: Clock) -> None:
    tree.process(5, files=("/dev/nvidia0",))
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    tree.process(6, files=("/dev/nvidia0",))
    tree.end(5)
    scan.advance()
    assert pids(scan, gpu("0")) == [5]
    clock.now += HOLDERS_EVERY_S
    scan.advance()
    assert pids(scan, gpu("0")) == []
    clock.now += FULL_SCAN_EVERY_S
    scan.advance()
    assert pids(scan, gpu("0")) == [6]


def test_a_pass_goes_in_pieces_of_its_budget(tree: ProcTree, clock: Clock) -> None:
    for pid in range(10, 40):
        tree.process(pid, files=("/dev/nvidia0",))
    scan = DeviceScan(tree.host, clock)
    clock.step = 0.001
    seen = []
    for _ in range(20):
        scan.advance(0.005)
        seen.append(len(scan.holders))
    assert seen[0] < 10
    assert seen[-1] == 30
    assert seen == sorted(seen)


def test_kernel_threads_are_passed_over_for_ten_passes_and_others_never(tree: ProcTree, clock: Clock) -> None:
    tree.process(5, parent=2)
    tree.process(6)
    scan = DeviceScan(tree.host, clock)
    scan.advance()
    for pid in (5, 6):
        tree.process(pid, files=("/dev/nvidia0",))
    seen = []
    for _ in range(10):
        clock.now += FULL_SCAN_EVERY_S
        scan.advance()
        seen.append(pids(scan, gpu("0")))
    assert seen == [[6]] * 9 + [[5, 6]]
