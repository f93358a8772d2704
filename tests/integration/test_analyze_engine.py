"""dyno analyze in several processes and on a Dask cluster gives what it gives here."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynolog.analysis import many
from dynolog.cli.main import main
from fakes.training_job import TrainingJob

CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("job")
    job = TrainingJob(3)
    job.slow_ranks[1] = 1.4
    job.write(directory)
    return directory


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A scheduler and two workers, each a process; `dask://HOST:PORT`."""
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("tcp://127.0.0.1:"), address
            yield "dask" + address.removeprefix("tcp")
            process.stdin.close()
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def analysed(*words: str) -> dict[str, Any]:
    """By a process of its own, as users run it."""
    done = subprocess.run(
        [sys.executable, "-m", "dynolog.cli.main", "analyze", "--json", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_dask_cluster_reads_the_files_and_gives_the_same_answer(traces: Path, scheduler: str) -> None:
    here = analysed(str(traces))
    assert [finding["kind"] for finding in here["findings"]] == ["slow_rank"]
    assert analysed(str(traces), "--engine", scheduler) == here


def test_several_processes_give_the_same_answer(traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert main(["analyze", "--json", str(traces)]) == 0
    here = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(many, "_WORTH_BYTES", 0)
    monkeypatch.setattr(many, "usable_cores", lambda: 2)
    assert main(["analyze", "--json", str(traces)]) == 0
    assert json.loads(capsys.readouterr().out) == here
