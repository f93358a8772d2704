"""Metric sets that each vendor counts in its own way: slots of the pipeline, floating-point operations, memory traffic."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from dynolog.collectors.perf_groups import Derived, GroupSpec, Interval, Value, Variant
from dynolog.sources.pmu_devices import PmuDevices
from dynolog.sources.pmu_tables import PmuTable, table_of

_MIB = 1 << 20
_CACHE_LINE_BYTES = 64
_SCF_BEAT_BYTES = 32
_SLOTS = ("retiring", "bad_speculation", "frontend_bound", "backend_bound", "smt_contention")
_NO_CORES = "this machine shows no counters of its processor"
Shares = Callable[[Sequence[float]], Sequence[float] | None]


def _topdown(shares: Shares, number: int = 4) -> tuple[Derived, ...]:
    """The metrics of level 1 from a function that gives all of them."""

    def value(place: int) -> Value:
        def one(counts: Sequence[float], _interval: Interval) -> float | None:
            found = shares(counts)
            # The events are not read in the same instant, so a share may come out a little below 0.
            return None if found is None else min(max(found[place], 0.0), 1.0)

        return one

    return tuple(Derived(f"topdown_{name}_ratio", value(place)) for place, name in enumerate(_SLOTS[:number]))


def _of_their_sum(counts: Sequence[float]) -> Sequence[float] | None:
    """Intel since Ice Lake, and its efficient cores: the last four events are slots of each kind, and add up to all slots."""
    slots = sum(counts[-4:])
    return [count / slots for count in counts[-4:]] if slots > 0 else None


def _skylake(counts: Sequence[float]) -> Sequence[float] | None:
    """Intel before Ice Lake: slots in all, issued, retired, bubbles of the front end, bubbles of recovery."""
    slots, issued, retired, fetch_bubbles, recovery_bubbles = counts
    if slots <= 0:
        return None
    known = [retired / slots, (issued - retired + recovery_bubbles) / slots, fetch_bubbles / slots]
    return [*known, 1 - sum(known)]


def _dispatch(slots_per_cycle: int) -> Shares:
    """AMD since Zen 4: cycles, operations dispatched and retired, slots empty by the front end, the back end, the other thread."""

    def shares(counts: Sequence[float]) -> Sequence[float] | None:
        cycles, dispatched, retired, frontend, backend, other_thread = counts
        slots = slots_per_cycle * cycles
        if slots <= 0:
            return None
        return [count / slots for count in (retired, dispatched - retired, frontend, backend, other_thread)]

    return shares


def _arm(slots_per_cycle: int) -> Shares:
    """ARM: cycles, slots stalled by the front end, by the back end, by either, operations retired and begun.

    Cores with five slots count one stalled slot of the front end too many in each cycle (the metrics of Neoverse N2 in the kernel's
    pmu-events correct for that).
    """
    surplus = 1 if slots_per_cycle == 5 else 0

    def shares(counts: Sequence[float]) -> Sequence[float] | None:
        cycles, frontend, backend, stalled, retired, begun = counts
        slots = slots_per_cycle * cycles
        if slots <= 0 or begun <= 0:
            return None
        used = 1 - (stalled - surplus * cycles) / slots
        useful = min(retired / begun, 1.0)
        return [useful * used, (1 - useful) * used, (frontend - surplus * cycles) / slots, backend / slots]

    return shares


_INTEL = _topdown(_of_their_sum)
_INTEL_KINDS = ("topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound")
_SKYLAKE = Variant(
    (
        "topdown-total-slots",
        "topdown-slots-issued",
        "topdown-slots-retired",
        "topdown-fetch-bubbles",
        "topdown-recovery-bubbles",
    ),
    _topdown(_skylake),
)
_ARM_EVENTS = ("cpu_cycles", "stall_slot_frontend", "stall_slot_backend", "stall_slot", "op_retired", "op_spec")
_AMD_EVENTS = ("dispatched_ops", "retired_ops", "no_ops_from_frontend", "backend_stalls", "smt_contention")


def topdown_groups(devices: PmuDevices) -> tuple[GroupSpec, ...]:
    """Level 1 of the top-down method, by the events that the cores have."""
    if not devices.cores:
        return (GroupSpec("topdown", (), missing=_NO_CORES),)
    table = table_of(devices.host)
    named = {event for core in devices.cores for event in core.events}
    variants: list[Variant] = []
    if "slots" in named:
        # The kernel wants `slots` as the leader of the others (perf_event_open(2) answers EINVAL to them alone).
        variants.append(Variant(("slots", *_INTEL_KINDS), _INTEL, indivisible=True))
    if "topdown-retiring" in named:
        variants.append(Variant(_INTEL_KINDS, _INTEL))
    if "topdown-total-slots" in named:
        variants.append(_SKYLAKE)
    if named.issuperset(_ARM_EVENTS) and (slots := _slots_of(devices)):
        variants.append(Variant(_ARM_EVENTS, _topdown(_arm(slots))))
    if table.dispatch_slots:
        events = tuple(table.events[name].event for name in _AMD_EVENTS)
        variants.append(Variant(("cycles", *events), _topdown(_dispatch(table.dispatch_slots), len(_SLOTS))))
    return (GroupSpec("topdown", tuple(variants), missing=_missing(table, "does not count the slots of its pipeline")),)


def _slots_of(devices: PmuDevices) -> int:
    """Slots a cycle by `caps/slots` of the first core PMU that says so (0x8); 0 when none does."""
    for core in devices.cores:
        try:
            return int(core.caps.get("slots", "0"), 0)
        except ValueError:
            continue
    return 0


def _missing(table: PmuTable, what: str) -> str:
    if table.name:
        return f"{table.name} {what} in a way that is known here"
    return f"this processor {what} in a way that the kernel names, and it is none that is known here"


def flops_groups(devices: PmuDevices) -> tuple[GroupSpec, ...]:
    """Floating-point operations, by the weights of the processor's table."""
    table = table_of(devices.host)
    if not devices.cores:
        return (GroupSpec("flops", (), missing=_NO_CORES),)
    variants = (_weighted(table, table.operations, "gflops", 1e9),) if table.operations else ()
    return (GroupSpec("flops", variants, missing=_missing(table, "does not count floating-point operations")),)


def _weighted(table: PmuTable, weights: Mapping[str, float], name: str, unit: float) -> Variant:
    factors = tuple(weights.values())
    return Variant(
        tuple(table.events[event].event for event in weights), (Derived(name, _sum_rate(factors, unit=unit)),)
    )


def _sum_rate(factors: Sequence[float], first: int = 0, unit: float = 1.0) -> Value:
    """The weighted sum of the counts from `first` on, a second."""

    def value(counts: Sequence[float], interval: Interval) -> float | None:
        if interval.elapsed_s <= 0:
            return None
        total = sum(count * factor for count, factor in zip(counts[first:], factors, strict=False))
        return total / unit / interval.elapsed_s

    return value


def membw_groups(devices: PmuDevices) -> tuple[GroupSpec, ...]:
    """Memory traffic, by the first kind of counter outside the cores that this machine has."""
    table = table_of(devices.host)
    missing = (
        "no counters of memory traffic that are known here (uncore_imc, amd_umc, amd_df, nvidia_scf_pmu, arm_cmn): "
        "virtual machines have none, AMD's amd_umc needs Linux 6.10"
    )
    variants = tuple(_traffic_variants(devices, table))
    return (GroupSpec("membw", variants, per_socket=True, in_cgroups=False, missing=missing),)


def _traffic_variants(devices: PmuDevices, table: PmuTable) -> Iterator[Variant]:
    for family, reads, writes in (
        ("uncore_imc", ("cas_count_read",), ("cas_count_write",)),
        (
            "uncore_imc",
            ("cas_count_read_sch0", "cas_count_read_sch1"),
            ("cas_count_write_sch0", "cas_count_write_sch1"),
        ),
        ("uncore_imc_free_running", ("data_read",), ("data_write",)),
        ("uncore_imc_free_running", ("read",), ("write",)),
        ("uncore_imc", ("data_reads",), ("data_writes",)),
    ):
        instances = devices.instances(family)
        if instances and all(event in instances[0].events for event in (*reads, *writes)):
            known = [instances[0].events[event] for event in (*reads, *writes)]
            factors = [_MIB if event.unit == "MiB" else _CACHE_LINE_BYTES for event in known]
            events = [f"{family}/{event}/" for event in (*reads, *writes)]
            yield _both_ways(events, factors[: len(reads)], factors[len(reads) :])
    if table.read_bytes and devices.instances("amd_umc"):
        events = [table.events[name].event for name in (*table.read_bytes, *table.write_bytes)]
        yield _both_ways(events, list(table.read_bytes.values()), list(table.write_bytes.values()))
    if table.moved_bytes and devices.instances("amd_df"):
        yield _weighted(table, table.moved_bytes, "membw_bytes_per_s", 1.0)
    fabric = devices.instances("nvidia_scf_pmu")
    if fabric and {"cmem_rd_data", "cmem_wr_total_bytes"} <= set(fabric[0].events):
        yield _both_ways(
            ["nvidia_scf_pmu/cmem_rd_data/", "nvidia_scf_pmu/cmem_wr_total_bytes/"], [_SCF_BEAT_BYTES], [1.0]
        )
    mesh = devices.instances("arm_cmn")
    if mesh and "hnf_mc_reqs" in mesh[0].events:
        derived = Derived("membw_bytes_per_s", _sum_rate([_CACHE_LINE_BYTES]))
        yield Variant(("arm_cmn/hnf_mc_reqs/",), (derived,))


def _both_ways(events: Sequence[str], read: Sequence[float], write: Sequence[float]) -> Variant:
    """Events that read first, then those that write; with the bytes that a count of each stands for."""
    return Variant(
        tuple(events),
        (
            Derived("membw_read_bytes_per_s", _sum_rate(read)),
            Derived("membw_write_bytes_per_s", _sum_rate(write, first=len(read))),
            Derived("membw_bytes_per_s", _sum_rate([*read, *write])),
        ),
    )
