"""Events that have names without any file: the generic ones of processor, caches and kernel (perf_event_open(2), perf-list(1))."""

from dynolog.sources.perf_event.attributes import Hardware, Software

HARDWARE = {
    "cycles": Hardware.CPU_CYCLES,
    "cpu-cycles": Hardware.CPU_CYCLES,
    "instructions": Hardware.INSTRUCTIONS,
    "cache-references": Hardware.CACHE_REFERENCES,
    "cache-misses": Hardware.CACHE_MISSES,
    "branches": Hardware.BRANCH_INSTRUCTIONS,
    "branch-instructions": Hardware.BRANCH_INSTRUCTIONS,
    "branch-misses": Hardware.BRANCH_MISSES,
    "bus-cycles": Hardware.BUS_CYCLES,
    "stalled-cycles-frontend": Hardware.STALLED_CYCLES_FRONTEND,
    "stalled-cycles-backend": Hardware.STALLED_CYCLES_BACKEND,
    "ref-cycles": Hardware.REF_CPU_CYCLES,
}

SOFTWARE = {
    "cpu-clock": Software.CPU_CLOCK,
    "task-clock": Software.TASK_CLOCK,
    "page-faults": Software.PAGE_FAULTS,
    "faults": Software.PAGE_FAULTS,
    "context-switches": Software.CONTEXT_SWITCHES,
    "cs": Software.CONTEXT_SWITCHES,
    "cpu-migrations": Software.CPU_MIGRATIONS,
    "migrations": Software.CPU_MIGRATIONS,
    "minor-faults": Software.PAGE_FAULTS_MIN,
    "major-faults": Software.PAGE_FAULTS_MAJ,
    "alignment-faults": Software.ALIGNMENT_FAULTS,
    "emulation-faults": Software.EMULATION_FAULTS,
    "dummy": Software.DUMMY,
    "bpf-output": Software.BPF_OUTPUT,
    "cgroup-switches": Software.CGROUP_SWITCHES,
}

_CACHES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node")
_OPERATIONS = ("load", "store", "prefetch")


def _cache_names() -> dict[str, int]:
    """`config` is cache | operation << 8 | result << 16, where result is 0 for accesses and 1 for misses."""
    names: dict[str, int] = {}
    for cache_id, cache in enumerate(_CACHES):
        for operation_id, operation in enumerate(_OPERATIONS):
            config = cache_id | operation_id << 8
            plural = operation + ("es" if operation == "prefetch" else "s")
            names[f"{cache}-{plural}"] = config
            names[f"{cache}-{operation}-misses"] = config | 1 << 16
    return names


CACHE = _cache_names()
