"""Which backend reads the GPUs: the order of `auto`, what makes it change, and how failures are retried."""

import logging
from pathlib import Path

import pytest

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.gpu_access import GpuAccess
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_child import ChildFailed
from dynolog.sources.gpu_wire import Done, Raised, Unavailable
from fakes.gpu_children import DEADLINE_S, Machine

NO_LIBRARY = Unavailable("dcgm", "libdcgm is not there", "install it")
CRASH = ChildFailed("its process ended in sample: SIGSEGV (Segmentation fault)")


@pytest.fixture
def machine() -> Machine:
    return Machine()


def access(machine: Machine, backend: str = "auto", root: str = "/nowhere", **options: str) -> GpuAccess:
    made = GpuOptions(backend=backend, root_dir=root, **options)  # type: ignore[arg-type] # texts only
    return GpuAccess(made, DEADLINE_S, machine.clock, machine.make_child)


def pci(root: Path, *vendors: str, kind: str = "0x030200") -> str:
    for number, vendor in enumerate(vendors):
        device = root / f"sys/bus/pci/devices/0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "class").write_text(f"{kind}\n")
        (device / "vendor").write_text(f"{vendor}\n")
    return str(root)


def test_auto_takes_the_first_that_works_and_says_why_not_the_others(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    machine.answers["dcgm", "open"] = NO_LIBRARY
    made = access(machine)
    assert made.sample().sample.backend == "nvml"
    assert machine.opened() == ["dcgm", "nvml"]
    assert made.backend == "nvml"
    assert made.notes == ("GPUs are read with nvml (dcgm: libdcgm is not there: install it)",)
    assert made.notes[0] in caplog.text
    assert machine.children[0].closed


def test_auto_loads_nothing_for_a_maker_without_a_device(machine: Machine, tmp_path: Path) -> None:
    made = access(machine, root=pci(tmp_path, "0x8086", "0x1002"))
    assert made.sample().sample.backend == "amd"
    assert machine.opened() == ["amd"]
    assert "dcgm: no NVIDIA device is in this machine" in made.notes[0]


def test_other_pci_devices_of_a_maker_are_no_accelerators(machine: Machine, tmp_path: Path) -> None:
    made = access(machine, root=pci(tmp_path, "0x8086", kind="0x020000"))
    with pytest.raises(SourceUnavailable, match="no Intel device") as caught:
        made.sample()
    assert machine.opened() == []
    assert "leave --enable_gpu_monitor out" in caught.value.remedy


def test_the_nvidia_driver_counts_where_pci_shows_no_device(machine: Machine, tmp_path: Path) -> None:
    pci(tmp_path, "0x8086", kind="0x020000")
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version\n")
    assert access(machine, root=str(tmp_path)).sample().sample.backend == "dcgm"


def test_a_driver_that_comes_later_is_found(machine: Machine, tmp_path: Path) -> None:
    """B15: at boot the device may come after the daemon."""
    pci(tmp_path, "0x8086", kind="0x020000")
    made = access(machine, root=str(tmp_path))
    with pytest.raises(SourceUnavailable):
        made.sample()
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version\n")
    machine.clock.move(61)
    assert made.sample().sample.backend == "dcgm"


def test_a_host_engine_that_was_named_is_tried_without_a_device(machine: Machine, tmp_path: Path) -> None:
    root = pci(tmp_path, "0x8086", kind="0x020000")
    assert access(machine, root=root, dcgm_standalone_address="node7:5555").sample().sample.backend == "dcgm"


def test_a_backend_asked_for_by_name_is_the_only_one(machine: Machine, tmp_path: Path) -> None:
    root = pci(tmp_path, "0x8086", kind="0x020000")
    machine.answers["nvml", "open"] = Unavailable("nvml", "no driver", "load it")
    with pytest.raises(SourceUnavailable, match=r"^nvml: no driver: load it$"):
        access(machine, "nvml", root).sample()
    assert machine.opened() == ["nvml"]


def test_none_is_an_answer(machine: Machine) -> None:
    with pytest.raises(SourceUnavailable, match="--gpu_backend=none"):
        access(machine, "none").sample()


def test_failures_are_retried_after_growing_delays_up_to_ten_minutes(machine: Machine) -> None:
    machine.answers["nvml", "open"] = Unavailable("nvml", "no driver", "load it")
    made = access(machine, "nvml")
    waits = []
    for _ in range(10):
        before = len(machine.calls)
        waited = 0
        while len(machine.calls) == before:
            with pytest.raises(SourceUnavailable, match="no driver"):
                made.sample()
            if len(machine.calls) == before:
                machine.clock.move(1)
                waited += 1
        waits.append(waited)
    assert waits == [0, 5, 10, 20, 40, 80, 160, 320, 600, 600]


def test_a_backend_that_worked_for_long_is_retried_soon(machine: Machine) -> None:
    made = access(machine, "nvml")
    machine.answers["nvml", "open"] = Unavailable("nvml", "no driver", "load it")
    for _ in range(4):
        with pytest.raises(SourceUnavailable):
            made.sample()
        machine.clock.move(600)
    del machine.answers["nvml", "open"]
    made.sample()
    machine.clock.move(3600)
    machine.answers["nvml", "sample"] = CRASH
    with pytest.raises(SourceUnavailable, match="SIGSEGV"):
        made.sample()
    del machine.answers["nvml", "sample"]
    machine.clock.move(5)
    made.sample()


def test_a_crash_is_said_once_and_a_new_process_is_started(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    made = access(machine, "nvml")
    made.sample()
    machine.answers["nvml", "sample"] = CRASH
    for _ in range(3):
        with pytest.raises(SourceUnavailable, match="SIGSEGV"):
            made.sample()
    assert caplog.text.count("SIGSEGV") == 1
    assert "it is tried again in 5 s" in caplog.text
    assert len(machine.children) == 1
    del machine.answers["nvml", "sample"]
    machine.clock.move(5)
    assert made.sample().sample.backend == "nvml"
    assert len(machine.children) == 2


@pytest.mark.parametrize(
    "answer", [Raised("KeyError: 1"), Unavailable("nvml", "the driver was unloaded", ""), Done(ok=True)]
)
def test_a_bad_answer_to_a_sample_costs_the_child(machine: Machine, answer: Raised | Unavailable | Done) -> None:
    made = access(machine, "nvml")
    made.sample()
    machine.answers["nvml", "sample"] = answer
    with pytest.raises(SourceUnavailable, match="nvml"):
        made.sample()
    assert made.backend == ""
    assert machine.children[0].closed


def test_a_host_engine_that_restarts_is_waited_for_before_another_backend_is_taken(machine: Machine) -> None:
    """B09: DCGM is gone for 20 s; NVML would be a change of all profiling values."""
    made = access(machine)
    made.sample()
    machine.clock.move(60)
    machine.answers["dcgm", "sample"] = machine.answers["dcgm", "open"] = Unavailable("dcgm", "no connection", "")
    for _ in range(4):
        with pytest.raises(SourceUnavailable, match="no connection"):
            made.sample()
        machine.clock.move(5)
    assert "nvml" not in machine.opened()
    del machine.answers["dcgm", "sample"], machine.answers["dcgm", "open"]
    machine.clock.move(20)
    assert made.sample().sample.backend == "dcgm"


def test_a_backend_that_crashes_soon_after_every_opening_is_replaced_at_once(machine: Machine) -> None:
    made = access(machine)
    machine.answers["dcgm", "sample"] = CRASH
    with pytest.raises(SourceUnavailable, match="SIGSEGV"):
        made.sample()
    assert made.sample().sample.backend == "nvml"
    machine.clock.move(3599)
    made.sample()
    assert machine.opened() == ["dcgm", "nvml"]


def test_a_backend_that_stays_away_is_replaced_and_taken_again_when_it_returns(machine: Machine) -> None:
    made = access(machine)
    made.sample()
    machine.clock.move(60)
    machine.answers["dcgm", "sample"] = machine.answers["dcgm", "open"] = Unavailable("dcgm", "no connection", "")
    with pytest.raises(SourceUnavailable):
        made.sample()
    machine.clock.move(61)
    assert made.sample().sample.backend == "nvml"
    assert "no connection" in made.notes[0]
    del machine.answers["dcgm", "sample"], machine.answers["dcgm", "open"]
    assert made.sample().sample.backend == "nvml"
    machine.clock.move(600)
    assert made.sample().sample.backend == "dcgm"
    assert machine.children[-2].closed  # the one with NVML


def test_a_better_backend_that_still_fails_does_not_end_the_one_at_work(machine: Machine) -> None:
    machine.answers["dcgm", "open"] = ChildFailed("its process has not returned from open")
    made = access(machine)
    assert made.sample().sample.backend == "nvml"
    machine.clock.move(3600)
    assert made.sample().sample.backend == "nvml"
    assert machine.opened() == ["dcgm", "nvml", "dcgm"]
    made.sample()
    assert machine.opened() == ["dcgm", "nvml", "dcgm"]


def test_there_is_never_more_than_one_child_that_cannot_be_killed(machine: Machine) -> None:
    machine.sticks = True
    machine.answers["nvml", "sample"] = ChildFailed("its process has not returned from sample")
    made = access(machine, "nvml")
    with pytest.raises(SourceUnavailable):
        made.sample()
    for _ in range(3):
        machine.clock.move(600)
        with pytest.raises(SourceUnavailable, match="hangs in the driver"):
            made.sample()
    assert len(machine.children) == 1
    machine.children[0].is_stuck = False
    del machine.answers["nvml", "sample"]
    made.sample()
    assert len(machine.children) == 2


def test_a_pause_holds_in_the_next_child_too(machine: Machine) -> None:
    made = access(machine, "dcgm")
    made.sample()
    assert made.set_paused(True)
    machine.answers["dcgm", "sample"] = CRASH
    with pytest.raises(SourceUnavailable):
        made.sample()
    assert made.set_paused(True)  # replaces the time of a pause that is in force
    del machine.answers["dcgm", "sample"]
    machine.clock.move(5)
    machine.calls.clear()
    made.sample()
    assert [call for _, call in machine.calls] == ["open", "pause", "sample"]
    assert made.set_paused(False)
    machine.answers["dcgm", "sample"] = CRASH
    with pytest.raises(SourceUnavailable):
        made.sample()
    del machine.answers["dcgm", "sample"]
    machine.clock.move(10)
    machine.calls.clear()
    made.sample()
    assert [call for _, call in machine.calls] == ["open", "sample"]


def test_nothing_is_paused_where_nothing_profiles(machine: Machine) -> None:
    made = access(machine, "nvml")
    assert not made.set_paused(True)
    made.sample()
    machine.answers["nvml", "pause"] = Done(ok=False)
    assert not made.set_paused(True)
    machine.answers["nvml", "pause"] = ChildFailed("its process has not returned from pause")
    with pytest.raises(SourceUnavailable):
        made.set_paused(True)
    machine.clock.move(10)
    machine.calls.clear()
    made.sample()
    assert [call for _, call in machine.calls] == ["open", "sample"]


def test_a_process_that_cannot_be_had_is_a_reason(machine: Machine) -> None:
    def none(_backend: str) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    made = GpuAccess(GpuOptions(backend="nvml"), DEADLINE_S, machine.clock, none)  # type: ignore[arg-type] # it only raises
    with pytest.raises(SourceUnavailable, match="no process for it: Resource temporarily unavailable"):
        made.sample()
