"""NVML through the real daemon: its child process, the real nvidia-ml-py, and a library that stands in for the driver's."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.nvml.library import NvmlScript, build, environment
from integration.harness import Daemon, eventually, running_daemon

GIB = 1 << 30


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@contextlib.contextmanager
def nvml_daemon(
    directory: Path, library: Path, said: dict[str, object], *flags: str
) -> Iterator[tuple[Daemon, NvmlScript]]:
    """A daemon that reads its GPUs with NVML twice a second."""
    script = NvmlScript(directory / "script")
    script.set(said)
    monitor = ("--enable_gpu_monitor", "--gpu_backend=nvml", "--dcgm_reporting_interval_s=0.5")
    with running_daemon(
        directory / "daemon",
        *monitor,
        "--kernel_monitor_reporting_interval_s=0.5",
        *flags,
        env=environment(library, script),
    ) as daemon:
        yield daemon, script


def gpu_records(daemon: Daemon) -> dict[str, dict[str, Any]]:
    """The latest values of whole GPUs, by device."""
    found = daemon.ask("metrics")["records"]
    return {one["labels"]["device"]: one["values"] for one in found if "device" in one["labels"]}


def test_values_reach_the_log_and_the_table(tmp_path: Path, library: Path) -> None:
    """Eight GPUs, each with its own record: gauges as they are, counters as deltas, the process on the one that it uses."""
    said: dict[str, object] = {
        "gpu.*.utilization": 40,
        "gpu.5.utilization": 87,
        "gpu.*.field.186": 421_500,
        "gpu.*.field.83": "@5000000000+2000000",
        "gpu.*.gpm.2": 75.5,
        "gpu.5.compute": f"{os.getpid()}:{3 * GIB}",
    }
    with nvml_daemon(tmp_path, library, said, "--use_JSON") as (daemon, script):
        script.set({"events": "1:5:31"})
        lines = eventually(
            lambda: [
                line
                for line in daemon.lines
                if '"device":5,' in line and "sm_active_ratio" in line and "joules" in line
            ],
            60,
        )
        record = json.loads(lines[0].split("data = ", 1)[1])
        assert record["gpu_device_utilization"] == 87
        assert record["gpu_power_draw"] == "421.500"
        assert record["sm_active_ratio"] == "0.755"
        assert record["gpu_uuid"] == "GPU-00000000-0000-0000-0000-000000000005"
        assert record["gpu_name"] == "NVIDIA H100 80GB HBM3"
        assert record["gpu_up"] == 1
        # It grows by 2 kJ a second; the total since the driver started is 5 MJ and more.
        assert 0 < float(record["gpu_energy_joules"]) < 1e6
        script.set({"events": "1:5:31,2:5:79"})
        seen = eventually(lambda: gpu_records(daemon).get("5", {}).get("xid_last_seen_timestamp.79"), 60)
        assert seen is not None
        assert seen > 1_700_000_000
        table = daemon.dyno("gpus")
        assert table.returncode == 0, table.stderr
        row = next(line for line in table.stdout.splitlines() if str(os.getpid()) in line)
        assert "87" in row
        assert len(gpu_records(daemon)) == 8


def test_a_lost_gpu_and_a_crash_of_the_library(tmp_path: Path, library: Path) -> None:
    """C01, C03: one GPU is down and seven are read; then the library crashes, which costs one child process and is said."""
    with nvml_daemon(tmp_path, library, {"gpu.*.utilization": 40}) as (daemon, script):
        eventually(lambda: gpu_records(daemon).get("3", {}).get("gpu_up") == 1, 60)
        script.set({"gpu.3.answers": "!15"})
        found = eventually(lambda: gpu_records(daemon) if gpu_records(daemon)["3"]["gpu_up"] == 0 else {}, 60)
        assert found["2"]["gpu_device_utilization"] == 40
        daemon.wait_for("GPU 3 (GPU-00000000-0000-0000-0000-000000000003) is down: the GPU is lost")
        script.set({"gpu.3.answers": None, "fn.nvmlDeviceGetFanSpeed": "crash"})
        daemon.wait_for("SIGSEGV")
        assert daemon.dyno("status").returncode == 0
        script.set({"fn.nvmlDeviceGetFanSpeed": None, "gpu.*.utilization": 41})
        eventually(lambda: gpu_records(daemon).get("3", {}).get("gpu_device_utilization") == 41, 90)


def test_a_driver_that_hangs_is_given_up(tmp_path: Path, library: Path) -> None:
    """A call that does not return for a minute: the child is killed after the deadline, and the other metrics go on."""
    with nvml_daemon(tmp_path, library, {"gpu.*.utilization": 40}, "--gpu_deadline_s=0.5") as (daemon, script):
        eventually(lambda: gpu_records(daemon).get("7", {}).get("gpu_up") == 1, 60)
        script.set({"fn.nvmlDeviceGetUtilizationRates": "hang:60"})
        daemon.wait_for("has not returned from sample within 0.5 s")
        script.set({"fn.nvmlDeviceGetUtilizationRates": None, "gpu.*.utilization": 41})
        eventually(lambda: gpu_records(daemon).get("7", {}).get("gpu_device_utilization") == 41, 90)
