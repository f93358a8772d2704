"""Whose a GPU is, through a real daemon: real processes, a backend that lists them, a real gRPC kubelet."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynolog.model.gpu import GpuProcess, GpuReading
from fakes.gpu_backend import PLACE, SCRIPT, Script
from fakes.kubelet import FakeKubelet, response
from fakes.scripted_trainer import ScriptedTrainer
from integration.harness import Daemon, eventually, needs_root, running_daemon

GIB = 1 << 30
UUIDS = ("GPU-8f6e0c1d-0000-4000-8000-000000000000", "GPU-8f6e0c1d-0000-4000-8000-000000000001")


@contextlib.contextmanager
def process(code: str = "", **environment: str) -> Iterator[int]:
    """The pid of a process with exactly this environment, which runs `code` and then waits."""
    script = f"{code}\nprint('up', flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", f"import sys\n{script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"up\n"
            yield child.pid
        finally:
            child.stdin.close()


def reading(index: int, *processes: GpuProcess, **more: Any) -> GpuReading:
    more.setdefault("values", {"gpu_power_draw": 300.0})
    return GpuReading(device=str(index), uuid=UUIDS[index], minor=index, processes=processes, **more)


@contextlib.contextmanager
def gpu_daemon(directory: Path, script: Script, *flags: str, fabric: str | None = None) -> Iterator[Daemon]:
    """A daemon whose GPUs are what a script says."""
    file = directory / "script.json"
    script.write(file)
    tests = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": tests, SCRIPT: str(file)}
    monitor = ("--enable_gpu_monitor", f"--gpu_backend={PLACE}", "--dcgm_reporting_interval_s=0.1")
    with running_daemon(
        directory / "daemon",
        *monitor,
        "--kernel_monitor_reporting_interval_s=0.1",
        *flags,
        fabric=fabric,
        env=environment,
    ) as daemon:
        yield daemon


def records(daemon: Daemon) -> dict[str, dict[str, Any]]:
    """The latest records of GPUs, by subject."""
    found = daemon.ask("metrics")["records"]
    return {one.get("subject", ""): one for one in found if one["labels"].get("device") is not None}


def when(daemon: Daemon, fits: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    """The records once they fit."""

    def fitting() -> dict[str, dict[str, Any]]:
        found = records(daemon)
        return found if fits(found) else {}

    return eventually(fitting, 60, f"records that fit; {daemon.output[-2000:]}")


def test_one_job_on_a_device_and_several_on_another(tmp_path: Path) -> None:
    slurm = {"SLURM_JOB_ACCOUNT": "bio", "SLURM_JOB_PARTITION": "h100", "SECRET_TOKEN": "hunter2"}
    with (
        process(**slurm, SLURM_JOB_ID="90217", SLURM_ARRAY_JOB_ID="90210", SLURM_ARRAY_TASK_ID="7") as array,
        process(**slurm, SLURM_JOB_ID="90300") as first,
        process(**slurm, SLURM_JOB_ID="90301") as second,
    ):
        script = Script(
            readings=[
                reading(0, GpuProcess(pid=array, used_memory_bytes=2 * GIB)),
                reading(
                    1, GpuProcess(pid=first, used_memory_bytes=GIB), GpuProcess(pid=second, used_memory_bytes=3 * GIB)
                ),
            ]
        )
        with gpu_daemon(tmp_path, script) as daemon:
            found = when(daemon, lambda all_of_them: len(all_of_them) == 4)
            labels = found["0"]["labels"]
            assert (labels["job_id"], labels["slurm_account"], labels["slurm_partition"]) == ("90210_7", "bio", "h100")
            assert "job_id" not in found["1"]["labels"]
            assert found["1"]["labels"]["slurm_account"] == "bio"
            jobs = {
                one["labels"]["job_id"]: one["values"] for subject, one in found.items() if subject.startswith("1-use-")
            }
            assert jobs == {
                "90300": {"gpu_job_processes": 1, "gpu_job_memory_used_bytes": GIB},
                "90301": {"gpu_job_processes": 1, "gpu_job_memory_used_bytes": 3 * GIB},
            }
            assert "hunter2" not in daemon.output + repr(found)


def test_a_job_that_ends_takes_its_labels_along(tmp_path: Path) -> None:
    """C09: the backend still lists it for a while, and its parent has not noticed either."""
    with (
        process(SLURM_JOB_ID="90300") as pid,
        gpu_daemon(tmp_path, Script(readings=[reading(0, GpuProcess(pid=pid))])) as daemon,
    ):
        when(daemon, lambda found: found.get("0", {"labels": {}})["labels"].get("job_id") == "90300")
        os.kill(pid, 9)
        when(daemon, lambda found: "0" in found and "job_id" not in found["0"]["labels"])


def test_pods_come_from_the_kubelet_and_its_absence_is_said_once(tmp_path: Path) -> None:
    kubelet = FakeKubelet()
    kubelet.fixed = response([("research", "train-0", (("pytorch", {"nvidia.com/gpu": [f"{UUIDS[0]}::1"]}),))])
    with tempfile.TemporaryDirectory(prefix="pods") as directory:
        path = f"{directory}/kubelet.sock"
        flags = ("--enable_pod_resources_attribution", f"--pod_resources_socket={path}")
        script = Script(readings=[reading(0), reading(1)])
        with kubelet.serve(path), gpu_daemon(tmp_path, script, *flags) as daemon:
            found = when(daemon, lambda found: "pod_name" in found.get("0", {"labels": {}})["labels"])
            labels = found["0"]["labels"]
            assert (labels["pod_namespace"], labels["pod_name"], labels["container_name"]) == (
                "research",
                "train-0",
                "pytorch",
            )
            assert "pod_name" not in found["1"]["labels"]
        with gpu_daemon(tmp_path, script, *flags) as daemon:
            (line,) = daemon.wait_for("pod-resources:")
            assert "No such file or directory" in line
            assert "--pod_resources_socket" in line
            assert any(
                "pod-resources" in sentence for sentence in daemon.ask("status", "--verbose")["daemon"]["missing"]
            )
            assert len(records(daemon)) <= 2


@needs_root
@pytest.mark.root
def test_trainers_are_found_by_the_device_they_hold(tmp_path: Path) -> None:
    """A09: the driver knows the host's pid of a trainer that calls itself 1."""
    fabric = f"dynolog-owners-{os.getpid()}"
    with (
        ScriptedTrainer(fabric, environment={"RANK": "0"}) as idle,
        ScriptedTrainer(fabric, environment={"RANK": "1"}, new_pid_namespace=True) as computing,
    ):
        script = Script(readings=[reading(0), reading(1, GpuProcess(pid=computing.host_pid))])
        with gpu_daemon(tmp_path, script, fabric=fabric) as daemon:
            idle.poll()
            computing.poll()
            eventually(lambda: [one for one in daemon.trainers() if one.get("gpus") == ["1"]], 60)
            trace = ("gputrace", "--log-file", "/tmp/t.json", "--dry-run")
            for chosen in ("1", UUIDS[1], UUIDS[1].lower()):
                reply = daemon.ask(*trace, "--gpu", chosen)
                assert reply["activityProfilersTriggered"] == [1]
            assert daemon.ask(*trace, "--process-limit", "1")["activityProfilersTriggered"] == [1]
            nobody = daemon.dyno(*trace, "--gpu", "0")
            assert nobody.returncode == 1
            assert f"Held: GPU 1: pid {computing.host_pid}" in nobody.stdout + nobody.stderr


_HOLD_A_DEVICE = """
import ctypes, os
libc = ctypes.CDLL(None)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
assert libc.unshare(CLONE_NEWNS) == 0
assert libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
assert libc.mount(b"none", b"/dev", b"tmpfs", 0, b"mode=755") == 0
held = [os.open(f"/dev/{name}", os.O_RDWR | os.O_CREAT) for name in ("nvidiactl", "nvidia1")]
"""


@needs_root
@pytest.mark.root
def test_without_a_list_of_the_driver_open_device_files_tell(tmp_path: Path) -> None:
    """A process in a mount namespace of its own has `/dev/nvidia1` open, as in a container."""
    script = Script(readings=[reading(0), reading(1)])
    with process(_HOLD_A_DEVICE, SLURM_JOB_ID="90300") as pid, gpu_daemon(tmp_path, script) as daemon:
        found = when(daemon, lambda found: "job_id" in found.get("1", {"labels": {}})["labels"])
        assert found["1"]["labels"]["job_id"] == "90300"
        assert "job_id" not in found["0"]["labels"]
        devices = {device["subject"]: device for device in daemon.ask("gpus")["devices"]}
        assert [use["pids"] for use in devices["1"]["uses"]] == [[pid]]


def test_a_mapping_that_cannot_be_used_is_refused_before_the_start(tmp_path: Path) -> None:
    file = tmp_path / "map.csv"
    file.write_text("TEAM,team\nPROJECT\n")
    command = [sys.executable, "-m", "dynolog.daemon.main", f"--env_attribution_mappings_file={file}"]
    for more in (["--check"], ["--port=0"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert "line 2: 1 fields: it must be ENV,label" in done.stderr
    file.write_text("TEAM,team\n")
    done = subprocess.run([*command, "--check"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "the flags are fine" in done.stdout) == (0, True)
