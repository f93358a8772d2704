"""The tools for trace files on what PyTorch's own profiler writes here and now."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dynolog.analysis.reading.load import LoadOptions, load
from integration.harness import TORCH_PYTHON, needs_torch

pytestmark = [needs_torch, pytest.mark.torch]

TRAINING = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.profiler.profile(
    schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),
    record_shapes=True, with_stack=True, with_modules=True, profile_memory=True,
    on_trace_ready=lambda profiler: profiler.export_chrome_trace(sys.argv[1]),
) as profiler:
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(16, 32)).sum().backward()
        optimizer.step()
        profiler.step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch") / "t.json"
    done = subprocess.run(
        [TORCH_PYTHON, "-c", TRAINING, str(path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return path


def events_of(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"]
    return events


def test_all_events_are_read_as_the_standard_library_reads_them(recorded: Path) -> None:
    columns = load(str(recorded), LoadOptions(python_frames=True))
    document = json.loads(recorded.read_bytes(), parse_float=Decimal)
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert [columns.names[name] for name in columns.name] == [event["name"] for event in events]
    base_ns = document["baseTimeNanoseconds"]
    assert columns.begin_ns.tolist() == [int(event["ts"] * 1000) + base_ns for event in events]
    assert columns.duration_ns.tolist() == [int(event["dur"] * 1000) for event in events]
    frames = [event["args"]["Python id"] for event in events if event["cat"] == "python_function"]
    assert columns.argument("python_id").values.tolist() == frames
    assert frames
    assert list(columns.report.sentences()) == []


def test_a_real_trace_is_valid_and_is_cut_and_shrunk(recorded: Path, tmp_path: Path) -> None:
    dyno = [sys.executable, "-m", "dynolog.cli.main", "trace"]
    valid = subprocess.run([*dyno, "validate", str(recorded)], capture_output=True, text=True, check=False)
    assert valid.returncode == 0, valid.stdout
    step, small = tmp_path / "step.json", tmp_path / "small.json"
    for words in (["slice", "--steps", "3", "-o", str(step)], ["shrink", "-o", str(small)]):
        done = subprocess.run([*dyno, *words, str(recorded)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    steps = {event["name"] for event in events_of(step) if event["name"].startswith("ProfilerStep#")}
    assert "ProfilerStep#3" in steps
    assert len(events_of(step)) < len(events_of(recorded))
    kept = events_of(small)
    assert not any(event.get("cat") == "python_function" for event in kept)
    assert not any("Input Dims" in event.get("args", {}) for event in kept)
    operators = [event["name"] for event in events_of(recorded) if event.get("cat") == "cpu_op"]
    assert [event["name"] for event in kept if event.get("cat") == "cpu_op"] == operators
