"""Real PyTorch processes that start others which import PyTorch too: who of them trains, on a host without GPUs."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import (
    TORCH_PYTHON,
    Daemon,
    Process,
    eventually,
    needs_torch,
    running_daemon,
    trainer_env,
)

pytestmark = [needs_torch, pytest.mark.torch]

# Neither parent nor child has RANK in its environment, and both run the same file.
_TRAINING = """
import os, sys, time
import torch

def train(index, batches):
    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, batch in enumerate(batches):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if step == 20:
            os.write(1, f"trains {os.getpid()}\\n".encode())

def forever(index):
    train(index, iter(lambda: torch.randn(64, 256), None))

class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(64, 256)
            time.sleep(0.005)
"""
_LOADER = """
if __name__ == "__main__":
    train(0, torch.utils.data.DataLoader(Endless(), num_workers=2, batch_size=None, multiprocessing_context="spawn"))
"""
_SPAWN = """
if __name__ == "__main__":
    torch.multiprocessing.spawn(forever, nprocs=2)
"""


@contextlib.contextmanager
def family(directory: Path, daemon: Daemon, script: str) -> Iterator[Process]:
    file = directory / "train.py"
    file.write_text(_TRAINING + script)
    env = trainer_env(directory, daemon.ipc_dir)
    process = Process([str(TORCH_PYTHON), str(file)], env=env, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stop(signal.SIGKILL)


def would_trace(daemon: Daemon, *options: str) -> dict[str, Any]:
    answer = daemon.ask("gputrace", "--log-file", "/tmp/family.json", "--dry-run", *options)
    assert isinstance(answer, dict)
    return answer


def test_a_trainer_whose_data_loaders_register_too_is_traced_and_preferred(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d") as daemon, family(tmp_path, daemon, _LOADER) as process:
        process.wait_for("trains ", timeout_s=240)
        assert len(daemon.wait_for_trainers(3)) == 3
        eventually(
            lambda: process.pid in would_trace(daemon)["activityProfilersTriggered"],
            120,
            "the trainer among those to be traced",
        )
        assert would_trace(daemon, "--process-limit", "1")["activityProfilersTriggered"] == [process.pid]
        by_pid = {trainer["host_pid"]: trainer for trainer in daemon.trainers()}
        assert not any(trainer.get("launcher") for trainer in by_pid.values())


def test_a_parent_that_waits_for_the_ranks_that_it_spawned_is_their_launcher(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d") as daemon, family(tmp_path, daemon, _SPAWN) as process:
        ranks = {int(line.split()[1]) for line in process.wait_for("trains ", count=2, timeout_s=240)}
        assert len(daemon.wait_for_trainers(3)) == 3
        answer = would_trace(daemon)
        assert set(answer["activityProfilersTriggered"]) == ranks
        assert [(one["host_pid"], one["code"]) for one in answer["not_traced"]] == [(process.pid, "launcher")]
        assert would_trace(daemon, "--process-limit", "2", "--include-launchers")[
            "activityProfilersTriggered"
        ] == sorted(ranks)
