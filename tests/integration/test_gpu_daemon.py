"""The whole daemon with GPUs that a test scripts: what leaves it, who pauses it, and that a driver in trouble costs the GPUs only."""

import contextlib
import json
import os
import re
import signal
import socket
import struct
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynolog.model.gpu import GpuProcess, GpuReading
from dynolog.model.metric import Kind, Metric, Scope
from fakes.gpu_backend import PLACE, SCRIPT, Script
from integration.harness import Daemon, eventually, running_daemon

TESTS = Path(__file__).resolve().parents[1]
INTERVAL = "--dcgm_report_interval_s=0.2"


def readings(count: int, **changes: Any) -> list[GpuReading]:
    return [
        GpuReading(
            device=str(number),
            uuid=f"GPU-{number}",
            name="NVIDIA H200",
            values={
                "gpu_power_draw": 300.5 + number,
                "gpu_power_limit": 700,
                "sm_active_ratio": 0.5,
                "gpu_memory_used_bytes": 12_300_000_000,
                "gpu_memory_total_bytes": 141_000_000_000,
            },
            counters={"pcie_replays": 7, "xid_errors.31": 0},
            processes=(GpuProcess(pid=os.getpid()),) if number == 0 else (),
            **changes,
        )
        for number in range(count)
    ]


class Machine:
    """A daemon and the script of its GPUs."""

    def __init__(self, daemon: Daemon, path: Path, page: str) -> None:
        self.daemon = daemon
        self._path = path
        self._page = page

    def script(self, **what: Any) -> None:
        Script(**what).write(self._path)

    def page(self) -> str:
        with urllib.request.urlopen(self._page, timeout=30) as answer:
            return str(answer.read().decode())

    def has(self, line: str) -> None:
        """Wait until the Prometheus page has a line that matches."""
        eventually(lambda: re.search(line, self.page(), re.MULTILINE), what=line)

    def gpus(self) -> list[dict[str, Any]]:
        return list(self.daemon.ask("gpus")["devices"])

    def calls(self) -> list[str]:
        return self._path.with_suffix(".calls").read_text().split()

    def rpc(self, **request: Any) -> bytes:
        """A request as the public dyno sends it; the reply as it came."""
        body = json.dumps(request).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self.daemon.unix))
            connection.sendall(struct.pack("=i", len(body)) + body)
            reply = b""
            while part := connection.recv(65536):
                reply += part
        assert struct.unpack("=i", reply[:4])[0] == len(reply) - 4
        return reply[4:]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    directory = tmp_path_factory.mktemp("gpu")
    path = directory / "script.json"
    Script(readings=readings(2)).write(path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ("--enable_gpu_monitor", f"--gpu_backend={PLACE}", INTERVAL, "--gpu_deadline_s=1", "--use_JSON")
    more = ("--use_prometheus", f"--prometheus_port={port}", "--prometheus_names=standard", "--reporting_interval_s=1")
    environment = {**os.environ, "PYTHONPATH": str(TESTS), SCRIPT: str(path)}
    with running_daemon(directory, *flags, *more, env=environment) as daemon:
        yield Machine(daemon, path, f"http://127.0.0.1:{port}/metrics")


@pytest.fixture(autouse=True)
def well(machine: Machine) -> Iterator[None]:
    """Each test begins with two devices that are read."""
    machine.script(readings=readings(2))
    eventually(lambda: len(machine.gpus()) == 2 and not machine.daemon.ask("gpus")["gpu"]["why"], 60, "two GPUs")
    yield


def test_the_log_has_a_line_for_each_device(machine: Machine) -> None:
    # The first record has no deltas yet.
    lines = eventually(
        lambda: [line for line in list(machine.daemon.lines) if '"device":1,' in line and '"pcie_replays":' in line]
    )
    data = json.loads(lines[-1].partition("data = ")[2])
    assert data["gpu_power_draw"] == "301.500"
    assert data["gpu_name"] == "NVIDIA H200"
    assert data["pcie_replays"] == 0


def test_prometheus_has_each_device(machine: Machine) -> None:
    machine.has(r'^dynolog_gpu_power_draw_watts\{device="1",gpu_name="NVIDIA H200".*\} 301\.5$')
    machine.has(r"^dynolog_gpus_seen 2$")
    machine.has(r'^dynolog_source_up\{source="gpu"\} 1$')


def test_gpus_are_shown_with_what_is_known(machine: Machine) -> None:
    shown = machine.daemon.dyno("gpus")
    assert shown.returncode == 0
    header, first, second, *rest = shown.stdout.splitlines()
    assert header.split()[:4] == ["GPU", "NAME", "USE", "MEMORY"]
    assert re.search(r"^0 +NVIDIA H200 +- +12\.3/141\.0 GB +300/700 W +- +- +ok ", first)
    assert str(os.getpid()) in first
    assert second.startswith("1 ")
    assert "GPUs are read with" in rest[0]


def test_more_devices_and_metrics_may_come_later(machine: Machine) -> None:
    field = Metric(name="dcgm_field_1099", kind=Kind.GAUGE, unit="W", description="a new field", scope=Scope.GPU)
    more = readings(3, gpu_instance_id=None)
    more[2] = GpuReading(device="2", uuid="GPU-2", values={"dcgm_field_1099": 4.5})
    machine.script(readings=more, declared=[field])
    machine.has(r'^dynolog_gpu_dcgm_field_1099_watts\{device="2".*\} 4\.5$')
    machine.script(readings=readings(2))
    eventually(lambda: 'device="2"' not in machine.page(), what="the device leaves the page")


def test_a_lost_device_shows_in_numbers_and_words(machine: Machine) -> None:
    """C01: the others go on."""
    lost = [readings(1)[0], GpuReading(device="1", uuid="GPU-1", is_up=False, error="GPU is lost")]
    machine.script(readings=lost)
    machine.has(r'^dynolog_gpu_up\{device="1".*\} 0$')
    machine.has(r"^dynolog_gpus_seen 1$")
    machine.has(r'^dynolog_gpu_power_draw_watts\{device="0".*\} 300\.5$')
    shown = machine.daemon.dyno("gpus").stdout
    assert "lost: GPU is lost" in shown
    assert "1 of 2 GPUs answer" in shown


def test_an_xid_is_counted_and_shown(machine: Machine) -> None:
    hurt = readings(2)
    hurt[0] = GpuReading(
        device="0", uuid="GPU-0", name="NVIDIA H200", counters={"xid_errors.31": 0, "xid_errors.79": 1}
    )
    machine.script(readings=hurt)
    machine.has(r'^dynolog_gpu_xid_errors_total\{device="0".*xid="79"\} 1$')
    assert re.search(r"Xid 79 .* ago", machine.daemon.dyno("gpus").stdout)


def test_profiling_is_paused_shown_and_goes_on_by_itself(machine: Machine) -> None:
    assert machine.rpc(fn="dcgmProfPause", duration_s=300) == b'{"status":true}'
    assert machine.rpc(fn="getStatus") == b'{"status":1}'
    assert "GPU profiling is paused until" in machine.daemon.dyno("status").stdout
    assert "Profiling is paused for" in machine.daemon.dyno("gpus").stdout
    assert machine.rpc(fn="dcgmProfPause", duration_s=1) == b'{"status":true}'
    eventually(lambda: [call for call in machine.calls() if call != "sample"][-1] == "resume", what="it resumes")
    eventually(lambda: "paused" not in machine.daemon.dyno("status").stdout, what="status forgets it")


def test_profiling_is_resumed_when_asked(machine: Machine) -> None:
    assert machine.daemon.dyno("dcgm-pause", "--duration-s", "300").returncode == 0
    resumed = machine.daemon.dyno("dcgm-resume")
    assert resumed.returncode == 0
    assert '{"status":true}' in resumed.stdout
    assert "paused" not in machine.daemon.dyno("status").stdout
    machine.script(readings=readings(2), profiles=False)
    assert machine.rpc(fn="dcgmProfPause", duration_s=300) == b'{"status":false}'


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("crash", r"ended in sample: SIGSEGV"),
        ("hang", r"has not returned from sample within 1 s"),
        ("garbage", r"gave an answer to sample that is none"),
    ],
)
def test_a_driver_in_trouble_costs_the_gpus_only(machine: Machine, how: str, said: str) -> None:
    """It is told, the kernel's metrics and the RPC go on, and the GPUs return by themselves."""
    machine.script(readings=readings(2), on_sample=how)
    machine.daemon.wait_for(re.search(r"[\w .]+", said)[0])  # type: ignore[index] # it has words
    eventually(lambda: re.search(said, machine.daemon.ask("gpus")["gpu"]["why"]), what=said)
    eventually(lambda: machine.rpc(fn="getStatus") == b'{"status":0}', what="the status is 0")
    # Nobody takes old values for present ones.
    eventually(lambda: machine.daemon.dyno("gpus").stdout.startswith("No GPU is read: "), what="no old table")
    machine.has(r'^dynolog_source_up\{source="gpu"\} 0$')
    assert 'dynolog_gpu_power_draw_watts{device="0"' not in machine.page()
    machine.has(r'^dynolog_source_up\{source="kernel"\} 1$')
    machine.script(readings=readings(2))
    eventually(lambda: machine.rpc(fn="getStatus") == b'{"status":1}', 120, "the GPUs return")
    machine.has(r'^dynolog_source_up\{source="gpu"\} 1$')


def test_the_daemon_leaves_no_child_behind(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    Script(readings=readings(1), on_open="hang").write(path)
    environment = {**os.environ, "PYTHONPATH": str(TESTS), SCRIPT: str(path)}
    flags = ("--enable_gpu_monitor", f"--gpu_backend={PLACE}", INTERVAL)
    with running_daemon(tmp_path, *flags, env=environment) as daemon:
        eventually(lambda: path.with_suffix(".calls").exists(), what="the child hangs")
        pids = []
        for task in Path(f"/proc/{daemon.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # a thread that has ended
                pids += [int(pid) for pid in (task / "children").read_text().split()]
        assert len(pids) == 1
        daemon.popen.send_signal(signal.SIGINT)
        daemon.popen.wait(10)
    eventually(lambda: not Path(f"/proc/{pids[0]}").exists(), what="the child has ended")


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    (tmp_path / "root/sys/bus/pci/devices/0000:00:01.0").mkdir(parents=True)
    (tmp_path / "root/proc").mkdir()
    with running_daemon(tmp_path / "d", "--enable_gpu_monitor", INTERVAL, f"--root_dir={tmp_path / 'root'}") as daemon:
        daemon.wait_for("gpu is not available: GPUs: no backend works here (dcgm: no NVIDIA device is in this machine")
        shown = daemon.dyno("gpus")
        assert shown.returncode == 1
        assert "No GPU is read: GPUs: no backend works here" in shown.stdout


def test_without_the_flag_nothing_is_started(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        shown = daemon.dyno("gpus")
        assert shown.returncode == 1
        assert "--enable_gpu_monitor" in shown.stdout
        assert daemon.dyno("dcgm-pause").returncode == 1


def test_without_a_backend_by_choice_nothing_fails(tmp_path: Path) -> None:
    """One configuration for all hosts, `none` on some: the status is 1, and why there are no GPUs is said all the same."""
    with running_daemon(tmp_path, "--enable_gpu_monitor", "--gpu_backend=none", INTERVAL) as daemon:
        daemon.wait_for("gpu is not available: gpu: --gpu_backend=none")
        assert daemon.ask("status")["status"] == 1
        assert "--gpu_backend=none" in daemon.dyno("gpus").stdout
