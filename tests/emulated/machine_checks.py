"""Real hardware counters: what the product counted on the emulated ARM machine (tools/pmu_machine.py). Run by `make test-pmu`.

The emulated processor takes 2 ns for an instruction, and has a clock of 1 GHz.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tools.pmu_machine import build, run


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each step of the guest found."""
    directory: Path = tmp_path_factory.mktemp("machine")
    return {result["name"]: result["found"] for result in run(*build(directory))}


def test_no_step_failed(found: dict[str, Any]) -> None:
    assert not {name: step["error"] for name, step in found.items() if "error" in step}
    assert len(found) == 10


def test_the_processors_counters_are_discovered(found: dict[str, Any]) -> None:
    """E10: an ARM PMU under its own name, with the events that the kernel names."""
    assert {"cpu_cycles", "inst_retired"} <= set(found["pmus"]["armv8_pmuv3"])


def test_mips_and_cycles_of_a_processor_of_known_speed(found: dict[str, Any]) -> None:
    values = found["default"]["values"]
    assert values["mega_cycles_per_second"] == pytest.approx(2000, rel=0.1), "two CPUs of 1 GHz"
    assert values["mips"] == pytest.approx(1000, rel=0.1), "an instruction takes 2 ns"
    assert values["perf_running_ratio"] == 1.0
    assert not any(found["default"]["notices"])


def test_instructions_in_a_cycle(found: dict[str, Any]) -> None:
    assert found["ipc"]["values"]["instructions_per_cycle"] == pytest.approx(0.5, rel=0.01)


def test_twelve_events_take_turns_and_are_scaled(found: dict[str, Any]) -> None:
    """E04: each event is scaled by its own times, so all six counts of instructions agree."""
    values = found["twelve"]["values"]
    counts = {
        key.removeprefix("perf_events."): value for key, value in values.items() if key.startswith("perf_events.")
    }
    assert len(counts) == 12
    assert 0.3 < values["perf_running_ratio"] < 0.8
    ratios = [value for key, value in values.items() if key.startswith("perf_group_running_ratio.")]
    assert all(0.3 < ratio < 0.8 for ratio in ratios)
    for name, count in counts.items():
        like = counts["inst_retired"] if name == "inst_retired" or name.endswith("8") else counts["cpu_cycles"]
        assert count == pytest.approx(like, rel=0.03), name
    assert counts["inst_retired"] / counts["cpu_cycles"] == pytest.approx(0.5, rel=0.03)


def test_what_the_machine_lacks_is_said_and_costs_nothing_else(found: dict[str, Any]) -> None:
    """E08: this processor counts no branches."""
    assert found["absent"]["values"]["mips"] == pytest.approx(1000, rel=0.1)
    (notice,) = filter(None, found["absent"]["notices"])
    assert "branches: this machine does not count branch-instructions" in notice
    assert "topdown: " in notice
    assert "membw: " in notice


def test_a_cgroup_is_counted_by_itself(found: dict[str, Any]) -> None:
    """One of two busy processes on two CPUs: about one CPU's part of the host, and less where they met on one.

    Parts and ratios of counts are checked, not speeds: on a loaded machine the emulator runs its CPUs in turns so long
    that a count and the clock are read some per cent of the interval apart.
    """
    values = found["cgroup"]["values"]
    assert 0.25 < values["mips./busy"] / values["mips"] < 0.65
    assert values["mips./busy"] / values["mega_cycles_per_second./busy"] == pytest.approx(0.5, rel=0.02)
    assert not any(found["cgroup"]["notices"])


def test_the_daemon_logs_it(found: dict[str, Any]) -> None:
    *_, line = found["daemon"]["lines"]
    record = json.loads(line.partition("data = ")[2])
    assert 0 < float(record["instructions_per_cycle"]) <= 0.51, "CPUs that wait count cycles and no instructions"


def test_dyno_perf_list_says_what_works_here(found: dict[str, Any]) -> None:
    assert found["list"]["code"] == 0
    table = found["list"]["out"].partition("metric set")[2].partition("\n\n")[0]
    rows = {line.split()[0]: line.split()[1] for line in table.splitlines()[1:]}
    assert (rows["default"], rows["ipc"], rows["software"]) == ("yes", "yes", "yes")
    assert (rows["branches"], rows["membw"]) == ("no", "no")


def test_dyno_perf_stat_counts_the_machine_and_a_process(found: dict[str, Any]) -> None:
    assert found["stat"]["code"] == 0
    reply = json.loads(found["stat"]["out"])
    counts = {event["event"]: event["count"] for event in reply["events"]}
    assert counts["cycles"] / reply["elapsed_s"] == pytest.approx(2e9, rel=0.1)
    assert 0 < counts["instructions"] < counts["cycles"]
    assert found["stat_of_a_process"]["code"] == 0
    assert "instructions:u" in found["stat_of_a_process"]["out"]
