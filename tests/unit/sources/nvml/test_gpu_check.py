"""The comparison with nvidia-smi, on a machine that has neither: a library and a command that stand in for the driver's."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.nvml.library import NvmlScript, environment

TOOL = Path(__file__).resolve().parents[4] / "tools" / "gpu_check.py"
MODULE = runpy.run_path(str(TOOL))
COLUMNS, NON_VALUES, number = MODULE["COLUMNS"], MODULE["NON_VALUES"], MODULE["number"]
# What the library says of itself, as nvidia-smi prints it.
PRINTED = {
    "utilization.gpu": "0",
    "utilization.memory": "0",
    "clocks.sm": "1100",
    "clocks.mem": "1200",
    "clocks.max.sm": "2080",
    "clocks.max.mem": "2180",
    "power.draw.instant": "300.00",
    "enforced.power.limit": "700.00",
    "power.max_limit": "700.00",
    "temperature.gpu": "45",
    "temperature.memory": "N/A",
    "fan.speed": "40",
    "memory.total": "81920",
    "memory.reserved": "512",
    "memory.used": "10240",
    "memory.free": "71168",
    "pcie.link.gen.gpucurrent": "5",
    "pcie.link.gen.max": "5",
    "pcie.link.width.current": "16",
    "pcie.link.width.max": "16",
} | dict.fromkeys(
    (
        f"ecc.errors.{kind}.{since}.total"
        for kind in ("corrected", "uncorrected")
        for since in ("volatile", "aggregate")
    ),
    "[N/A]",
)
COMMAND = """#!{python}
import json, sys
printed = json.loads({printed!r})
queries = sys.argv[1].removeprefix("--query-gpu=uuid,").split(",")
if not set(queries) <= set(printed):
    sys.exit(f"Field {{queries}} is not a valid field to query.")
for index in range(2):
    print(f"GPU-00000000-0000-0000-0000-{{index:012d}}", *(printed[query] for query in queries), sep=", ")
"""


def run(library: Path, folder: Path, printed: dict[str, str]) -> subprocess.CompletedProcess[str]:
    script = NvmlScript(folder / "script")
    script.set({"count": 2, "gpu.*.energy": "@1000+300000"})
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    smi = commands / "nvidia-smi"
    smi.write_text(COMMAND.format(python=sys.executable, printed=json.dumps(printed)))
    smi.chmod(0o755)
    env = {**environment(library, script), "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, str(TOOL), "--rounds=2", "--pause=0.01"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_same_values_agree(nvml_library: Path, tmp_path: Path) -> None:
    done = run(nvml_library, tmp_path, PRINTED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differences" in done.stdout
    assert "ok      GPU 1 gpu_memory_used_bytes: 10737418240; nvidia-smi memory.used: 10240" in done.stdout
    assert "nvidia-smi does not know remapped_rows.correctable, remapped_rows.uncorrectable" in done.stdout


@pytest.mark.parametrize("change", [("memory.used", "10752"), ("temperature.memory", "51"), ("clocks.max.sm", "N/A")])
def test_another_value_differs(nvml_library: Path, tmp_path: Path, change: tuple[str, str]) -> None:
    """A value that is off, one that only nvidia-smi has, and one that only we have."""
    rows = dict.fromkeys(("remapped_rows.correctable", "remapped_rows.uncorrectable"), "[N/A]")
    done = run(nvml_library, tmp_path, {**PRINTED, **rows, change[0]: change[1]})
    assert done.returncode == 1
    assert "2 differences" in done.stdout


def test_a_machine_without_gpus_is_said_loudly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL)],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "NOTHING WAS CHECKED" in done.stderr


@given(st.sampled_from(sorted(NON_VALUES)), st.booleans())
def test_non_values_are_no_numbers(text: str, is_upper: bool) -> None:
    """C04: [N/A], N/A, [Not Supported], [Unknown Error], ERR!, [GPU requires reset]."""
    assert number(f" {text.upper() if is_upper else text} ") is None


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1))
def test_what_lies_between_fits(before: float, after: float, share: float) -> None:
    ours = before + (after - before) * share
    assert all(column.fits(ours, before, after) for column in COLUMNS if column.relative or before == after)
    exact = next(column for column in COLUMNS if column.query == "clocks.max.sm")
    assert exact.fits(before, before, before)
    assert not exact.fits(before + 1, before, before)
