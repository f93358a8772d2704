"""What to count, and `struct perf_event_attr` as the kernel takes it (perf_event_open(2))."""

import struct
from enum import IntEnum

import msgspec
import msgspec.structs


class EventType(IntEnum):
    """The types whose numbers are fixed; every other PMU has its number in `/sys/bus/event_source/devices/PMU/type`."""

    HARDWARE = 0
    SOFTWARE = 1
    TRACEPOINT = 2
    HW_CACHE = 3
    RAW = 4
    BREAKPOINT = 5


class Hardware(IntEnum):
    """Generic events of the processor: `config` of EventType.HARDWARE."""

    CPU_CYCLES = 0
    INSTRUCTIONS = 1
    CACHE_REFERENCES = 2
    CACHE_MISSES = 3
    BRANCH_INSTRUCTIONS = 4
    BRANCH_MISSES = 5
    BUS_CYCLES = 6
    STALLED_CYCLES_FRONTEND = 7
    STALLED_CYCLES_BACKEND = 8
    REF_CPU_CYCLES = 9


class Software(IntEnum):
    """Events of the kernel: `config` of EventType.SOFTWARE."""

    CPU_CLOCK = 0
    TASK_CLOCK = 1
    PAGE_FAULTS = 2
    CONTEXT_SWITCHES = 3
    CPU_MIGRATIONS = 4
    PAGE_FAULTS_MIN = 5
    PAGE_FAULTS_MAJ = 6
    ALIGNMENT_FAULTS = 7
    EMULATION_FAULTS = 8
    DUMMY = 9
    BPF_OUTPUT = 10
    CGROUP_SWITCHES = 11


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One event to count.

    `type`, `config` to `config3` and `exclude_*` are those of perf_event_attr. A count times `scale` is in `unit` (both from sysfs
    or a table; "" means a plain number). `pmu` is the device's name in sysfs ("" for a generic event). `cpus` is where the event may
    be opened: None for each online CPU, else the PMU's own `cpus` (a core type of a hybrid processor) or `cpumask` (one CPU a
    socket). `core_type` names the core type on a hybrid processor ("core", "atom"), "" elsewhere.
    """

    name: str
    type: int
    config: int
    config1: int = 0
    config2: int = 0
    config3: int = 0
    exclude_user: bool = False
    exclude_kernel: bool = False
    exclude_hv: bool = False
    exclude_idle: bool = False
    exclude_host: bool = False
    exclude_guest: bool = False
    scale: float = 1.0
    unit: str = ""
    pmu: str = ""
    cpus: tuple[int, ...] | None = None
    core_type: str = ""


def user_mode_only(event: EventSpec) -> EventSpec:
    """The same event without what the kernel and the hypervisor do."""
    return msgspec.structs.replace(event, exclude_kernel=True, exclude_hv=True)


# Bits of read_format: times and id beside each value, and the whole group in one read(2).
TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, ID, GROUP = 1, 2, 4, 8
READ_FORMAT = TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING | ID | GROUP

# Bits of the flags word. `pinned` (2) and `exclusive` (3) are not among them on purpose: a pinned event that gets no counter
# reads 0 for ever, and an exclusive group never runs beside the NMI watchdog.
_DISABLED = 1 << 0
_INHERIT = 1 << 1
_EXCLUDE_USER = 1 << 4
_EXCLUDE_KERNEL = 1 << 5
_EXCLUDE_HV = 1 << 6
_EXCLUDE_IDLE = 1 << 7
_ENABLE_ON_EXEC = 1 << 12
_EXCLUDE_HOST = 1 << 19
_EXCLUDE_GUEST = 1 << 20

# type, size, config, period, sample_type, read_format, flags, wakeup_events, bp_type, config1, config2: the 72 bytes that every kernel
# since 2.6.33 knows; then 56 bytes of what is about sampling, and config3, which Linux 6.3 added.
_SHORT = struct.Struct("=IIQQQQQIIQQ")
_LONG = struct.Struct("=IIQQQQQIIQQ56xQ")


def encode_attr(event: EventSpec, *, disabled: bool, inherit: bool = False, enable_on_exec: bool = False) -> bytes:
    """The attr for counting `event`; the kernel reads its size from its own second word.

    `disabled` is for the leader of a group: its members follow it. `inherit` counts children of a process that start later.
    """
    flags = (
        _DISABLED * disabled
        | _INHERIT * inherit
        | _EXCLUDE_USER * event.exclude_user
        | _EXCLUDE_KERNEL * event.exclude_kernel
        | _EXCLUDE_HV * event.exclude_hv
        | _EXCLUDE_IDLE * event.exclude_idle
        | _ENABLE_ON_EXEC * enable_on_exec
        | _EXCLUDE_HOST * event.exclude_host
        | _EXCLUDE_GUEST * event.exclude_guest
    )
    layout = _LONG if event.config3 else _SHORT
    fields = [event.type, layout.size, event.config, 0, 0, READ_FORMAT, flags, 0, 0, event.config1, event.config2]
    if event.config3:
        fields.append(event.config3)
    return layout.pack(*fields)
