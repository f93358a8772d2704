"""What the memory management does: faults, paging, reclaim, OOM kills, huge pages, compaction, NUMA balancing."""

import os

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.vmstat import VmstatReader

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Field of /proc/vmstat, name, unit, description. The kernel counts pages, pgpgin and pgpgout kB.
_COUNTERS = (
    ("pgfault", "page_faults", "{fault}", "Page faults, major ones included"),
    ("pgmajfault", "page_faults_major", "{fault}", "Page faults that waited for a disk"),
    ("pgscan_kswapd", "reclaim_kswapd_scanned_pages", "{page}", "Pages looked at by kswapd, which frees memory in the background"),
    ("pgsteal_kswapd", "reclaim_kswapd_freed_pages", "{page}", "Pages freed by kswapd"),
    ("pgscan_direct", "reclaim_direct_scanned_pages", "{page}", "Pages looked at by allocations that had to wait for memory"),
    ("pgsteal_direct", "reclaim_direct_freed_pages", "{page}", "Pages freed by allocations that had to wait for memory"),
    ("workingset_refault_anon", "refaults_anon_pages", "{page}", "Process memory read back soon after it was reclaimed"),
    ("workingset_refault_file", "refaults_file_pages", "{page}", "Page cache read back soon after it was reclaimed"),
    ("oom_kill", "oom_kills", "{process}", "Processes killed for want of memory, those by a cgroup's limit included"),
    ("thp_fault_alloc", "thp_fault_allocs", "{page}", "Transparent huge pages given at a page fault"),
    ("thp_fault_fallback", "thp_fault_fallbacks", "{page}", "Page faults that got small pages since no huge page was free"),
    ("thp_collapse_alloc", "thp_collapse_allocs", "{page}", "Transparent huge pages allocated by khugepaged to replace small ones"),
    ("thp_collapse_alloc_failed", "thp_collapse_failures", "{page}", "Transparent huge pages that khugepaged could not allocate"),
    ("thp_split_page", "thp_splits", "{page}", "Transparent huge pages split into small ones"),
    ("compact_stall", "compaction_stalls", "{stall}", "Allocations that had to wait while memory was compacted"),
    ("compact_success", "compaction_successes", "{run}", "Compactions after which the allocation succeeded"),
    ("compact_fail", "compaction_failures", "{run}", "Compactions after which the allocation failed"),
    ("pgmigrate_success", "migrated_pages", "{page}", "Pages moved in memory, for compaction, NUMA balancing and others"),
    ("pgmigrate_fail", "migration_failed_pages", "{page}", "Pages that could not be moved"),
    ("numa_pte_updates", "numa_balancing_marked_pages", "{page}", "Pages that NUMA balancing marked to see who uses them"),
    ("numa_hint_faults", "numa_hint_faults", "{fault}", "Page faults on pages marked by NUMA balancing"),
    ("numa_hint_faults_local", "numa_hint_faults_local", "{fault}", "The same, by CPUs of the node that has the page"),
    ("numa_pages_migrated", "numa_migrated_pages", "{page}", "Pages moved to another node by NUMA balancing"),
)  # fmt: skip
_VOLUMES = (
    ("pgpgin", 1024, "page_in_bytes", "Data read from block devices, swap included"),
    ("pgpgout", 1024, "page_out_bytes", "Data written to block devices, swap included"),
    ("pswpin", PAGE_BYTES, "swap_in_bytes", "Memory read back from swap"),
    ("pswpout", PAGE_BYTES, "swap_out_bytes", "Memory written to swap"),
)
# One for each zone; which zones there are depends on the machine.
_ALLOCSTALL = tuple(f"allocstall_{zone}" for zone in ("dma", "dma32", "normal", "movable", "device"))
METRICS = (
    *(Metric(name=name, kind=Kind.DELTA, unit=unit, description=text) for _, name, unit, text in _COUNTERS),
    *(Metric(name=name, kind=Kind.DELTA, unit="By", description=text) for _, _, name, text in _VOLUMES),
    Metric(
        name="reclaim_direct_stalls",
        kind=Kind.DELTA,
        unit="{stall}",
        description="Allocations that had to free memory themselves",
    ),
)
_COUNTER_KEYS = tuple((field, name) for field, name, _, _ in _COUNTERS)
_VOLUME_KEYS = tuple((field, factor, name) for field, factor, name, _ in _VOLUMES)
_FIELDS = (*(field for field, _ in _COUNTER_KEYS), *(field for field, _, _ in _VOLUME_KEYS), *_ALLOCSTALL)


class VmstatCollector:
    """Deltas of the counters in `/proc/vmstat` that say something to an operator."""

    def __init__(self, context: Context) -> None:
        self._reader = VmstatReader(context.host, _FIELDS)

    def read(self) -> dict[str, int]:
        """One reading."""
        return self._reader.read()

    def compute(self, before: dict[str, int], after: dict[str, int], elapsed_s: float) -> Values:
        """Growth of what both readings have; a counter that went down has no value."""
        del elapsed_s
        grown = {field: after[field] - old for field, old in before.items() if after.get(field, -1) >= old}
        values: Values = {name: grown[field] for field, name in _COUNTER_KEYS if field in grown}
        for field, factor, name in _VOLUME_KEYS:
            if field in grown:
                values[name] = grown[field] * factor
        zones = [zone for zone in _ALLOCSTALL if zone in before or zone in after]
        if zones and all(zone in grown for zone in zones):
            values["reclaim_direct_stalls"] = sum(grown[zone] for zone in zones)
        return values


SPEC = CollectorSpec(
    name="vmstat",
    summary="page faults, swapping, reclaim, OOM kills, huge pages, compaction, NUMA balancing",
    needs="/proc/vmstat",
    factory=VmstatCollector,
    metrics=METRICS,
)
