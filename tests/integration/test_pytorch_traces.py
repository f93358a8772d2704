"""The main job on real PyTorch: every way in which a request can go ends in the right state, with words a user understands."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from integration.harness import (
    eventually,
    ipc_directory,
    needs_root,
    needs_torch,
    running_daemon,
    running_trainer,
    tool,
    trainer_env,
)

pytestmark = [needs_torch, pytest.mark.torch]


def events_of(path: str) -> list[dict[str, Any]]:
    trace = json.loads(Path(path).read_bytes())
    return [event for event in trace["traceEvents"] if event.get("ph") == "X"]


def test_a_duration_trace_of_one_process_is_followed_to_the_checked_file(tmp_path: Path) -> None:
    out = tmp_path / "traces"
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)):
        (trainer,) = daemon.wait_for_trainers(1)
        done = daemon.dyno(
            "gputrace",
            "--log-file",
            f"{out}/t.json",
            "--duration-ms",
            "300",
            "--warmup-s",
            "0",
            "--wait",
            "--fetch",
            str(tmp_path / "got"),
            "--no-with-host",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        path = f"{out}/t_{trainer['pid']}.json"
        assert "Matched 1 processes" in done.stdout
        assert f"    {path}" in done.stdout
        events = events_of(path)
        assert any(event["name"] == "aten::addmm" for event in events)
        fetched = tmp_path / "got" / os.path.basename(path)
        assert fetched.read_bytes() == Path(path).read_bytes()
        (capture,) = daemon.ask("trace")["requests"][0]["captures"]
        assert capture["state"] == "written"
        assert capture["file"]["events"] >= len(events)
        assert capture["history"][0]["state"] == "pending"


def test_an_iteration_trace_holds_the_iterations_asked_for(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)):
        (trainer,) = daemon.wait_for_trainers(1)
        done = daemon.dyno(
            "gputrace",
            "--log-file",
            f"{tmp_path}/i.json",
            "--iterations",
            "3",
            "--profile-start-iteration-roundup",
            "10",
            "--wait",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        steps = [
            event
            for event in events_of(f"{tmp_path}/i_{trainer['pid']}.json")
            if event["name"].startswith("Optimizer.step")
        ]
        assert 2 <= len(steps) <= 4


def test_four_ranks_under_torchrun_write_four_traces_and_the_launcher_none(tmp_path: Path) -> None:
    env = trainer_env(tmp_path, None, SLURM_JOB_ID="90210")
    with running_daemon(tmp_path / "d") as daemon:
        env["KINETO_IPC_SOCKET_DIR"] = str(daemon.ipc_dir)
        with running_trainer(env, ranks=4):
            trainers = daemon.wait_for_trainers(5)
            ranks = {trainer["rank"]: trainer["pid"] for trainer in trainers if trainer.get("rank") is not None}
            assert sorted(ranks) == [0, 1, 2, 3]
            (launcher,) = [trainer for trainer in trainers if trainer.get("rank") is None]
            done = daemon.dyno(
                "gputrace",
                "--job-id",
                "90210",
                "--log-file",
                f"{tmp_path}/t.json",
                "--duration-ms",
                "300",
                "--warmup-s",
                "0",
                "--wait",
            )
            assert done.returncode == 0, done.stdout + done.stderr
            for pid in ranks.values():
                assert events_of(f"{tmp_path}/t_{pid}.json")
            assert not os.path.exists(f"{tmp_path}/t_{launcher['pid']}.json")
            assert "launcher" in done.stdout


@needs_root
@pytest.mark.root
def test_a_trainer_in_its_own_network_and_pid_namespace_needs_no_mount(tmp_path: Path) -> None:
    """Its abstract socket is out of reach and it says pids=[1]: the daemon goes where it is, and knows who it is."""
    # The daemon too, with its loopback up: another one on this machine may hold the name that trainers look for.
    apart = (tool("unshare"), "--net", "sh", "-c", f'{tool("ip")} link set lo up && exec "$@"', "sh")
    unshare = (tool("unshare"), "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    with (
        running_daemon(tmp_path / "d", "--ipc_namespaces", fabric="dynolog", prefix=apart) as daemon,
        running_trainer(trainer_env(tmp_path, None), prefix=unshare),
    ):
        (trainer,) = daemon.wait_for_trainers(1)
        assert trainer["pid"] == 1
        assert trainer["host_pid"] > 1
        done = daemon.dyno(
            "gputrace",
            "--pids",
            str(trainer["host_pid"]),
            "--log-file",
            f"{tmp_path}/n.json",
            "--duration-ms",
            "300",
            "--warmup-s",
            "0",
            "--wait",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert events_of(f"{tmp_path}/n_1.json")


def test_a_daemon_that_starts_after_the_trainer_or_again_finds_it(tmp_path: Path) -> None:
    with running_trainer(trainer_env(tmp_path, ipc_directory(tmp_path / "d"))):
        for attempt in ("late", "restarted"):
            with running_daemon(tmp_path / "d") as daemon:
                daemon.wait_for_trainers(1)
                done = daemon.dyno(
                    "gputrace",
                    "--log-file",
                    f"{tmp_path}/{attempt}.json",
                    "--duration-ms",
                    "200",
                    "--warmup-s",
                    "0",
                    "--wait",
                )
                assert done.returncode == 0, done.stdout + done.stderr


def test_a_trainer_killed_while_recording_ends_the_capture_with_that_reason(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)) as trainer:
        daemon.wait_for_trainers(1)
        started = daemon.ask(
            "gputrace", "--log-file", f"{tmp_path}/k.json", "--duration-ms", "60000", "--warmup-s", "0", "--no-wait"
        )
        request = started["request_id"]

        def capture() -> Any:
            return daemon.ask("trace", request)["requests"][0]["captures"][0]

        eventually(lambda: capture()["state"] == "recording", 30, "the capture is recording")
        os.killpg(trainer.pid, signal.SIGKILL)
        failed = eventually(lambda: capture() if capture()["state"] == "failed" else None, 10, "the capture failed")
        assert failed is not None
        assert "ended" in failed["reason"] or "died" in failed["reason"]
        assert daemon.dyno("trace", request, "--wait").returncode == 1


def test_a_path_that_is_not_allowed_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d") as daemon:
        allowed = tmp_path / "allowed"
        env = trainer_env(tmp_path, daemon.ipc_dir, KINETO_ONDEMAND_TRACE_DIR=str(allowed))
        with running_trainer(env):
            daemon.wait_for_trainers(1)
            done = daemon.dyno("gputrace", "--log-file", f"{tmp_path}/elsewhere/t.json", "--wait")
            assert done.returncode == 1
            assert "KINETO_ONDEMAND_TRACE_DIR" in done.stdout + done.stderr
            assert str(allowed) in done.stdout + done.stderr
            file = tmp_path / "a_file"
            file.touch()
            done = daemon.dyno("gputrace", "--log-file", "/proc/nowhere/t.json", "--wait")
            assert done.returncode == 1


def test_a_second_request_meanwhile_is_busy_and_the_first_goes_on(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)):
        (trainer,) = daemon.wait_for_trainers(1)
        first = daemon.ask(
            "gputrace", "--log-file", f"{tmp_path}/1.json", "--duration-ms", "1500", "--warmup-s", "0", "--no-wait"
        )
        second = daemon.dyno("gputrace", "--log-file", f"{tmp_path}/2.json", "--duration-ms", "200", "--wait")
        assert second.returncode == 1
        assert "busy" in second.stdout
        done = daemon.dyno("trace", first["request_id"], "--wait")
        assert done.returncode == 0, done.stdout + done.stderr
        assert events_of(f"{tmp_path}/1_{trainer['pid']}.json")
        assert not os.path.exists(f"{tmp_path}/2_{trainer['pid']}.json")
