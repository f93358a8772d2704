"""Each declared metric has a test in which its value is a number counted by hand: spoil the value, and a test fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynolog.collectors.registry import COLLECTORS

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", [spec.name for spec in COLLECTORS])
def test_no_metric_of_a_collector_is_untested(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(TESTS / "integration" / "metric_mutants.py"), name],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
