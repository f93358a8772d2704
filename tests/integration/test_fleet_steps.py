"""--auto-roundup on real PyTorch: the time of an iteration is measured, and all ranks then begin at the same one."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.harness import (
    TORCH_PYTHON,
    Daemon,
    Process,
    needs_torch,
    running_daemon,
    running_trainer,
    trainer_env,
)

pytestmark = [needs_torch, pytest.mark.torch]


def steps_of(path: str) -> list[dict[str, Any]]:
    events = json.loads(Path(path).read_bytes())["traceEvents"]
    return [event for event in events if event.get("name", "").startswith("Optimizer.step#") and event["ph"] == "X"]


def test_the_round_up_is_chosen_from_a_measured_iteration(tmp_path: Path) -> None:
    """Two ranks under torchrun: a short trace of one of them first, then both from one multiple of a round-up that is large enough."""
    with running_daemon(tmp_path / "d") as daemon:
        words: tuple[str, ...] = (*target(daemon), "gputrace", "--log-file", f"{tmp_path}/t/", "--ranks", "0,1")
        words += ("--iterations", "3", "--auto-roundup", "--fetch", str(tmp_path / "got"))
        with running_trainer(trainer_env(tmp_path, daemon.ipc_dir), ranks=2):
            daemon.wait_for_trainers(3)
            done = dyno(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads((tmp_path / "got" / "manifest.json").read_bytes())
    measured, chosen = manifest["notes"]
    step_ms = float(re.findall(r"an iteration takes ([\d.]+) ms, from \d+ of them in 1 process", measured)[0])
    assert step_ms >= 10  # what a step takes at least
    roundup, passing = map(int, re.findall(r"round-up (\d+): (\d+) iterations", chosen)[0])
    assert passing * step_ms >= 1000  # polls come every second
    assert roundup > passing
    ranks = manifest["processes"]
    assert [process["rank"] for process in ranks] == [0, 1]
    for process in ranks:
        assert 2 <= len(steps_of(process["path"])) <= 4
        trace = json.loads(Path(process["fetched"]).read_bytes())
        assert trace["distributedInfo"] == {"rank": process["rank"], "world_size": 2, "backend": "gloo"}
    first, second = (process["begin_wall_ns"] for process in ranks)
    # An all-reduce holds both in the same iteration; a round-up apart they would be 2 s.
    assert abs(first - second) < roundup * step_ms * 1e6 / 2
    assert "ecording began" in done.stdout


def test_a_process_without_an_optimizer_tells_no_step(tmp_path: Path) -> None:
    """Nothing of what was asked for is started then, and it is said what to do."""
    with running_daemon(tmp_path / "d") as daemon:
        env = trainer_env(tmp_path, daemon.ipc_dir, RANK="0")
        code = "import time, torch; print('up', flush=True)\nwhile True: time.sleep(0.1)"
        idle = [Process([str(TORCH_PYTHON), "-c", code], env=env) for _ in range(2)]
        try:
            daemon.wait_for_trainers(2)
            words = (*target(daemon), "gputrace", "--log-file", f"{tmp_path}/t/", "--iterations", "3", "--auto-roundup")
            done = dyno(*words)
        finally:
            for process in idle:
                process.stop(signal.SIGKILL)
    assert done.returncode == 1, done.stdout
    assert "nothing was started: --auto-roundup cannot tell how long an iteration takes" in done.stderr
    assert "say --step-ms" in done.stderr
    assert not list((tmp_path / "t").glob("127*"))


def target(daemon: Daemon) -> tuple[str, str]:
    """The daemon as one of many hosts."""
    (line,) = daemon.wait_for("RPC listens on")
    match = re.search(r"127\.0\.0\.1:(\d+)", line)
    assert match, line
    return "--hosts", f"127.0.0.1:{match[1]}"


def dyno(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dynolog.cli.main", *words], capture_output=True, text=True, timeout=180, check=False
    )
