"""GPUs beside a trace: what their monitor measured, in the trace that was recorded meanwhile, from a real daemon and its child process."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dynolog.model.gpu import GpuProcess, GpuReading
from fakes.gpu_backend import PLACE, SCRIPT, Script
from fakes.scripted_trainer import ScriptedTrainer
from integration.harness import eventually, running_daemon

TESTS = Path(__file__).resolve().parents[1]
MS = 1_000_000


def gpus(clock_mhz: int, reasons: int, *pids: int) -> Script:
    values = {"gpu_power_draw": 410.5, "gpu_frequency_mhz": clock_mhz, "gpu_clock_event_reasons": reasons}
    reading = GpuReading(device="5", uuid="GPU-5", values=values, processes=tuple(GpuProcess(pid=pid) for pid in pids))
    return Script(readings=[reading])


def test_a_clock_that_drops_while_a_trace_is_recorded_is_in_the_trace(tmp_path: Path) -> None:
    """Before the drop, after it, and each at the time when it was measured, though the monitor would not look again for ten minutes; and
    which GPU the trainer has. The daemon says what its samples cost, and leaves the driver alone after that.
    """
    script = tmp_path / "script.json"
    calls = script.with_suffix(".calls")
    gpus(1980, 0).write(script)
    fabric = f"dynolog-burst-{os.getpid()}"
    monitor = ("--enable_gpu_monitor", f"--gpu_backend={PLACE}", "--dcgm_reporting_interval_s=600")
    environment = {**os.environ, "PYTHONPATH": str(TESTS), SCRIPT: str(script)}
    with (
        running_daemon(
            tmp_path / "d", *monitor, "--reporting_interval_s=0.2", fabric=fabric, env=environment
        ) as daemon,
        ScriptedTrainer(fabric) as trainer,
    ):
        trainer.poll()
        eventually(lambda: calls.exists() and "sample" in calls.read_text())
        command = [sys.executable, "-m", "dynolog.cli.main", "--unix", str(daemon.unix), "--json", "gputrace"]
        recording = (
            "--log-file",
            f"{tmp_path}/t.json",
            "--duration-ms",
            "30000",
            "--warmup-s",
            "0",
            "--host-interval-ms",
            "20",
        )
        asking = subprocess.Popen(
            [*command, *recording, "--fetch", str(tmp_path / "got")], stdout=subprocess.PIPE, text=True
        )
        eventually(trainer.poll, what="a config")
        begin_ns = time.time_ns()
        (request,) = daemon.ask("trace")["requests"]

        def clocks() -> set[float]:
            blocks: list[dict[str, Any]] = daemon.ask("trace", "host", request["request_id"])["blocks"]
            series = [one for block in blocks for one in block["series"]]
            return {value for one in series if one["name"] == "gpu_clock_mhz.5" for value in one["values"]}

        eventually(lambda: 1980.0 in clocks())
        dropped_ns = time.time_ns()
        gpus(1200, 0x80, trainer.host_pid, 1).write(script)
        eventually(lambda: 1200.0 in clocks())
        end_ns = time.time_ns()
        event = {
            "ph": "X",
            "cat": "cpu_op",
            "name": "a",
            "pid": 1,
            "tid": 1,
            "ts": 0.0,
            "dur": (end_ns - begin_ns) / 1000,
        }
        trainer.poll(mask=1)
        trainer.write(
            f"{tmp_path}/t_{trainer.host_pid}.json",
            json.dumps({"traceEvents": [event], "baseTimeNanoseconds": begin_ns}),
        )
        said, _ = asking.communicate(timeout=120)
        assert asking.returncode == 0, said
        daemon.wait_for("sampled the host beside traces: ")
        asked = calls.read_text().count("sample")
        daemon.wait_for("data = {", count=daemon.output.count("data = {") + 3)
        assert calls.read_text().count("sample") == asked > 2
    trace = json.loads(Path(json.loads(said)["fetched"][0]["path"]).read_bytes())
    tracks: dict[str, list[tuple[int, float]]] = {}
    for one in trace["traceEvents"]:
        if one["ph"] == "C":
            tracks.setdefault(one["name"], []).append((begin_ns + int(one["ts"] * 1000), one["args"]["value"]))
    clock = tracks["host gpu_clock_mhz.5"]
    assert {value for _, value in clock} == {1980.0, 1200.0}
    assert all(at_ns >= dropped_ns for at_ns, value in clock if value == 1200.0)
    assert {value for _, value in tracks["host gpu_throttle.5"]} == {0.0, 128.0}
    assert {value for _, value in tracks["host gpu_power_watts.5"]} == {410.5}
    assert [name for name in tracks if "held" in name or "process" in name] == ["host gpu_held.5"]
    assert "host cpu_user_pct" in tracks
