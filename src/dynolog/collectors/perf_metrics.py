"""The metrics of performance counters, as the catalogue describes them; perf_sets.py says which events they are made of."""

from dynolog.model.metric import Kind, Metric, Scope

# What the cores count: of the host, of the cores of one type of a hybrid processor, and of a cgroup.
_OF_CORES = (
    ("mips", Kind.RATE, "{million_instructions}/s", "Instructions finished, millions a second"),
    ("mega_cycles_per_second", Kind.RATE, "{million_cycles}/s", "Cycles in which cores ran, millions a second"),
    ("instructions_per_cycle", Kind.RATIO, "1", "Instructions finished in a cycle"),
    ("llc_references", Kind.DELTA, "{reference}", "References to the last-level cache"),
    ("llc_misses", Kind.DELTA, "{miss}", "References that missed the last-level cache"),
    ("llc_miss_ratio", Kind.RATIO, "1", "Share of the references to the last-level cache that missed"),
    ("l1d_loads", Kind.DELTA, "{load}", "Loads from the first-level data cache"),
    ("l1d_load_misses", Kind.DELTA, "{miss}", "Loads that missed the first-level data cache"),
    ("l1d_miss_ratio", Kind.RATIO, "1", "Share of the loads from the first-level data cache that missed"),
    ("l2_references", Kind.DELTA, "{reference}", "References to the second-level cache"),
    ("l2_misses", Kind.DELTA, "{miss}", "References that missed the second-level cache"),
    ("l2_miss_ratio", Kind.RATIO, "1", "Share of the references to the second-level cache that missed"),
    ("branch_instructions", Kind.DELTA, "{branch}", "Branches finished"),
    ("branch_misses", Kind.DELTA, "{miss}", "Branches that were predicted wrongly"),
    ("branch_miss_ratio", Kind.RATIO, "1", "Share of branches that were predicted wrongly"),
    ("dtlb_loads", Kind.DELTA, "{load}", "Look-ups of loads in the data TLB"),
    ("dtlb_load_misses", Kind.DELTA, "{miss}", "Look-ups of loads that missed the data TLB"),
    ("dtlb_miss_ratio", Kind.RATIO, "1", "Share of the look-ups of loads that missed the data TLB"),
    ("itlb_loads", Kind.DELTA, "{load}", "Look-ups in the instruction TLB"),
    ("itlb_load_misses", Kind.DELTA, "{miss}", "Look-ups that missed the instruction TLB"),
    ("itlb_miss_ratio", Kind.RATIO, "1", "Share of the look-ups that missed the instruction TLB"),
    ("frontend_stall_ratio", Kind.RATIO, "1", "Share of cycles in which the front end had no instructions to give"),
    ("backend_stall_ratio", Kind.RATIO, "1", "Share of cycles in which the back end could take no instructions"),
    ("topdown_retiring_ratio", Kind.RATIO, "1", "Share of issue slots whose work was of use"),
    ("topdown_bad_speculation_ratio", Kind.RATIO, "1", "Share of issue slots lost to wrong predictions"),
    ("topdown_frontend_bound_ratio", Kind.RATIO, "1", "Share of issue slots lost because no instructions had come"),
    ("topdown_backend_bound_ratio", Kind.RATIO, "1", "Share of issue slots lost because data or units were not ready"),
    ("topdown_smt_contention_ratio", Kind.RATIO, "1", "Share of issue slots that the other thread of the core used"),
    ("gflops", Kind.RATE, "{billion_operations}/s", "Floating-point operations, billions a second"),
)
# What the kernel counts for whoever runs: of the host, and of a cgroup.
_OF_THE_KERNEL = (
    ("perf_context_switches", Kind.DELTA, "{switch}", "Context switches, counted by perf"),
    ("perf_cpu_migrations", Kind.DELTA, "{migration}", "Moves of a thread to another CPU"),
    ("perf_page_faults", Kind.DELTA, "{fault}", "Page faults, counted by perf"),
    ("perf_minor_faults", Kind.DELTA, "{fault}", "Page faults that needed no disk, counted by perf"),
    ("perf_major_faults", Kind.DELTA, "{fault}", "Page faults that waited for a disk, counted by perf"),
    ("perf_alignment_faults", Kind.DELTA, "{fault}", "Unaligned accesses that the kernel had to mend"),
    ("perf_emulation_faults", Kind.DELTA, "{fault}", "Instructions that the kernel had to emulate"),
)
# What is outside the cores: of the host, and of each socket.
_OF_SOCKETS = (
    ("membw_read_bytes_per_s", Kind.RATE, "By/s", "Bytes a second read from memory"),
    ("membw_write_bytes_per_s", Kind.RATE, "By/s", "Bytes a second written to memory"),
    ("membw_bytes_per_s", Kind.RATE, "By/s", "Bytes a second read from memory or written to it"),
    ("perf_power_pkg_watts", Kind.RATE, "W", "Mean power of processor packages, counted by perf"),
    ("perf_power_cores_watts", Kind.RATE, "W", "Mean power of cores, counted by perf"),
    ("perf_power_ram_watts", Kind.RATE, "W", "Mean power of memory, counted by perf"),
    ("perf_power_gpu_watts", Kind.RATE, "W", "Mean power of the graphics unit of the processor, counted by perf"),
    ("perf_power_psys_watts", Kind.RATE, "W", "Mean power of the whole platform, counted by perf"),
)
_WHERE = {
    Scope.HOST: "",
    Scope.CORE_TYPE: ", by the cores of one type of a hybrid processor",
    Scope.CGROUP: ", by a cgroup (--perf_cgroups)",
    Scope.SOCKET: ", of one socket",
}

METRICS = (
    *(
        Metric(name=name, scope=scope, kind=kind, unit=unit, description=description + _WHERE[scope])
        for scopes, members in (
            ((Scope.HOST, Scope.CORE_TYPE, Scope.CGROUP), _OF_CORES),
            ((Scope.HOST, Scope.CGROUP), _OF_THE_KERNEL),
            ((Scope.HOST, Scope.SOCKET), _OF_SOCKETS),
        )
        for scope in scopes
        for name, kind, unit, description in members
    ),
    Metric(
        name="c_state_residency_ratio",
        scope=Scope.EVENT,
        kind=Kind.RATIO,
        unit="1",
        description="Share of time that cores (core/c6) or packages (pkg/c6) spent in an idle state",
    ),
    Metric(
        name="perf_events",
        scope=Scope.EVENT,
        kind=Kind.DELTA,
        unit="1",
        description="Counts of an event that --perf_metrics names, in the kernel's unit of it; of a cgroup as EVENT@CGROUP",
    ),
    Metric(
        name="perf_running_ratio",
        kind=Kind.RATIO,
        unit="1",
        description="Share of the time in which the group of events that waited most for a counter really counted",
    ),
    Metric(
        name="perf_running_ratio",
        scope=Scope.CGROUP,
        kind=Kind.RATIO,
        unit="1",
        description="Share of the time of a cgroup in which the group of events that waited most really counted",
    ),
    Metric(
        name="perf_group_running_ratio",
        scope=Scope.EVENT,
        kind=Kind.RATIO,
        unit="1",
        description="Share of the time in which a group of events really counted; its counts are scaled up by it",
    ),
)
