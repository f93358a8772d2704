"""Metric sets: the words of `--perf_metrics`."""

from collections.abc import Callable, Sequence

import msgspec

from dynolog.collectors.perf_groups import Derived, GroupSpec, Interval, Variant, count, misses, rate, ratio, share
from dynolog.sources.pmu_devices import PmuDevices


class MetricSet(msgspec.Struct, frozen=True):
    """A word of `--perf_metrics`."""

    name: str
    summary: str
    groups: Callable[[PmuDevices], tuple[GroupSpec, ...]]


def _fixed(*groups: GroupSpec) -> Callable[[PmuDevices], tuple[GroupSpec, ...]]:
    return lambda _devices: groups


def _core(*derived: Derived) -> GroupSpec:
    return GroupSpec("core", (Variant(("cycles", "instructions"), derived),))


_MIPS = Derived("mips", rate(1, 1e6))
_MEGA_CYCLES = Derived("mega_cycles_per_second", rate(0, 1e6))

_CACHE = (
    GroupSpec(
        "llc",
        misses(
            ("llc_references", "llc_misses", "llc_miss_ratio"),
            ("cache-references", "cache-misses"),
            ("LLC-loads", "LLC-load-misses"),
        ),
    ),
    GroupSpec(
        "l1d", misses(("l1d_loads", "l1d_load_misses", "l1d_miss_ratio"), ("L1-dcache-loads", "L1-dcache-load-misses"))
    ),
    GroupSpec("l2", misses(("l2_references", "l2_misses", "l2_miss_ratio"), ("l2-references", "l2-misses"))),
)
_BRANCHES = GroupSpec(
    "branches",
    misses(
        ("branch_instructions", "branch_misses", "branch_miss_ratio"),
        ("branch-instructions", "branch-misses"),
        ("branch-loads", "branch-load-misses"),
    ),
)
_TLB = (
    GroupSpec(
        "dtlb", misses(("dtlb_loads", "dtlb_load_misses", "dtlb_miss_ratio"), ("dTLB-loads", "dTLB-load-misses"))
    ),
    GroupSpec(
        "itlb",
        (
            *misses(("itlb_loads", "itlb_load_misses", "itlb_miss_ratio"), ("iTLB-loads", "iTLB-load-misses")),
            Variant(("iTLB-load-misses",), (Derived("itlb_load_misses", count(0)),)),
        ),
    ),
)


def _stalls(name: str, *stalled: str) -> GroupSpec:
    derived = (Derived(f"{name}_stall_ratio", share(0, 1)),)
    return GroupSpec(f"{name}_stalls", tuple(Variant((event, "cycles"), derived) for event in stalled))


_SOFTWARE = (
    ("context-switches", "perf_context_switches"),
    ("cpu-migrations", "perf_cpu_migrations"),
    ("page-faults", "perf_page_faults"),
    ("minor-faults", "perf_minor_faults"),
    ("major-faults", "perf_major_faults"),
    ("alignment-faults", "perf_alignment_faults"),
    ("emulation-faults", "perf_emulation_faults"),
)
_POWER = {
    "energy-pkg": "perf_power_pkg_watts",
    "energy-cores": "perf_power_cores_watts",
    "energy-ram": "perf_power_ram_watts",
    "energy-gpu": "perf_power_gpu_watts",
    "energy-psys": "perf_power_psys_watts",
}


def _power(devices: PmuDevices) -> tuple[GroupSpec, ...]:
    """One group an energy counter: their kinds have different CPUs and come and go by model."""
    device = devices.devices.get("power")
    present = device.events if device else {}
    names = [name for name in _POWER if name in present]
    if not names:
        return (GroupSpec("power", (), in_cgroups=False, missing="this machine has no PMU of energy counters (power)"),)
    return tuple(
        GroupSpec(
            name,
            (Variant((f"power/{name}/",), (Derived(_POWER[name], rate(0, 1.0)),)),),
            per_socket=True,
            in_cgroups=False,
        )
        for name in names
    )


def _c_states(devices: PmuDevices) -> tuple[GroupSpec, ...]:
    """One group an idle state, and the time stamp counter that they are compared with."""
    groups = [GroupSpec("tsc", (Variant(("msr/tsc/",), ()),), in_cgroups=False)]
    for pmu in ("cstate_core", "cstate_module", "cstate_pkg"):
        for event in devices.devices[pmu].events if pmu in devices.devices else ():
            name = f"{pmu.removeprefix('cstate_')}/{event.removesuffix('-residency')}"
            derived = Derived("c_state_residency_ratio", _residency, name)
            groups.append(GroupSpec(name, (Variant((f"{pmu}/{event}/",), (derived,)),), in_cgroups=False))
    if len(groups) == 1:
        return (
            GroupSpec("c_states", (), in_cgroups=False, missing="this machine has no PMU of idle states (cstate_core)"),
        )
    return tuple(groups)


def _residency(counts: Sequence[float], interval: Interval) -> float | None:
    if not interval.tsc_hz or interval.cpu_s <= 0:
        return None
    return min(counts[0] / (interval.tsc_hz * interval.cpu_s), 1.0)


def _of_the_processor(groups: str) -> Callable[[PmuDevices], tuple[GroupSpec, ...]]:
    """A function of perf_processors.py, which is made of the words of this module."""

    def find(devices: PmuDevices) -> tuple[GroupSpec, ...]:
        from dynolog.collectors import perf_processors  # noqa: PLC0415 - it imports this module

        found: tuple[GroupSpec, ...] = getattr(perf_processors, groups)(devices)
        return found

    return find


def event_group(text: str) -> GroupSpec:
    """The group of one event that a person named."""
    return GroupSpec(text, (Variant((text,), (Derived("perf_events", _unrounded, text),)),))


def _unrounded(counts: Sequence[float], _interval: Interval) -> float:
    """Whatever the unit is; without a fraction where there is none, so that it reads as a number of things."""
    count = float(counts[0])
    return int(count) if count.is_integer() else count


SETS = (
    MetricSet("default", "mips and mega_cycles_per_second", _fixed(_core(_MIPS, _MEGA_CYCLES))),
    MetricSet("mips", "millions of instructions a second", _fixed(_core(_MIPS))),
    MetricSet("mega_cycles_per_second", "millions of cycles a second", _fixed(_core(_MEGA_CYCLES))),
    MetricSet("ipc", "instructions in a cycle", _fixed(_core(Derived("instructions_per_cycle", ratio(1, 0))))),
    MetricSet("cache", "references to and misses of the caches", _fixed(*_CACHE)),
    MetricSet("branches", "branches and wrong predictions", _fixed(_BRANCHES)),
    MetricSet("tlb", "look-ups and misses of the TLBs", _fixed(*_TLB)),
    MetricSet(
        "stalls",
        "cycles without instructions and without room for them",
        _fixed(
            _stalls("frontend", "stalled-cycles-frontend", "stall_frontend"),
            _stalls("backend", "stalled-cycles-backend", "stall_backend"),
        ),
    ),
    MetricSet("topdown", "where the slots of the pipeline go (level 1)", _of_the_processor("topdown_groups")),
    MetricSet("flops", "floating-point operations", _of_the_processor("flops_groups")),
    MetricSet("membw", "memory bandwidth, of each socket too", _of_the_processor("membw_groups")),
    MetricSet("power", "power by the energy counters (RAPL), of each socket too", _power),
    MetricSet("c_states", "time in idle states", _c_states),
    MetricSet(
        "software",
        "events of the kernel: switches, migrations, faults",
        _fixed(
            GroupSpec(
                "software",
                (
                    Variant(
                        tuple(event for event, _ in _SOFTWARE),
                        tuple(Derived(name, count(place)) for place, (_, name) in enumerate(_SOFTWARE)),
                    ),
                ),
            )
        ),
    ),
)
