"""Performance counters on a fake kernel: every metric by hand, and what is said when something cannot be counted."""

import errno
import os
from collections.abc import Mapping

import pytest

from dynolog.collectors.perf import SPEC, PerfCollector
from dynolog.model.errors import SourceUnavailable
from dynolog.model.metric import Catalogue
from fakes.collector_context import HostTree
from fakes.perf_kernel import Attr, FakePerfKernel
from fakes.perf_machine import PerfMachine, hybrid, one_core_pmu
from fakes.pmu_trees import PmuTree, sapphire_rapids

CORES = {"cycles": 3e9, "instructions": 1.5e9}
SOFTWARE = {
    "context-switches": 10,
    "cpu-migrations": 2,
    "page-faults": 30,
    "minor-faults": 29,
    "major-faults": 1,
    "alignment-faults": 4,
    "emulation-faults": 5,
}
# What an event of each kind counts in a second on a CPU, and the values of two seconds on a CPU.
EVERYTHING = {
    **CORES,
    **SOFTWARE,
    "cache-references": 100,
    "cache-misses": 25,
    "L1-dcache-loads": 1000,
    "L1-dcache-load-misses": 100,
    "l2-references": 200,
    "l2-misses": 20,
    "branch-instructions": 500,
    "branch-misses": 10,
    "dTLB-loads": 400,
    "dTLB-load-misses": 4,
    "iTLB-loads": 50,
    "iTLB-load-misses": 5,
    "stalled-cycles-frontend": 0.3e9,
    "stalled-cycles-backend": 0.6e9,
    "topdown-retiring": 50,
    "topdown-bad-spec": 10,
    "topdown-fe-bound": 15,
    "topdown-be-bound": 25,
    "fp_arith.scalar": 1e9,
    "fp_arith.128b_double": 1e9,
    "fp_arith.4_flops": 0,
    "fp_arith.8_flops": 0.5e9,
    "fp_arith.512b_single": 0,
}
SETS = "default,ipc,cache,branches,tlb,stalls,topdown,flops,software"
# Shares are the same of one CPU and of many; rates and counts are of one CPU (in 2 s).
SHARES = {
    "instructions_per_cycle": 0.5,
    "llc_miss_ratio": 0.25,
    "l1d_miss_ratio": 0.1,
    "l2_miss_ratio": 0.1,
    "branch_miss_ratio": 0.02,
    "dtlb_miss_ratio": 0.01,
    "itlb_miss_ratio": 0.1,
    "frontend_stall_ratio": 0.1,
    "backend_stall_ratio": 0.2,
    "topdown_retiring_ratio": 0.5,
    "topdown_bad_speculation_ratio": 0.1,
    "topdown_frontend_bound_ratio": 0.15,
    "topdown_backend_bound_ratio": 0.25,
}
OF_A_CPU = {
    "mips": 1500,
    "mega_cycles_per_second": 3000,
    "llc_references": 200,
    "llc_misses": 50,
    "l1d_loads": 2000,
    "l1d_load_misses": 200,
    "l2_references": 400,
    "l2_misses": 40,
    "branch_instructions": 1000,
    "branch_misses": 20,
    "dtlb_loads": 800,
    "dtlb_load_misses": 8,
    "itlb_loads": 100,
    "itlb_load_misses": 10,
    "gflops": 7,
}
SOFTWARE_OF_A_CPU = {
    "perf_context_switches": 20,
    "perf_cpu_migrations": 4,
    "perf_page_faults": 60,
    "perf_minor_faults": 58,
    "perf_major_faults": 2,
    "perf_alignment_faults": 8,
    "perf_emulation_faults": 10,
}


def times(values: Mapping[str, float], factor: float, suffix: str = "") -> dict[str, object]:
    return {f"{name}{suffix}": pytest.approx(value * factor) for name, value in values.items()}


def without_ratios(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if not key.startswith(("perf_running", "perf_group_running"))}


def cgroup(tree: HostTree, path: str) -> int:
    """Make a cgroup (version 2); its inode, by which the fake kernel knows it."""
    tree.write("sys/fs/cgroup/cgroup.controllers", "")
    tree.write(f"sys/fs/cgroup{path}/cgroup.procs", "")
    return os.stat(tree.root / f"sys/fs/cgroup{path}").st_ino


def test_every_metric_of_cores_is_what_was_counted(host_tree: HostTree) -> None:
    """E09: on a hybrid processor each core type is counted on its own CPUs (0-1 and 2), labelled, and summed."""
    hybrid(host_tree)
    inode = cgroup(host_tree, "/job.slice")
    machine = PerfMachine(host_tree, EVERYTHING, perf_metrics=SETS, perf_cgroups="/job.slice")
    machine.kernel.cgroup_share[inode] = 0.5
    values = machine.measure()
    assert without_ratios(values) == {
        **times(SHARES, 1),
        **times(SHARES, 1, ".core"),
        **times(SHARES, 1, ".atom"),
        **times(SHARES, 1, "./job.slice"),
        **times(OF_A_CPU, 3),
        **times(OF_A_CPU, 2, ".core"),
        **times(OF_A_CPU, 1, ".atom"),
        **times(OF_A_CPU, 1.5, "./job.slice"),
        **times(SOFTWARE_OF_A_CPU, 3),
        **times(SOFTWARE_OF_A_CPU, 1.5, "./job.slice"),
    }
    assert {value for key, value in values.items() if "running_ratio" in key} == {1.0}
    catalogue = Catalogue(SPEC.metrics)
    assert not [key for key in values if catalogue.resolve(key) is None]


def test_software_events_of_core_types_are_not_told_apart(host_tree: HostTree) -> None:
    hybrid(host_tree)
    values = PerfMachine(host_tree, SOFTWARE, perf_metrics="software").measure()
    assert not [key for key in values if key.endswith((".core", ".atom"))]


def test_slots_lost_to_the_other_thread_are_counted_on_amd(host_tree: HostTree) -> None:
    """Zen 4 dispatches six operations a cycle; the group is larger than its PMU has counters, and is counted in two."""
    hybrid(host_tree, "AuthenticAMD", 25, 17)
    cgroup(host_tree, "/a")
    rates = {
        "cycles": 100,
        "dispatched_ops": 330,
        "retired_ops": 300,
        "no_ops_from_frontend": 60,
        "backend_stalls": 150,
        "smt_contention": 60,
    }
    machine = PerfMachine(host_tree, rates, perf_metrics="topdown", perf_cgroups="/a")
    expected = {
        "topdown_retiring_ratio": 0.5,
        "topdown_bad_speculation_ratio": 0.05,
        "topdown_frontend_bound_ratio": 0.1,
        "topdown_backend_bound_ratio": 0.25,
        "topdown_smt_contention_ratio": 0.1,
    }
    values = machine.measure()
    for suffix in ("", ".core", ".atom", "./a"):
        assert {key: values[f"{key}{suffix}"] for key in expected} == times(expected, 1)
    assert max(machine.kernel.group_sizes) == 4


def test_memory_power_and_idle_states_are_outside_the_cores(host_tree: HostTree) -> None:
    """Two sockets of a server; each memory controller and energy counter is read through one CPU of each."""
    tree = sapphire_rapids(host_tree.root)
    for cpu in range(224):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", str(int(56 <= cpu < 112)))
    tree.pmu(
        "power",
        17,
        {"event": "config:0-7"},
        {f"energy-{name}": f"event={code}" for code, name in enumerate(("pkg", "cores", "ram", "gpu", "psys"), 1)}
        | {f"energy-{name}.scale": "0.25" for name in ("pkg", "cores", "ram", "gpu", "psys")},
        cpumask="0,56",
    )
    rates = {
        "uncore_imc/cas_count_read/": 16384 * 2,  # 64 bytes each: 2 MiB a second
        "uncore_imc/cas_count_write/": 16384,
        **{
            f"power/energy-{name}/": 400 * place for place, name in enumerate(("pkg", "cores", "ram", "gpu", "psys"), 1)
        },
        "cstate_core/c1-residency/": 0.2e9,
        "cstate_core/c6-residency/": 1.2e9,
        "cstate_pkg/c2-residency/": 0.1e9,
        "cstate_pkg/c6-residency/": 0.5e9,
        "msr/tsc/": 2e9,
    }
    machine = PerfMachine(host_tree, rates, perf_metrics="membw,power,c_states")
    values = without_ratios(machine.measure())
    read, write = 12 * 2 * 2**20, 12 * 2**20
    watts = dict(zip(("pkg", "cores", "ram", "gpu", "psys"), (100, 200, 300, 400, 500), strict=True))
    assert values == {
        **times({f"perf_power_{name}_watts": value for name, value in watts.items()}, 2),
        **times({f"perf_power_{name}_watts.0": value for name, value in watts.items()}, 1),
        **times({f"perf_power_{name}_watts.1": value for name, value in watts.items()}, 1),
        **{
            f"membw_{way}bytes_per_s{suffix}": value * sockets
            for suffix, sockets in (("", 2), (".0", 1), (".1", 1))
            for way, value in (("read_", read), ("write_", write), ("", read + write))
        },
        "c_state_residency_ratio.core/c1": pytest.approx(0.1),
        "c_state_residency_ratio.core/c6": pytest.approx(0.6),
        "c_state_residency_ratio.pkg/c2": pytest.approx(0.05),
        "c_state_residency_ratio.pkg/c6": pytest.approx(0.25),
    }


def test_any_event_is_counted_by_its_name(host_tree: HostTree) -> None:
    """Commas between slashes belong to the event."""
    one_core_pmu(host_tree)
    cgroup(host_tree, "/a")
    rates = {"cpu/event=0x51,umask=0x1/": 7.25, "r1a8": 5, "sched:sched_switch": 3}
    words = ",".join(rates)
    values = without_ratios(PerfMachine(host_tree, rates, perf_metrics=words, perf_cgroups="/a").measure())
    assert values == {
        "perf_events.cpu/event=0x51,umask=0x1/": 56,
        "perf_events.r1a8": 40,
        "perf_events.sched:sched_switch": 24,
        "perf_events.cpu/event=0x51,umask=0x1/@/a": 56,
        "perf_events.r1a8@/a": 40,
        "perf_events.sched:sched_switch@/a": 24,
    }


# --- how much of the time was counted -----------------------------------------------------------------------------------


def test_counts_are_scaled_by_the_times_of_their_own_group(host_tree: HostTree) -> None:
    """E04: half of the time for one group, all of it for the other; both values are those of the whole time."""
    one_core_pmu(host_tree)
    cgroup(host_tree, "/a")
    rates = {**CORES, "branch-instructions": 500, "branch-misses": 10}
    machine = PerfMachine(host_tree, rates, perf_metrics="default,branches", perf_cgroups="/a")
    branches = (0, 4)
    machine.kernel.share = lambda leader: 0.5 if leader.attr.key == branches else 1.0
    values = machine.measure()
    assert values["branch_instructions"] == 4000
    assert values["mips"] == pytest.approx(6000)
    assert values["perf_group_running_ratio.branches"] == pytest.approx(0.5)
    assert values["perf_group_running_ratio.core"] == 1.0
    assert values["perf_running_ratio"] == pytest.approx(0.5)
    assert values["perf_running_ratio./a"] == pytest.approx(0.5)


def test_a_group_without_a_counter_has_no_value(host_tree: HostTree) -> None:
    """E01, E02: enabled for 5 ms and never counted is no data: neither a spike nor 0."""
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, {**CORES, **SOFTWARE}, perf_metrics="default,software")
    machine.kernel.share = lambda leader: 0.0 if leader.attr.type == 0 else 1.0
    values = machine.measure(0.005)
    assert "mips" not in values
    assert "mega_cycles_per_second" not in values
    assert values["perf_group_running_ratio.core"] == 0.0
    assert "perf_context_switches" in values
    assert "core: counted for less than --perf_min_running_pct" in machine.tree.notices.said["perf_starved"]
    machine.kernel.share = lambda leader: 1.0
    machine.measure()
    assert "mips" in machine.measure()
    assert machine.tree.notices.said["perf_starved"] == ""


def test_rates_are_over_the_time_between_the_readings_themselves(host_tree: HostTree) -> None:
    """Opening thousands of counters is a part of the first round, but not of what they count."""
    one_core_pmu(host_tree)
    cgroup(host_tree, "/a")
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/a")
    really_open = machine.kernel.open

    def slow_open(attr: bytes, pid: int, cpu: int, group_fd: int, flags: int) -> int:
        machine.kernel.now_ns += 100_000_000
        return really_open(attr, pid, cpu, group_fd, flags)

    machine.kernel.open = slow_open  # type: ignore[method-assign]
    before = machine.collector.read()
    machine.kernel.advance(2)
    values = machine.collector.compute(before, machine.collector.read(), 3.6)
    assert values["mips"] == values["mips./a"] == pytest.approx(6000)


def test_one_cpu_without_a_counter_makes_the_hosts_value_unknown(host_tree: HostTree) -> None:
    """A sum without CPU 2 would look like a quarter less work."""
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, CORES)
    machine.kernel.share = lambda leader: 0.0 if leader.cpu == 2 else 1.0
    values = machine.measure()
    assert "mips" not in values
    assert values["perf_group_running_ratio.core"] == pytest.approx(0.75)


@pytest.mark.parametrize(("share", "minimum", "given"), [(0.04, 5.0, False), (0.06, 5.0, True), (0.04, 3.0, True)])
def test_too_small_a_share_of_time_gives_no_value(
    host_tree: HostTree, share: float, minimum: float, given: bool
) -> None:
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, CORES, perf_min_running_pct=minimum)
    machine.kernel.share = lambda leader: share
    values = machine.measure()
    assert ("mips" in values) is given
    if given:
        assert values["mips"] == pytest.approx(6000)


def test_a_cgroup_that_did_not_run_counts_zero(host_tree: HostTree) -> None:
    """The kernel enables a cgroup's counters only while it runs: that is a true 0, of the host it would be no data."""
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/idle")
    machine.kernel.cgroup_share[cgroup(host_tree, "/idle")] = 0.0
    values = machine.measure()
    assert values["mips./idle"] == 0
    assert "perf_running_ratio./idle" not in values
    assert "instructions_per_cycle./idle" not in values


def test_the_nmi_watchdog_makes_groups_smaller(host_tree: HostTree) -> None:
    """E11: with the watchdog three counters are left, so that five events are counted in two groups."""
    one_core_pmu(host_tree)
    events = ("total-slots", "slots-issued", "slots-retired", "fetch-bubbles", "recovery-bubbles")
    PmuTree(host_tree.root).pmu(
        "cpu", 4, {"event": "config:0-7"}, {f"topdown-{name}": f"event={code}" for code, name in enumerate(events, 1)}
    )
    rates = dict(zip((f"topdown-{name}" for name in events), (100, 70, 50, 20, 5), strict=True))
    host_tree.write("proc/sys/kernel/nmi_watchdog", "1\n")
    machine = PerfMachine(host_tree, rates, perf_metrics="topdown")
    machine.kernel.counters = 3
    values = machine.measure()
    assert machine.kernel.group_sizes == {3, 2}
    assert values["topdown_retiring_ratio"] == pytest.approx(0.5)
    assert values["topdown_bad_speculation_ratio"] == pytest.approx(0.25)
    machine.kernel.share = lambda leader: 0.0
    machine.measure()
    assert "kernel.nmi_watchdog=0" in host_tree.notices.said["perf_starved"]


def test_a_pmu_with_fewer_counters_gets_smaller_groups(host_tree: HostTree) -> None:
    """The kernel answers EINVAL to a group that its PMU can never count at once."""
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, CORES)
    machine.kernel.counters = 1
    assert machine.measure()["mips"] == pytest.approx(6000)
    assert machine.kernel.group_sizes == {1}


# --- CPUs and cgroups come and go -----------------------------------------------------------------------------------------


def test_cpus_come_and_go(host_tree: HostTree) -> None:
    one_core_pmu(host_tree, "0-3")
    machine = PerfMachine(host_tree, CORES)
    machine.measure()
    host_tree.write("sys/devices/system/cpu/online", "0-1,5\n")
    machine.kernel.offline = {2, 3}
    assert machine.measure()["mips"] == pytest.approx(4500), "0, 1 and 5"
    assert {cpu for cpu, _ in machine.kernel.opened} == {0, 1, 5}
    before = machine.collector.read()
    host_tree.write("sys/devices/system/cpu/online", "0-3\n")
    machine.kernel.offline = {5}
    machine.kernel.advance(2)
    values = machine.collector.compute(before, machine.collector.read(), 2)
    assert values["mips"] == pytest.approx(3000), "the new ones have no value yet"
    assert machine.measure()["mips"] == pytest.approx(6000)


def test_a_pmu_outside_the_cores_moves_with_its_cpu(host_tree: HostTree) -> None:
    """When the CPU of its cpumask goes offline the kernel names another one."""
    one_core_pmu(host_tree)
    pmus = PmuTree(host_tree.root)
    pmus.pmu("power", 17, {"event": "config:0-7"}, {"energy-pkg": "event=2", "energy-pkg.scale": "0.5"}, cpumask="0")
    machine = PerfMachine(host_tree, {"power/energy-pkg/": 100}, perf_metrics="power")
    assert machine.measure()["perf_power_pkg_watts"] == pytest.approx(50)
    host_tree.write("sys/devices/system/cpu/online", "1-3\n")
    host_tree.write("sys/bus/event_source/devices/power/cpumask", "1\n")
    machine.kernel.offline = {0}
    assert machine.measure()["perf_power_pkg_watts"] == pytest.approx(50)
    assert machine.kernel.opened == [(1, 17)]


def test_a_pmu_without_cpus_is_skipped(host_tree: HostTree) -> None:
    """E10: an empty cpumask costs that PMU only."""
    one_core_pmu(host_tree)
    pmus = PmuTree(host_tree.root)
    pmus.pmu("power", 17, {"event": "config:0-7"}, {"energy-pkg": "event=2"}, cpumask="")
    machine = PerfMachine(host_tree, CORES, perf_metrics="power,default")
    assert "mips" in machine.measure()
    assert "power" in host_tree.notices.said["perf_missing"]


def test_cgroups_are_found_by_pattern_and_followed(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    cgroup(host_tree, "/pods/a")
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/pods/*")
    assert {key for key in machine.measure() if key.startswith("mips.")} == {"mips./pods/a"}
    cgroup(host_tree, "/pods/b")
    (host_tree.root / "sys/fs/cgroup/pods/a/cgroup.procs").unlink()
    (host_tree.root / "sys/fs/cgroup/pods/a").rmdir()
    machine.kernel.advance(10)
    assert {key for key in machine.measure() if key.startswith("mips.")} == {"mips./pods/b"}


def test_a_cgroup_that_was_removed_is_let_go_at_once_and_has_no_value(host_tree: HostTree) -> None:
    """Nothing was counted in it any more, which is not the same as 0."""
    one_core_pmu(host_tree)
    cgroup(host_tree, "/pods/a")
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/pods/*")
    before = machine.collector.read()
    opened = len(machine.kernel.open_counters)
    (host_tree.root / "sys/fs/cgroup/pods/a/cgroup.procs").unlink()
    (host_tree.root / "sys/fs/cgroup/pods/a").rmdir()
    machine.kernel.advance(1)
    values = machine.collector.compute(before, machine.collector.read(), 1)
    assert "mips" in values
    assert "mips./pods/a" not in values
    assert len(machine.kernel.open_counters) == opened // 2


def test_new_cgroups_are_seen_within_ten_seconds_whatever_the_interval(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    cgroup(host_tree, "/other")
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/pods/*")
    machine.measure()
    cgroup(host_tree, "/pods/a")
    assert "mips./pods/a" not in machine.measure(60)
    assert "mips./pods/a" in machine.measure(60)


def test_no_cgroup_and_no_hierarchy_are_said(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    assert "mips" in PerfMachine(host_tree, CORES, perf_cgroups="/x").measure()
    assert "hierarchy" in host_tree.notices.said["perf_cgroups"]
    cgroup(host_tree, "/y")
    PerfMachine(host_tree, CORES, perf_cgroups="/x").measure()
    assert host_tree.notices.said["perf_cgroups"] == "--perf_cgroups=/x names no cgroup that there is now"


# --- what cannot be counted ---------------------------------------------------------------------------------------------


def test_a_virtual_machine_without_counters_says_so_and_counts_the_kernels_events(host_tree: HostTree) -> None:
    """E08."""
    PmuTree(host_tree.root).every_kernel_has("0-1")
    with pytest.raises(SourceUnavailable, match=r"virtual machines.*--perf_metrics=software"):
        PerfMachine(host_tree).collector.read()
    machine = PerfMachine(host_tree, SOFTWARE, perf_metrics="default,topdown,software")
    assert machine.measure()["perf_context_switches"] == 40
    said = host_tree.notices.said["perf_missing"]
    assert said.startswith("not counted: core: this machine shows no counters of its processor")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EOPNOTSUPP, errno.ENXIO, errno.ENODEV])
def test_every_way_to_say_not_here_costs_that_group_only(host_tree: HostTree, number: int) -> None:
    """E08."""
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, {**CORES, **SOFTWARE}, perf_metrics="default,software")
    machine.kernel.refuse = lambda attr, cpu, cgroup: number if attr.type == 0 else 0
    assert "perf_context_switches" in machine.measure()
    assert "core: this machine does not count cycles, instructions" in host_tree.notices.said["perf_missing"]


def test_a_forbidden_counter_says_level_and_capability(host_tree: HostTree) -> None:
    """E07."""
    one_core_pmu(host_tree)
    host_tree.write("proc/sys/kernel/perf_event_paranoid", "4\n")
    machine = PerfMachine(host_tree, CORES)
    machine.kernel.refuse = lambda attr, cpu, cgroup: errno.EACCES
    with pytest.raises(SourceUnavailable, match=r"perf_event_paranoid=4 .*: grant CAP_PERFMON"):
        machine.collector.read()
    assert not machine.kernel.open_counters
    machine.kernel.refuse = lambda attr, cpu, cgroup: 0
    assert "mips" in machine.measure(), "and works as soon as it may"


def test_user_mode_is_counted_where_only_the_kernels_part_is_forbidden(host_tree: HostTree) -> None:
    """E07."""

    def forbid(attr: Attr, cpu: int, cgroup: int) -> int:
        return 0 if attr.excludes_kernel else errno.EACCES

    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, CORES)
    machine.kernel.refuse = forbid
    assert machine.measure()["mips"] == pytest.approx(6000)
    assert host_tree.notices.said["perf_user_only"]


def test_the_need_for_descriptors_is_worked_out_first(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """E06: 224 CPUs times 4 events in a room of 500: the first group is counted, the rest is said."""
    one_core_pmu(host_tree, "0-223")
    monkeypatch.setattr("dynolog.collectors.perf_opening.room_for", lambda need: 500)
    rates = {**CORES, "branch-instructions": 5, "branch-misses": 1}
    machine = PerfMachine(host_tree, rates, perf_metrics="default,branches")
    values = machine.measure()
    assert values["mips"] == pytest.approx(224 * 1500)
    assert "branch_misses" not in values
    assert len(machine.kernel.open_counters) == 448
    said = host_tree.notices.said["perf_descriptors"]
    assert said.startswith("counting all that is asked for takes 896 file descriptors on 224 CPUs")
    assert "left out: branches" in said


def test_cgroups_are_the_first_to_be_left_out(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """E06."""
    one_core_pmu(host_tree)
    for name in "abc":
        cgroup(host_tree, f"/{name}")
    monkeypatch.setattr("dynolog.collectors.perf_opening.room_for", lambda need: 24)
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/a,/b,/c")
    assert {key for key in machine.measure() if key.startswith("mips")} == {"mips", "mips./a", "mips./b"}
    assert "left out: /c" in host_tree.notices.said["perf_descriptors"]


def test_running_out_of_descriptors_all_the_same_counts_no_half_host(host_tree: HostTree) -> None:
    """E06: what is short of descriptors is named so, and the group that fits goes on."""
    one_core_pmu(host_tree)
    machine = PerfMachine(
        host_tree, {**CORES, "branch-instructions": 5, "branch-misses": 1}, perf_metrics="default,branches"
    )
    machine.kernel.most_open = 10
    values = machine.measure()
    assert values["mips"] == pytest.approx(6000)
    assert "branch_misses" not in values
    assert len(machine.kernel.open_counters) == 8
    assert "branches: EMFILE" in host_tree.notices.said["perf_missing"]


def test_an_unknown_event_is_said_and_costs_itself_only(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    assert "mips" in PerfMachine(host_tree, CORES, perf_metrics="defualt,default").measure()
    assert "defualt" in host_tree.notices.said["perf_missing"]


def test_nothing_stays_open_when_the_collector_goes(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    cgroup(host_tree, "/a")
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/a")
    machine.measure()
    kernel = machine.kernel
    assert kernel.open_counters
    machine.collector = PerfCollector(host_tree.context(), FakePerfKernel({}))
    assert not kernel.open_counters


def test_counters_of_refused_groups_are_tried_again(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, SOFTWARE, perf_metrics="default,software")
    assert "mips" not in machine.measure()
    machine.exist(CORES)
    for _ in range(60):
        machine.collector.read()
    assert "mips" in machine.measure()
    assert host_tree.notices.said["perf_missing"] == ""


# --- parts are not the whole ------------------------------------------------------------------------------------------------


def test_what_one_core_type_lacks_has_no_sum_of_the_host(host_tree: HostTree) -> None:
    """E09: efficient cores without an event must not look like cores without misses."""
    hybrid(host_tree)
    cgroup(host_tree, "/a")
    rates = {**CORES, "cache-references": 100, "cache-misses": 25}
    machine = PerfMachine(host_tree, rates, perf_metrics="default,cache", perf_cgroups="/a")
    del machine.kernel.rates[0, 10 << 32 | 3]
    values = machine.measure()
    assert values["llc_misses.core"] == 100
    assert "llc_misses" not in values
    assert "llc_misses.atom" not in values
    assert "llc_misses./a" not in values
    assert values["mips"] == pytest.approx(4500)
    assert "llc (cpu_atom)" in host_tree.notices.said["perf_missing"]


def test_an_event_that_only_one_core_type_names_has_no_sum(host_tree: HostTree) -> None:
    hybrid(host_tree)
    for name in ("topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"):
        (host_tree.root / f"sys/bus/event_source/devices/cpu_atom/events/{name}").unlink()
    rates = {"topdown-retiring": 50, "topdown-bad-spec": 10, "topdown-fe-bound": 15, "topdown-be-bound": 25}
    values = PerfMachine(host_tree, rates, perf_metrics="topdown").measure()
    assert values["topdown_retiring_ratio.core"] == pytest.approx(0.5)
    assert "topdown_retiring_ratio" not in values


def test_memory_bandwidth_without_one_controller_has_no_sum(host_tree: HostTree) -> None:
    sapphire_rapids(host_tree.root)
    rates = {"uncore_imc/cas_count_read/": 100, "uncore_imc/cas_count_write/": 100}
    machine = PerfMachine(host_tree, rates, perf_metrics="membw")
    machine.kernel.refuse = lambda attr, cpu, cgroup: errno.EBUSY if attr.type == 33 else 0
    assert not [key for key in machine.measure() if key.startswith("membw")]
    assert "membw (uncore_imc_3): EBUSY" in host_tree.notices.said["perf_missing"]


def test_a_cpu_that_is_online_and_refuses_costs_the_group(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    machine = PerfMachine(host_tree, {**CORES, **SOFTWARE}, perf_metrics="default,software")
    machine.kernel.refuse = lambda attr, cpu, cgroup: errno.EBUSY if cpu == 2 and attr.type == 0 else 0
    assert "mips" not in machine.measure()
    assert {attr_type for _, attr_type in machine.kernel.opened} == {1}


# --- flags and the end ------------------------------------------------------------------------------------------------------


def test_flags_that_change_take_effect_at_the_next_reading(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    kernel = FakePerfKernel({(0, 0): 1.0, (0, 1): 1.0, (1, 3): 1.0})
    context = host_tree.context()
    collector = PerfCollector(context, kernel)
    collector.read()
    context.settings.update({"perf_metrics": "cs"})
    collector.read()
    assert {attr_type for _, attr_type in kernel.opened} == {1}


def test_the_directory_of_a_cgroup_is_closed_with_the_collector(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    cgroup(host_tree, "/a")
    before = set(os.listdir("/proc/self/fd"))
    machine = PerfMachine(host_tree, CORES, perf_cgroups="/a")
    machine.collector.read()
    assert set(os.listdir("/proc/self/fd")) > before
    machine.collector = PerfCollector(host_tree.context(), FakePerfKernel({}))
    assert set(os.listdir("/proc/self/fd")) <= before


# --- memory traffic by the caches ---------------------------------------------------------------------------------------------


def caches(tree: HostTree, traffic: Mapping[str, str]) -> None:
    """Four CPUs with an L3 cache each two of them, in two sockets; bytes by the directory of a control group and a domain."""
    for cpu in range(4):
        for file, text in (
            ("cache/index3/id", str(7 + cpu // 2)),
            ("cache/index3/shared_cpu_list", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"),
            ("topology/physical_package_id", str(cpu // 2)),
        ):
            tree.write(f"sys/devices/system/cpu/cpu{cpu}/{file}", text + "\n")
    for place, text in traffic.items():
        tree.write(f"sys/fs/resctrl/{place}/mbm_total_bytes", text + "\n")


def test_caches_count_memory_traffic_where_no_controller_does(host_tree: HostTree) -> None:
    """All control groups together are the host."""
    one_core_pmu(host_tree)
    root = {"mon_data/mon_L3_07": "1000", "mon_data/mon_L3_08": "5000", "batch/mon_data/mon_L3_07": "100"}
    caches(host_tree, root | {"batch/mon_data/mon_L3_08": "0", "info/L3_MON": "0"})
    machine = PerfMachine(host_tree, perf_metrics="membw")
    before = machine.collector.read()
    caches(host_tree, {"mon_data/mon_L3_07": "3000", "mon_data/mon_L3_08": "9000", "batch/mon_data/mon_L3_07": "1100"})
    machine.kernel.advance(2)
    after = machine.collector.read()
    assert machine.collector.compute(before, after, 2.0) == {
        "membw_bytes_per_s": 3500,
        "membw_bytes_per_s.0": 1500,
        "membw_bytes_per_s.1": 2000,
    }
    assert not host_tree.notices.said["perf_missing"]


@pytest.mark.parametrize("text", ["Unavailable", "Error", "1", ""])
def test_traffic_of_which_a_part_is_unknown_is_not_given(host_tree: HostTree, text: str) -> None:
    one_core_pmu(host_tree)
    caches(host_tree, {"mon_data/mon_L3_07": "1000", "mon_data/mon_L3_08": "5000"})
    machine = PerfMachine(host_tree, CORES, perf_metrics="membw,default")
    before = machine.collector.read()
    caches(host_tree, {"mon_data/mon_L3_07": "2000", "mon_data/mon_L3_08": text})
    machine.kernel.advance(2)
    values = machine.collector.compute(before, machine.collector.read(), 2.0)
    assert not [key for key in values if key.startswith("membw")]
    assert "mips" in values


def test_without_any_counter_of_memory_traffic_the_reason_is_said(host_tree: HostTree) -> None:
    one_core_pmu(host_tree)
    PerfMachine(host_tree, CORES, perf_metrics="membw,default").measure()
    assert host_tree.notices.said["perf_missing"].startswith("not counted: membw: no counters of memory traffic")
