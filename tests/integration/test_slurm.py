"""Jobs of a real SLURM of three nodes: their hosts, their processes, and one daemon a node."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import REPOSITORY, TORCH_PYTHON, TRAIN, eventually, needs_torch
from integration.slurm_cluster import SlurmCluster, running_cluster

pytestmark = pytest.mark.root
TRAINER = f"{sys.executable} {REPOSITORY}/tests/fakes/looping_trainer.py"
# What ps shows of a daemon that dyno-run started in this cluster; the node's name is in its directory's.
DAEMON = re.compile(r"dynolog\.daemon\.main .*/dynolog-run-\d+-(n\d)/rpc\.sock")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with running_cluster() as slurm:
        token = slurm.directory / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        token.chmod(0o600)
        # Reachable from the machine on which jobs are submitted.
        slurm.set("DYNO_RUN_FLAGS", f"--rpc_bind_address=:: --rpc_token_file={token}")
        yield slurm


@pytest.fixture
def traces(cluster: SlurmCluster, request: pytest.FixtureRequest) -> Path:
    path = cluster.directory / f"traces-{request.node.name}"
    path.mkdir()
    return path


def dyno(cluster: SlurmCluster, *arguments: str) -> Any:
    """What `dyno --json` answers."""
    said = cluster.run("dyno", "--json", "--token-file", f"{cluster.directory}/token", *arguments)
    return json.loads(said)


def daemons(cluster: SlurmCluster) -> list[str]:
    """The nodes of the daemons of this cluster that run now."""
    lines = cluster.run("ps", "axww", "-o", "args").splitlines()
    return sorted(found[1] for line in lines if str(cluster.directory) in line and (found := DAEMON.search(line)))


def script(cluster: SlurmCluster, name: str, body: str) -> str:
    path = cluster.directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def wait_for_processes(cluster: SlurmCluster, job: str, count: int, timeout_s: float = 120.0) -> list[dict[str, Any]]:
    """The trainers of a job, by the daemons of its hosts, once there are `count` whose ranks are known."""

    def enough() -> list[dict[str, Any]]:
        said = cluster.run(
            "dyno", "--json", "--token-file", f"{cluster.directory}/token", "ps", "--slurm-job", job, check=False
        )
        try:
            hosts = json.JSONDecoder().raw_decode(said)[0]["hosts"]  # notes may follow
        except (ValueError, KeyError):  # no host yet
            return []
        found = [
            {**trainer, "host": host["host"]}
            for host in hosts
            for trainer in (host.get("reply") or {}).get("trainers", ())
        ]
        ready = [trainer for trainer in found if trainer.get("rank") is not None and not trainer.get("launcher")]
        return ready if len(ready) >= count else []

    return eventually(enough, timeout_s, f"{count} trainers of job {job}: {cluster.logs()}")


def test_one_daemon_a_node_however_many_tasks(cluster: SlurmCluster) -> None:
    """`srun` of seven tasks on three nodes: three daemons while they run, none afterwards; each task has its environment."""
    tasks, seen = cluster.directory / "tasks", cluster.directory / "seen"
    tasks.mkdir()
    said = 'echo "$SLURMD_NODENAME $KINETO_USE_DAEMON"'
    task = f"{said}; : > {tasks}/$SLURM_PROCID; until [ -e {seen} ]; do sleep 0.1; done"
    step = cluster.start_command("srun", "-N3", "-n7", "dyno-run", "sh", "-c", task)
    eventually(lambda: len(list(tasks.iterdir())) == 7, 60, "every task runs")
    assert daemons(cluster) == ["n1", "n2", "n3"]
    seen.touch()
    stdout, stderr = step.communicate(timeout=120)
    assert sorted(set(stdout.split("\n"))) == ["", "n1 1", "n2 1", "n3 1"], stderr
    assert (step.returncode, stdout.count("\n"), stderr.count("started dynolog")) == (0, 7, 3)
    eventually(lambda: daemons(cluster) == [], 60, "no daemon is left")
    assert list((cluster.directory / "run").iterdir()) == []


def test_exit_codes_and_signals_reach_srun(cluster: SlurmCluster) -> None:
    """What the command ends with is what SLURM sees; a cancelled job leaves no daemon behind."""
    assert "exit code 9" in cluster.run("srun", "-n2", "dyno-run", "sh", "-c", "exit 9", check=False).lower()
    at = cluster.directory
    patient = script(
        cluster,
        "patient.sh",
        f"trap 'echo > {at}/checkpoint; exit 0' TERM\necho > {at}/began\nwhile :; do sleep 0.1; done",
    )
    job = cluster.submit("-n2", script(cluster, "trap.sh", f"exec srun dyno-run {patient}"))
    eventually((at / "began").exists, 60, "the command runs")
    assert len(daemons(cluster)) == 1
    cluster.run("scancel", job)
    cluster.wait_for_job(job)
    eventually((cluster.directory / "checkpoint").exists, 60, "the command handled the signal")
    eventually(lambda: daemons(cluster) == [], 60, "no daemon is left")


def test_an_array_job_is_traced_by_element(cluster: SlurmCluster, traces: Path) -> None:
    """`A_2` means the processes of that element only, `A_[1-2]` those of two, `A` all; files say which host and rank."""
    run = script(cluster, "array.sh", f"RANK=$SLURM_ARRAY_TASK_ID WORLD_SIZE=3 exec dyno-run {TRAINER} 600")
    job = cluster.submit("--array=1-3", "-N1", "-n1", run)
    ranks = {trainer["rank"]: trainer["job"] for trainer in wait_for_processes(cluster, job, 3)}
    assert ranks == {1: f"{job}_1", 2: f"{job}_2", 3: f"{job}_3"}
    for text, count in ((f"{job}_2", 1), (f"{job}_[1-2]", 2), (job, 3)):
        plan = dyno(cluster, "gputrace", "--slurm-job", text, "--log-file", str(traces), "--dry-run")
        assert len(plan["processes"]) == count, plan
    manifest = dyno(
        cluster,
        "gputrace",
        "--slurm-job",
        f"{job}_[2-3]",
        "--log-file",
        str(traces),
        "--duration-ms",
        "200",
        "--warmup-s",
        "0",
        "--wait",
    )
    assert [process["rank"] for process in manifest["processes"]] == [2, 3]
    assert {process["outcome"] for process in manifest["processes"]} == {"written"}
    assert len(list(traces.rglob("*_rank[23]_*.json"))) == 2
    cluster.run("scancel", job)


def test_a_heterogeneous_job_by_component(cluster: SlurmCluster) -> None:
    """Processes of every component carry the first one's id; a component chooses hosts."""
    run = script(cluster, "het.sh", f"exec srun --het-group=0,1 sh -c 'RANK=$SLURM_PROCID exec dyno-run {TRAINER} 600'")
    job = cluster.submit("-N1", "-n8", ":", "-N1", "-n1", run)
    assert len(wait_for_processes(cluster, job, 9)) == 9
    assert [trainer["rank"] for trainer in wait_for_processes(cluster, f"{job}+1", 1)] == [8]
    cluster.run("scancel", job)


def test_jobs_without_hosts_say_why(cluster: SlurmCluster) -> None:
    """Pending, over and unknown."""
    pending = cluster.submit("--hold", script(cluster, "held.sh", "true"))
    over = cluster.submit(script(cluster, "short.sh", "true"))
    cluster.wait_for_job(over)
    for job, sentence in (
        (pending, "is pending (JobHeldUser): it has no hosts yet"),
        (over, "is over (completed)"),
        ("99999", "SLURM knows no job 99999"),
    ):
        assert sentence in cluster.run("dyno", "status", "--slurm-job", job, check=False)
    cluster.run("scancel", pending)


@needs_torch
def test_a_torchrun_job_on_two_nodes(cluster: SlurmCluster, traces: Path) -> None:
    """`sbatch` of four real ranks, all traced at one time with one command, by the arguments of unitrace."""
    torchrun = (
        f"{TORCH_PYTHON} -m torch.distributed.run --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=n1:29507 "
        f"--rdzv_id=$SLURM_JOB_ID {TRAIN} --seconds 600 --step-ms 20"
    )
    config = cluster.directory / "libkineto.conf"
    config.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    exports = f"export KINETO_CONFIG={config} GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1"
    run = script(cluster, "torch.sh", f"{exports}\nexec srun --ntasks-per-node=1 dyno-run {torchrun}")
    job = cluster.submit("-N2", "--nodelist=n1,n2", "--exclusive", run)
    found = wait_for_processes(cluster, job, 4, timeout_s=180)
    assert sorted((trainer["host"], trainer["rank"]) for trainer in found) in (
        [("n1", 0), ("n1", 1), ("n2", 2), ("n2", 3)],
        [("n1", 2), ("n1", 3), ("n2", 0), ("n2", 1)],
    )
    eventually(lambda: cluster.logs().count(" step 1 ") == 4, 180, f"every rank has done a step: {cluster.logs()}")
    cluster.run(
        "unitrace",
        job,
        "-o",
        str(traces),
        "-d",
        "300",
        "--token-file",
        f"{cluster.directory}/token",
        "--warmup-s",
        "1",
        "--wait",
        timeout_s=180,
    )
    files = sorted(path.name for path in traces.glob("libkineto_trace_n?_*.json"))
    assert [name.split("_")[2] for name in files] == ["n1", "n1", "n2", "n2"]
    for name in files:
        assert len(json.loads((traces / name).read_text())["traceEvents"]) > 100
    cluster.run("scancel", job)
    eventually(lambda: daemons(cluster) == [], 60, "no daemon is left")
    assert os.listdir(cluster.directory / "run") == []
