"""Metric sets that each vendor counts in its own way, on recorded machines: what is opened, and hand-computed values."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from dynolog.collectors.perf_groups import Interval
from dynolog.collectors.perf_plan import Plan, groups_of, make_plan
from dynolog.sources.host_files import HostFiles
from dynolog.sources.pmu_devices import discover
from dynolog.sources.pmu_events import parse_event
from dynolog.sources.pmu_tables import table_of
from fakes.pmu_trees import DEVICES, TREES, PmuTree


def plan_of(root: Path, metric_set: str) -> Plan:
    host = HostFiles(str(root))
    devices = discover(host)
    return make_plan(
        groups_of([metric_set], devices), partial(parse_event, devices=devices, named=table_of(host).named)
    )


def plan_on(machine: str, root: Path, metric_set: str) -> Plan:
    TREES[machine](root)
    return plan_of(root, metric_set)


def values(plan: Plan, counts: Mapping[str, float], option: int = 0, elapsed_s: float = 2.0) -> dict[str, float]:
    """The metrics of the first group, with a count for each event by a piece of its name."""
    planned = plan.planned[0].options[option]
    given = [next(count for part, count in counts.items() if part in event.name) for event in planned.events]
    scaled = [count * event.scale for count, event in zip(given, planned.events, strict=True)]
    found = {one.name: one.value(scaled, Interval(elapsed_s, elapsed_s)) for one in planned.derived}
    return {name: value for name, value in found.items() if value is not None}


def test_topdown_of_an_intel_server_is_led_by_slots(tmp_path: Path) -> None:
    plan = plan_on("sapphire_rapids", tmp_path, "topdown")
    (planned,) = plan.planned
    assert planned.options[0].events[0].name == "slots"
    assert len(planned.options[0].banks) == 1, "the kernel counts slots and their kinds in one group only"
    kinds = {"slots": 990, "retiring": 500, "bad-spec": 100, "fe-bound": 150, "be-bound": 250}
    assert values(plan, kinds) == {
        "topdown_retiring_ratio": 0.5,
        "topdown_bad_speculation_ratio": 0.1,
        "topdown_frontend_bound_ratio": 0.15,
        "topdown_backend_bound_ratio": 0.25,
    }


def test_topdown_of_a_hybrid_processor_is_counted_on_both_core_types(tmp_path: Path) -> None:
    """E09: the efficient cores have the kinds without `slots`; both give the same metrics."""
    plan = plan_on("hybrid_client", tmp_path, "topdown")
    by_type = {planned.core_type: planned for planned in plan.planned}
    assert len(by_type["core"].options[0].events) == 5
    assert len(by_type["atom"].options[0].events) == 4
    assert by_type["core"].options[0].derived is by_type["atom"].options[0].derived


def test_topdown_before_ice_lake(tmp_path: Path) -> None:
    tree = PmuTree(tmp_path)
    tree.intel_or_amd("GenuineIntel", 6, 85)
    events = {
        "topdown-total-slots": "event=0x3c,umask=0x0",
        "topdown-total-slots.scale": "4",
        "topdown-slots-issued": "event=0xe,umask=0x1",
        "topdown-slots-retired": "event=0xc2,umask=0x2",
        "topdown-fetch-bubbles": "event=0x9c,umask=0x1",
        "topdown-recovery-bubbles": "event=0xd,umask=0x1,cmask=1",
        "topdown-recovery-bubbles.scale": "4",
    }
    tree.pmu("cpu", 4, {"event": "config:0-7", "umask": "config:8-15", "cmask": "config:24-31"}, events)
    counts = {"total-slots": 250, "issued": 600, "retired": 500, "fetch-bubbles": 150, "recovery-bubbles": 5}
    assert values(plan_of(tmp_path, "topdown"), counts) == {
        "topdown_retiring_ratio": 0.5,
        "topdown_bad_speculation_ratio": pytest.approx(0.12),
        "topdown_frontend_bound_ratio": 0.15,
        "topdown_backend_bound_ratio": pytest.approx(0.23),
    }


def test_topdown_of_zen4_has_six_slots_a_cycle(tmp_path: Path) -> None:
    plan = plan_on("zen4", tmp_path, "topdown")
    counts = {"cycles": 1000, "0xaa": 3300, "0xc1": 3000, "umask=0x01": 600, "umask=0x1e": 1800, "umask=0x60": 300}
    assert values(plan, counts) == {
        "topdown_retiring_ratio": 0.5,
        "topdown_bad_speculation_ratio": pytest.approx(0.05),
        "topdown_frontend_bound_ratio": pytest.approx(0.1),
        "topdown_backend_bound_ratio": pytest.approx(0.3),
        "topdown_smt_contention_ratio": pytest.approx(0.05),
    }


def test_topdown_of_grace_has_eight_slots_a_cycle(tmp_path: Path) -> None:
    plan = plan_on("grace", tmp_path, "topdown")
    counts = {
        "cpu_cycles": 1000,
        "slot_frontend": 800,
        "slot_backend": 2400,
        "stall_slot": 3200,
        "op_retired": 900,
        "op_spec": 1000,
    }
    assert values(plan, counts) == {
        "topdown_retiring_ratio": pytest.approx(0.9 * 0.6),
        "topdown_bad_speculation_ratio": pytest.approx(0.1 * 0.6),
        "topdown_frontend_bound_ratio": pytest.approx(0.1),
        "topdown_backend_bound_ratio": pytest.approx(0.3),
    }


def test_a_core_with_five_slots_counts_one_stall_too_many_a_cycle(tmp_path: Path) -> None:
    tree = TREES["grace"](tmp_path)
    tree.write(f"{DEVICES}/armv8_pmuv3_0/caps/slots", "0x00000005")
    counts = {
        "cpu_cycles": 1000,
        "slot_frontend": 1500,
        "slot_backend": 1000,
        "stall_slot": 2500,
        "op_retired": 1000,
        "op_spec": 1000,
    }
    found = values(plan_of(tmp_path, "topdown"), counts)
    assert found["topdown_frontend_bound_ratio"] == pytest.approx(0.1)
    assert found["topdown_backend_bound_ratio"] == pytest.approx(0.2)
    assert found["topdown_retiring_ratio"] == pytest.approx(0.7)


def test_no_time_gives_no_value(tmp_path: Path) -> None:
    plan = plan_on("grace", tmp_path, "topdown")
    assert values(plan, dict.fromkeys(("cpu", "slot", "op"), 0.0)) == {}
    assert values(plan_on("zen4", tmp_path / "amd", "membw"), {"event": 5}, elapsed_s=0.0) == {}


@pytest.mark.parametrize(
    ("machine", "counts", "gflops"),
    [
        (
            "sapphire_rapids",
            {"umask=0x03": 1e9, "umask=0x04": 1e9, "umask=0x18": 1e9, "umask=0x60": 1e9, "umask=0x80": 1e9},
            (1 + 2 + 4 + 8 + 16) / 2,
        ),
        ("zen4", {"0x03": 8e9}, 4.0),
        ("grace", {"0x80c0": 2e9, "0x80c1": 4e9}, 3.0),
    ],
)
def test_floating_point_operations_a_second(
    machine: str, counts: dict[str, float], gflops: float, tmp_path: Path
) -> None:
    assert values(plan_on(machine, tmp_path, "flops"), counts) == {"gflops": pytest.approx(gflops)}


def test_vectors_of_neoverse_v1_are_256_bits_long(tmp_path: Path) -> None:
    TREES["grace"](tmp_path).arm("0x41", "0xd40")
    assert values(plan_of(tmp_path, "flops"), {"0x80c0": 2e9, "0x80c1": 4e9}) == {"gflops": pytest.approx(4.0)}


@pytest.mark.parametrize(
    ("machine", "counts", "read", "written"),
    [
        ("sapphire_rapids", {"read": 1000, "write": 500}, 64000 / 2, 32000 / 2),
        ("hybrid_client", {"read": 1000, "write": 500}, 64000 / 2, 32000 / 2),
        ("zen4", {"mask=0x1": 1000, "mask=0x2": 500}, 64000 / 2, 32000 / 2),
        ("grace", {"rd_data": 1000, "wr_total_bytes": 500}, 32000 / 2, 500 / 2),
    ],
)
def test_memory_traffic(machine: str, counts: dict[str, float], read: float, written: float, tmp_path: Path) -> None:
    assert values(plan_on(machine, tmp_path, "membw"), counts) == {
        "membw_read_bytes_per_s": pytest.approx(read),
        "membw_write_bytes_per_s": pytest.approx(written),
        "membw_bytes_per_s": pytest.approx(read + written),
    }


def test_memory_traffic_of_every_channel_is_opened(tmp_path: Path) -> None:
    assert len(plan_on("sapphire_rapids", tmp_path / "a", "membw").planned) == 12
    assert len(plan_on("zen4", tmp_path / "b", "membw").planned) == 24


def test_memory_traffic_of_granite_rapids_has_two_halves_a_channel(tmp_path: Path) -> None:
    tree = PmuTree(tmp_path)
    tree.intel_or_amd("GenuineIntel", 6, 173)
    events = {f"cas_count_{way}_sch{half}": "event=0x05" for way in ("read", "write") for half in (0, 1)}
    tree.pmu("uncore_imc_0", 30, {"event": "config:0-7"}, events, cpumask="0")
    found = values(plan_of(tmp_path, "membw"), {"read_sch0": 1, "read_sch1": 2, "write_sch0": 4, "write_sch1": 8})
    assert found["membw_read_bytes_per_s"] == pytest.approx(3 * 64 / 2)
    assert found["membw_write_bytes_per_s"] == pytest.approx(12 * 64 / 2)


def test_memory_traffic_before_zen4_is_that_of_the_data_fabric(tmp_path: Path) -> None:
    tree = PmuTree(tmp_path)
    tree.intel_or_amd("AuthenticAMD", 25, 1)
    tree.pmu("amd_df", 12, {"event": "config:0-7,32-35,59-60", "umask": "config:8-15"}, cpumask="0")
    plan = plan_of(tmp_path, "membw")
    assert values(plan, {"amd_df": 100}) == {"membw_bytes_per_s": pytest.approx(8 * 100 * 64 / 2)}
    assert plan.planned[0].options[0].events[7].config == 0x1_0000_38C7
    assert max(map(len, plan.planned[0].options[0].banks)) == 4, "the fabric has four counters"


def test_memory_traffic_of_an_arm_mesh(tmp_path: Path) -> None:
    tree = PmuTree(tmp_path)
    formats = {"type": "config:0-15", "eventid": "config:16-26"}
    tree.pmu("arm_cmn_0", 12, formats, {"hnf_mc_reqs": "type=0x5,eventid=0xd"}, cpumask="0")
    plan = plan_of(tmp_path, "membw")
    assert plan.planned[0].options[0].events[0].config == 0xD0005
    assert values(plan, {"hnf": 1000}) == {"membw_bytes_per_s": pytest.approx(32000)}


@pytest.mark.parametrize(
    ("metric_set", "sentence"),
    [
        ("topdown", "this processor does not count the slots"),
        ("flops", "this processor does not count floating-point"),
        ("membw", "no counters of memory traffic that are known here"),
    ],
)
def test_what_an_unknown_processor_lacks_is_said(metric_set: str, sentence: str, tmp_path: Path) -> None:
    """E10: the rest works; the sentence names what is missing."""
    plan = plan_on("odd", tmp_path, metric_set)
    assert not plan.planned
    assert sentence in plan.problems[metric_set]


def test_what_a_known_processor_lacks_is_said_with_its_name(tmp_path: Path) -> None:
    tree = TREES["odd"](tmp_path)
    tree.arm("0x41", "0xd0c")
    assert plan_of(tmp_path, "flops").problems["flops"].startswith("ARM Neoverse N1 does not count floating-point")


@pytest.mark.parametrize("machine", ["sapphire_rapids", "hybrid_client", "zen4", "grace"])
def test_stalls_and_the_second_level_cache_by_table_or_kernel(machine: str, tmp_path: Path) -> None:
    plan = plan_on(machine, tmp_path, "stalls")
    assert {planned.group.name for planned in plan.planned} == {"frontend_stalls", "backend_stalls"}
    assert any(planned.group.name == "l2" for planned in plan_of(tmp_path, "cache").planned) == (
        machine != "hybrid_client"
    )
