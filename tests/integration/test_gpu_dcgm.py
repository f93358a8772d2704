"""The whole daemon on a libdcgm that plays a script: names of the original in the log, and trouble that costs the GPUs only."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.dcgm.library import MAJORS, DcgmScript, build
from integration.harness import Daemon, eventually, running_daemon

INTERVAL_S = 0.5
# What the fake engine says, as the original's log prints it.
_LOGGED = {
    "gpu_frequency_mhz": 1980,
    "gpu_power_draw": "412.500",
    "gpu_memory_utilization": 43,
    "graphics_engine_active_ratio": "0.910",
    "sm_active_ratio": "0.820",
    "sm_occupancy": "0.330",
    "tensorcore_active": "0.440",
    "hbm_mem_bw_util": "0.550",
    "fp64_active": "0.060",
    "fp32_active": "0.070",
    "fp16_active": "0.080",
    "pcie_tx_bytes": 1000009,
    "pcie_rx_bytes": 1000010,
    "nvlink_tx_bytes": 1000011,
    "nvlink_rx_bytes": 1000012,
    "dcgm_error": 0,
    "gpu_name": "FAKE H100 80GB",
    "gpu_uuid": "GPU-00000005-0000-0000-0000-000000000000",
    "minor_id": "5",
    "device": 5,
}


class Machine:
    """A daemon and what its libdcgm plays, on the real clock."""

    def __init__(self, daemon: Daemon, script: DcgmScript) -> None:
        self.daemon = daemon
        self.script = script

    def play(self, *lines: str) -> None:
        """Play these lines and no others."""
        self.script.take_back("")
        self.script.say(*lines)

    def records(self, device: int) -> list[dict[str, Any]]:
        """The logged records of a device."""
        mark = f'"device":{device},'
        lines = [line for line in list(self.daemon.lines) if mark in line and "data = " in line]
        return [json.loads(line[line.index("data = ") + 7 :]) for line in lines]

    def next_record(self, device: int, timeout_s: float = 60.0) -> dict[str, Any]:
        """The first record of a device from now on."""
        before = len(self.records(device))
        eventually(
            lambda: len(self.records(device)) > before, timeout_s, f"a record of {device}; {self.daemon.output[-3000:]}"
        )
        return self.records(device)[-1]

    def works(self) -> None:
        """Wait until the source says nothing is wrong."""
        eventually(lambda: self.daemon.ask("status")["status"] == 1, 90, f"GPUs; {self.daemon.output[-3000:]}")


def start(directory: Path, major: int) -> tuple[DcgmScript, Path, dict[str, str]]:
    library = build(directory / "lib", major)
    script = DcgmScript(directory)
    script.is_on_real_clock = True
    script.write()
    return script, library, {**os.environ, **script.environment()}


def flags(library: Path) -> list[str]:
    return [
        "--enable_gpu_monitor",
        "--gpu_backend=dcgm",
        f"--dcgm_lib_path={library}",
        f"--dcgm_report_interval_s={INTERVAL_S}",
        "--dcgm_standalone_address=",
        "--gpu_deadline_s=2",
        "--use_JSON",
        "--reporting_interval_s=0.5",
    ]


@pytest.fixture(scope="module", params=MAJORS, ids=lambda major: f"dcgm{major}")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    directory = tmp_path_factory.mktemp(f"dcgm{request.param}")
    script, library, environment = start(directory, request.param)
    with running_daemon(directory, *flags(library), env=environment) as daemon:
        yield Machine(daemon, script)


def test_the_log_has_the_names_and_values_of_the_original(machine: Machine) -> None:
    """Default fields, all labels, the original's number formats."""
    record = machine.next_record(5)
    assert {key: record.get(key) for key in _LOGGED} == _LOGGED
    assert len({tuple(sorted(machine.next_record(gpu))) for gpu in range(8)}) == 1


def test_an_xid_is_a_delta_of_one(machine: Machine) -> None:
    """B16: counted once, however long the engine keeps its last code."""
    machine.next_record(0)
    machine.play(f"xid 0 {time.time_ns() // 1000} 31")
    eventually(lambda: any(record.get("xid_errors.31") == 1 for record in machine.records(0)))
    for _ in range(3):
        assert machine.next_record(0)["xid_errors.31"] == 0
    assert sum(record.get("xid_errors.31", 0) for record in machine.records(0)) == 1


def test_a_lost_gpu_is_down_and_counted(machine: Machine) -> None:
    machine.play("absent 3")
    eventually(lambda: machine.next_record(3).get("gpu_up") == 0)
    assert machine.next_record(4)["gpu_up"] == 1
    host = json.loads(
        next(line for line in reversed(machine.daemon.lines) if '"gpus_seen":7' in line).split("data = ")[1]
    )
    assert host["gpus_expected"] == 8
    machine.play()
    eventually(lambda: machine.next_record(3).get("gpu_up") == 1)


def test_dyno_pauses_and_resumes_the_profiling(machine: Machine) -> None:
    machine.play()
    machine.works()
    assert machine.daemon.dyno("dcgm-pause", "--duration-s", "300").returncode == 0
    eventually(lambda: "sm_active_ratio" not in machine.next_record(0))
    assert machine.next_record(0)["gpu_power_draw"] == "412.500"
    assert machine.daemon.dyno("dcgm-resume").returncode == 0
    eventually(lambda: "sm_active_ratio" in machine.next_record(0))


@pytest.mark.parametrize("machine", [4], ids=["dcgm4"], indirect=True)
@pytest.mark.parametrize("trouble", ["crash dcgmEntitiesGetLatestValues", "hang dcgmEntitiesGetLatestValues 60"])
def test_a_library_that_crashes_or_hangs_costs_only_the_gpus(machine: Machine, trouble: str) -> None:
    """The child is replaced; host metrics go on; the status says so until it works again."""
    machine.play()
    machine.works()
    machine.play(trouble)
    eventually(lambda: machine.daemon.ask("status")["status"] == 0, 60, machine.daemon.output[-2000:])
    count = len([line for line in machine.daemon.lines if '"cpu_util"' in line])
    machine.daemon.wait_for('"cpu_util"', count=count + 2)
    machine.play()
    machine.works()
    assert machine.next_record(0)["gpu_power_draw"] == "412.500"


def test_a_daemon_without_the_library_says_what_to_install(tmp_path: Path) -> None:
    """B10: once, with the remedy, and everything else runs."""
    with running_daemon(
        tmp_path, *flags(tmp_path / "nonexistent" / "libdcgm.so"), env={**os.environ, "LD_LIBRARY_PATH": ""}
    ) as daemon:
        daemon.wait_for("install the package datacenter-gpu-manager-4-core")
        daemon.wait_for('"cpu_util"', count=2)
        assert sum("datacenter-gpu-manager" in line for line in daemon.lines) <= 2
