"""The soak in short: each fault under some load, and churn; `make soak` is the long form (docs/soak.md)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.harness import needs_root, tool

REPOSITORY = Path(__file__).resolve().parents[2]
FAULTS = (
    "full_disk",
    "no_descriptors",
    "no_memory_in_a_collector",
    "suspended",
    "frozen_cgroup",
    "hung_mount",
    "black_hole",
    "no_dns",
    "no_ipv6",
    "hidden_proc",
    "churn_of_processes",
    "churn_of_namespaces",
    "churn_of_trainers",
    "clock_forward_1h",
    "clock_back_1h",
    "killed_and_restarted",
)

pytestmark = [needs_root, pytest.mark.root]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What came of all of them, in one run."""
    for program in ("unshare", "ip", "setpriv", "mount"):
        tool(program)
    if not list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")):
        pytest.skip("needs libfaketime")
    command = [sys.executable, "-m", "soak.run", "--json", "--trainers=64", "--interval=1", "--rpc-per-s=10", "--hold=2",
               "--settle=3", "--scale=0.03"]  # fmt: skip
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=900, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        pytest.fail(done.stderr[-5000:])
    return answer


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_survived(report: dict[str, Any], fault: str) -> None:
    """Everything else works meanwhile, every trainer is answered, the daemon speaks of it, and it is over when the fault is."""
    (result,) = (one for one in report["results"] if one["fault"] == fault)
    assert result["problems"] == []
    assert result["trainers"]["answered"] > 0
    assert result["usage"]["rss_mb"] <= 64


def test_no_fault_is_left_out_and_nothing_is_leaked(report: dict[str, Any]) -> None:
    assert [one["fault"] for one in report["results"]] == ["none", *FAULTS]
    assert report["problems"] == []
    assert report["taken_by_receiver"] > 30
