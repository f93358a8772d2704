"""Devices, sessions and functions that go, come back, or were never there."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.collector_context import HostTree
from fakes.nvml.backend_process import BackendProcess

Start = Callable[..., BackendProcess]


@pytest.mark.parametrize(
    ("code", "words"), [(15, "the GPU is lost"), (16, "must be reset"), (999, "Unknown Error"), (28, "was not found")]
)
def test_a_lost_gpu_costs_only_itself(opened: Start, code: int, words: str) -> None:
    """C01, C03: GPU 3 of 8 is down, with the words; the other seven are read, and the sample says 7 of 8."""
    backend = opened({"gpu.*.utilization": 50})
    backend.sample(0)
    backend.script.set({"gpu.3.answers": f"!{code}"})
    sample = backend.sample(10)
    lost = sample.readings[3]
    assert (lost.device, lost.is_up, lost.values, lost.counters, lost.processes) == ("3", False, {}, {}, ())
    assert lost.uuid == "GPU-00000000-0000-0000-0000-000000000003"
    assert words in lost.error
    assert f"NVML error {code}" in lost.error
    assert (sample.expected, sample.seen) == (8, 7)
    assert [one.values["gpu_device_utilization"] for one in sample.readings if one.is_up] == [50] * 7
    backend.script.set({"gpu.3.answers": None})
    back = backend.sample(20)
    assert (back.seen, back.readings[3].is_up) == (8, True)
    assert backend.calls("nvmlInitWithFlags") == 1


def test_a_gpu_lost_before_the_start_is_down_from_the_start(opened: Start, host_tree: HostTree) -> None:
    """C01: no handle can be had; the kernel's driver still knows its uuid."""
    for index in range(8):
        host_tree.write(
            f"proc/driver/nvidia/gpus/0000:1{index}:00.0/information",
            f"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{index}\nDevice Minor: \t {index}\n",
        )
    backend = opened({"gpu.3.answers": "!15"}, root_dir=str(host_tree.root))
    sample = backend.sample(0)
    assert (sample.expected, sample.seen) == (8, 7)
    (lost,) = [reading for reading in sample.readings if not reading.is_up]
    assert (lost.device, lost.uuid) == ("3", "GPU-3")
    assert "the GPU is lost" in lost.error


def test_a_card_that_fell_off_the_bus_stays_known(opened: Start) -> None:
    """C03: after a new session NVML shows 7 and counts them anew; numbers stay with their uuid, and the lost one stays down."""
    backend = opened({"count": 3, "gpu.*.utilization": 50})
    backend.sample(0)
    backend.script.set({"gpu.1.answers": "!15", "gpu.2.utilization": 22})
    backend.sample(10)
    backend.script.set({"count": 2, "index.1": 2})
    # Every five minutes a new session looks whether it is back.
    for now_s in (20, 300):
        assert backend.sample(now_s).seen == 2
        assert backend.calls("nvmlInitWithFlags") == 1
    sample = backend.sample(320)
    assert backend.calls("nvmlInitWithFlags") == 2
    assert (sample.expected, sample.seen) == (3, 2)
    by_device = {reading.device: reading for reading in sample.readings}
    assert by_device["2"].values["gpu_device_utilization"] == 22
    assert by_device["2"].uuid == "GPU-00000000-0000-0000-0000-000000000002"
    assert not by_device["1"].is_up
    assert "does not show it any more" in by_device["1"].error
    # The next look is after ten minutes; then it is back.
    backend.script.set({"count": 3, "index.1": None, "gpu.1.answers": None})
    assert backend.sample(600).seen == 2
    sample = backend.sample(921)
    assert (sample.expected, sample.seen, backend.calls("nvmlInitWithFlags")) == (3, 3, 3)


def test_a_gpu_without_a_handle_is_not_taken_for_another(opened: Start) -> None:
    """GPU 0 has gone for good, and the last one of the new count says nothing: it is neither of those that answer."""
    backend = opened({"count": 3})
    backend.sample(0)
    backend.script.set({"gpu.0.answers": "!15"})
    backend.sample(10)
    backend.script.set({"count": 2, "index.0": 1, "index.1": 2, "gpu.2.answers": "!15"})
    sample = backend.sample(320)
    assert [(one.device, one.is_up) for one in sample.readings] == [("0", False), ("1", True), ("2", False)]
    assert len({one.uuid for one in sample.readings}) == 3
    assert (sample.expected, sample.seen) == (3, 1)


def test_pci_says_how_many_are_expected(opened: Start, host_tree: HostTree) -> None:
    """C03: NVML shows 7 from the start, the bus 8."""
    for index in range(8):
        folder = f"sys/bus/pci/devices/0000:1{index}:00.0"
        host_tree.write(f"{folder}/vendor", "0x10de\n")
        host_tree.write(f"{folder}/class", "0x030200\n")
    sample = opened({"count": 7}, root_dir=str(host_tree.root)).sample(0)
    assert (sample.expected, sample.seen, len(sample.readings)) == (8, 7, 7)


def test_a_new_gpu_is_seen_by_a_new_session(opened: Start, host_tree: HostTree) -> None:
    """One that was added is expected as soon as PCI shows it, and read after the next new session."""
    for index in range(2):
        folder = f"sys/bus/pci/devices/0000:1{index}:00.0"
        host_tree.write(f"{folder}/vendor", "0x10de\n")
        host_tree.write(f"{folder}/class", "0x030200\n")
    backend = opened({"count": 1}, root_dir=str(host_tree.root))
    assert (backend.sample(0).expected, backend.sample(1).seen) == (2, 1)
    backend.script.set({"count": 2})
    sample = backend.sample(302)
    assert (sample.expected, sample.seen) == (2, 2)


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (18, "version mismatch", "reload the nvidia modules or reboot"),
        (9, "not loaded", "modprobe nvidia"),
        (4, "no permission", "run the daemon as root"),
        (999, "Unknown Error", "start the container anew"),
        (27, "NVML error 27", ""),
    ],
)
def test_a_session_that_cannot_begin_says_why(start: Start, code: int, reason: str, remedy: str) -> None:
    """C07, C15: driver and library differ after an upgrade, no driver, no permission, no devices in a container."""
    backend = start({"fn.nvmlInitWithFlags": f"!{code}"})
    unavailable = backend.ask("open").unavailable
    assert unavailable is not None
    assert unavailable[0] == "nvml"
    assert reason in unavailable[1]
    assert remedy in unavailable[2]
    backend.script.set({"fn.nvmlInitWithFlags": None})
    backend.open()
    assert backend.sample(0).seen == 8


def test_access_that_is_taken_away_is_said_with_its_cause(opened: Start) -> None:
    """C08: after hours everything is Unknown Error, and no new session can be had: said at once, with what to do."""
    backend = opened({})
    backend.sample(0)
    backend.script.set({"all": "!999", "fn.nvmlInitWithFlags": "!999"})
    answer = backend.ask("sample", 10)
    assert answer.unavailable is not None
    assert "Unknown Error" in answer.unavailable[1]
    assert "daemon-reload" in answer.unavailable[2]
    assert backend.calls("nvmlInitWithFlags") == 2
    backend.script.set({"all": None, "fn.nvmlInitWithFlags": None})
    assert backend.sample(20).seen == 8


def test_devices_that_all_fail_do_not_make_a_hot_loop(opened: Start) -> None:
    """C08: a new session begins but no device has a value: all are down, and sessions come at growing distances."""
    backend = opened({})
    backend.sample(0)
    backend.script.set({"gpu.*.values": "!999"})
    for now_s in range(1, 601):
        sample = backend.sample(now_s)
        assert (sample.expected, sample.seen) == (8, 0)
    # The first; after 1, 11, 31, 71, 151 and 311 s because nothing answers; after 302 s because devices are missing.
    assert backend.calls("nvmlInitWithFlags") == 8
    backend.script.set({"gpu.*.values": None})
    assert backend.sample(601).seen == 8


def test_devices_without_a_handle_are_looked_for_again(opened: Start) -> None:
    """C03: a new session in which no device can even be told apart leaves all that were known as down."""
    backend = opened({"count": 2})
    backend.sample(0)
    backend.script.set({"gpu.*.answers": "!999"})
    sample = backend.sample(10)
    assert [(one.device, one.is_up) for one in sample.readings] == [("0", False), ("1", False)]
    assert all(one.uuid and "Unknown Error" in one.error for one in sample.readings)
    backend.script.set({"gpu.*.answers": None})
    assert backend.sample(20).seen == 0
    assert backend.sample(321).seen == 2


def test_a_driver_without_devices_is_said(start: Start, host_tree: HostTree) -> None:
    """C15: the driver took none of the cards that the bus shows."""
    host_tree.write("sys/bus/pci/devices/0000:10:00.0/vendor", "0x10de\n")
    host_tree.write("sys/bus/pci/devices/0000:10:00.0/class", "0x030200\n")
    unavailable = start({"count": 0}, root_dir=str(host_tree.root)).ask("open").unavailable
    assert unavailable is not None
    assert "shows no GPU (PCI shows 1)" in unavailable[1]
    assert "kernel log" in unavailable[2]


def test_functions_that_a_driver_lacks_cost_their_values_only(opened: Start) -> None:
    """C10: each is said once and never called again; the rest is there. Old names are used where there are such."""
    lacking = (
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetEncoderUtilization",
        "nvmlDeviceGetFieldValues",
        "nvmlGpmQueryDeviceSupport",
        "nvmlDeviceGetMigMode",
        "nvmlEventSetCreate",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
    )
    backend = opened(
        {"driver": "470.82.01", "gpu.*.reasons": 8, "gpu.*.energy": 5000, "gpu.*.compute": "77:1024"}, without=lacking
    )
    for now_s in range(3):
        sample = backend.sample(now_s)
    reading = sample.readings[0]
    assert reading.values["gpu_clock_event_reasons"] == 8
    assert reading.counters["gpu_energy_joules"] == 5
    assert reading.values["gpu_power_draw"] == 300
    assert "gpu_encoder_utilization" not in reading.values
    assert "gpu_decoder_utilization" in reading.values
    assert [process.pid for process in reading.processes] == [77]
    said = dict(sample.notices)
    assert "driver 470.82.01 has no nvmlDeviceGetEncoderUtilization" in said["nvml_nvmlDeviceGetEncoderUtilization"]
    assert "an older version is read" in said["nvml_processes_Compute_1"]
    assert "nvmlDeviceGetCurrentClocksEventReasons" not in " ".join(said.values())
    assert sample.seen == 8


def test_a_driver_too_old_for_the_binding_is_said(start: Start) -> None:
    """C10: not even the session can be begun."""
    unavailable = start({}, without=["nvmlInitWithFlags"]).ask("open").unavailable
    assert unavailable is not None
    assert "too old" in unavailable[1]


def test_no_library_is_said(start: Start, tmp_path: Path) -> None:
    """C15: no driver at all; in a container most often because it was not started with the toolkit."""
    empty = tmp_path / "empty"
    empty.mkdir()
    backend = start({}, without=["nvmlInitWithFlags"])
    (tmp_path / "lacking" / "libnvidia-ml.so.1").unlink()
    unavailable = backend.ask("open").unavailable
    assert unavailable is not None
    assert "was not found" in unavailable[1]
    assert "--gpus all" in unavailable[2]


def test_a_crash_of_the_library_ends_only_that_process(opened: Start) -> None:
    """C01: nothing protects against a segmentation fault but a process of its own."""
    backend = opened({})
    backend.script.set({"fn.nvmlDeviceGetPowerUsage": "crash"})
    backend.send("sample", 1)
    assert backend.answer() is None
    assert backend.returncode() == -signal.SIGSEGV


def test_a_call_that_hangs_can_be_killed(opened: Start) -> None:
    """A driver that does not return for a minute: the process with it is killed like any other."""
    backend = opened({})
    backend.script.set({"fn.nvmlDeviceGetUtilizationRates": "hang:60"})
    backend.send("sample", 1)
    assert backend.answer(timeout_s=0.3) is None
    os.kill(backend.pid, signal.SIGKILL)
    assert backend.returncode() == -signal.SIGKILL


def test_closing_gives_everything_back(opened: Start) -> None:
    """All samples and event sets, also after a new session; and what fails at the end is of no matter."""
    backend = opened({"count": 2, "gpu.*.mig": 1, "gpu.*.mig.0.gi": 1, "gpu.*.mig.0.ci": 0})
    backend.sample(0)
    assert backend.ask("alive").number == 8
    backend.ask("close")
    assert backend.ask("alive").number == 0
    assert backend.calls("nvmlShutdown") == 1
    assert backend.calls("nvmlEventSetFree") == 1
    backend.open()
    backend.script.set({"fn.nvmlGpmSampleFree": "!999", "fn.nvmlEventSetFree": "!999", "fn.nvmlShutdown": "!999"})
    assert backend.ask("close").unavailable is None
