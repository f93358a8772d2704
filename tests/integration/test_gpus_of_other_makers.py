"""The whole daemon on recorded machines with AMD and Intel GPUs, and with a TPU device plugin."""

import json
from pathlib import Path

import pytest

from fakes.amd_trees import kfd_process, mi300x_eight
from fakes.drm_tree import DrmTree
from fakes.http_receiver import answer, http_receiver
from fakes.intel_trees import max_1550
from integration.harness import Daemon, eventually, running_daemon

INTERVALS = (
    "--kernel_monitor_reporting_interval_s=0.5",
    "--dcgm_report_interval_s=0.5",
    "--tpu_reporting_interval_s=0.5",
)


def records(daemon: Daemon, key: str) -> list[dict[str, object]]:
    """The values of logged records that have `key`."""
    data = [line.partition(" data = ")[2] for line in list(daemon.lines) if f'"{key}":' in line]
    return [json.loads(text) for text in data if text]


def test_amd_gpus_are_reported_by_the_child_process(tmp_path: Path) -> None:
    tree = DrmTree(tmp_path / "host")
    mi300x_eight(tree)
    kfd_process(tree, 77, {2003: 1 << 30})
    flags = (f"--root_dir={tree.root}", "--enable_gpu_monitor", "--gpu_backend=amd", *INTERVALS)
    with running_daemon(tmp_path, *flags) as daemon:
        eventually(lambda: len({record["device"] for record in records(daemon, "gpu_power_draw")}) == 8, 60)
        first = next(record for record in records(daemon, "gpu_power_draw") if record["device"] == 3)
        assert (first["gpu_power_draw"], first["gpu_device_utilization"], first["gpu_processes"]) == ("650.000", 93, 1)
        assert first["gpu_name"] == "AMD Instinct MI300X OAM"
        assert next(iter(records(daemon, "gpus_expected")))["gpus_expected"] == 8
        # One falls off the bus: it is reported as down, the others go on.
        tree.remove("sys/class/drm/card3")
        tree.remove("sys/bus/pci/devices/0000:38:00.0")
        eventually(lambda: any(record["gpus_seen"] == 7 for record in records(daemon, "gpus_seen")), 60)
        eventually(lambda: any(record["gpu_up"] == 0 and record["device"] == 2 for record in records(daemon, "gpu_up")))


def test_an_intel_gpu_is_reported_by_the_child_process(tmp_path: Path) -> None:
    tree = DrmTree(tmp_path / "host")
    max_1550(tree)
    flags = (f"--root_dir={tree.root}", "--enable_gpu_monitor", "--gpu_backend=intel", *INTERVALS)
    with running_daemon(tmp_path, *flags) as daemon:
        eventually(lambda: records(daemon, "gpu_frequency_mhz"), 60)
        record = records(daemon, "gpu_frequency_mhz")[0]
        assert (record["gpu_frequency_mhz"], record["gpu_throttle_active.pl1"]) == (1550, 1)


def test_tpus_are_reported_and_a_plugin_that_fails_shows(tmp_path: Path) -> None:
    labels = 'make="cloud-tpu",model="tpu7x",namespace="research",pod="llama-0",container="worker"'
    page = f'duty_cycle{{accelerator_id="123-4",{labels}}} 75\n'.encode()
    with http_receiver() as plugin:
        plugin.then = answer(200, page, Content_Type="text/plain")
        flags = ("--enable_tpu_monitor", f"--tpu_device_plugin_url=http://127.0.0.1:{plugin.port}/metrics", *INTERVALS)
        with running_daemon(tmp_path, *flags) as daemon:
            eventually(lambda: records(daemon, "accelerator_utilization"), 60)
            record = records(daemon, "accelerator_utilization")[0]
            assert (record["device"], record["accelerator_utilization"], record["tpu_error"]) == (4, 75, 0)
            assert (record["pod_name"], record["container_name"]) == ("llama-0", "worker")
            plugin.then = answer(503)
            eventually(lambda: any(record["tpu_error"] == 1 for record in records(daemon, "tpu_error")), 60)
            assert "HTTP 503" in daemon.dyno("status", "--verbose").stdout


@pytest.mark.parametrize("backend", ["amd", "intel"])
def test_a_machine_without_such_a_gpu_is_said_to_have_none(tmp_path: Path, backend: str) -> None:
    (tmp_path / "host").mkdir()
    flags = (f"--root_dir={tmp_path / 'host'}", "--enable_gpu_monitor", f"--gpu_backend={backend}", *INTERVALS)
    with running_daemon(tmp_path, *flags) as daemon:
        eventually(lambda: "with its driver" in daemon.dyno("status", "--verbose").stdout, 60)
