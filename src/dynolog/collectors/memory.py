"""Memory and swap of the host by use."""

from dynolog.collectors.spec import CollectorSpec, Context, Values
from dynolog.model.metric import Kind, Metric
from dynolog.sources.meminfo import MeminfoReader

# Field of /proc/meminfo, name, description.
_BYTES = (
    ("MemTotal:", "mem_total_bytes", "Memory that the kernel manages"),
    ("MemFree:", "mem_free_bytes", "Memory that nothing uses"),
    ("MemAvailable:", "mem_available_bytes", "Memory that new programs can have without swapping (an estimate)"),
    ("Buffers:", "mem_buffers_bytes", "Page cache of block devices"),
    ("Cached:", "mem_cached_bytes", "Page cache of files, shared memory included"),
    ("Active:", "mem_active_bytes", "Memory used lately, reclaimed last"),
    ("Inactive:", "mem_inactive_bytes", "Memory not used lately, reclaimed first"),
    ("Unevictable:", "mem_unevictable_bytes", "Memory that cannot be reclaimed, locked memory included"),
    ("Mlocked:", "mem_locked_bytes", "Memory locked with mlock(2)"),
    ("Dirty:", "mem_dirty_bytes", "Page cache that waits to be written to disk"),
    ("Writeback:", "mem_writeback_bytes", "Page cache that is being written to disk"),
    ("AnonPages:", "mem_anon_bytes", "Memory of processes that no file stands behind"),
    ("Mapped:", "mem_mapped_bytes", "Files mapped into processes"),
    ("Shmem:", "mem_shared_bytes", "Shared memory and tmpfs"),
    ("SReclaimable:", "mem_slab_reclaimable_bytes", "Kernel objects that can be freed (inode and dentry caches)"),
    ("SUnreclaim:", "mem_slab_unreclaimable_bytes", "Kernel objects that cannot be freed"),
    ("KernelStack:", "mem_kernel_stack_bytes", "Kernel stacks of threads"),
    ("PageTables:", "mem_page_tables_bytes", "Page tables of processes"),
    ("Percpu:", "mem_percpu_bytes", "Per-CPU allocations of the kernel"),
    ("CommitLimit:", "mem_commit_limit_bytes", "Memory that can be promised with vm.overcommit_memory=2"),
    ("Committed_AS:", "mem_committed_bytes", "Memory promised to processes, used or not"),
    ("AnonHugePages:", "mem_anon_huge_bytes", "Transparent huge pages of processes"),
    ("SwapTotal:", "swap_total_bytes", "Swap space"),
    ("SwapFree:", "swap_free_bytes", "Swap space that is free"),
    ("SwapCached:", "swap_cached_bytes", "Memory that is in swap as well, so that it need not be written again"),
    ("Zswap:", "zswap_bytes", "Memory that zswap uses for compressed pages"),
    ("Zswapped:", "zswapped_bytes", "Memory that zswap holds, before compression"),
    ("Hugepagesize:", "hugepage_size_bytes", "Size of a page of the default hugetlb pool"),
)
_PAGES = (
    ("HugePages_Total:", "hugepages_total", "Pages of the default hugetlb pool"),
    ("HugePages_Free:", "hugepages_free", "Pages of the default hugetlb pool that are not allocated"),
    (
        "HugePages_Rsvd:",
        "hugepages_reserved",
        "Pages of the default hugetlb pool that are promised and not yet allocated",
    ),
    ("HugePages_Surp:", "hugepages_surplus", "Pages of the default hugetlb pool above its configured size"),
)
METRICS = (
    *(Metric(name=name, kind=Kind.GAUGE, unit="By", description=text) for _, name, text in _BYTES),
    *(Metric(name=name, kind=Kind.GAUGE, unit="{page}", description=text) for _, name, text in _PAGES),
    Metric(
        name="mem_used_bytes", kind=Kind.GAUGE, unit="By", description="Memory that is not available: total - available"
    ),
    Metric(name="mem_util", kind=Kind.GAUGE, unit="%", description="Share of memory that is not available"),
    Metric(name="swap_used_bytes", kind=Kind.GAUGE, unit="By", description="Swap space in use"),
)
_BYTE_KEYS = tuple((field, name) for field, name, _ in _BYTES)
_PAGE_KEYS = tuple((field, name) for field, name, _ in _PAGES)
_FIELDS = tuple(field for field, _ in (*_BYTE_KEYS, *_PAGE_KEYS))


class MemoryCollector:
    """Gauges from `/proc/meminfo`."""

    def __init__(self, context: Context) -> None:
        self._reader = MeminfoReader(context.host, _FIELDS)

    def read(self) -> dict[str, int]:
        """One reading."""
        return self._reader.read()

    def compute(self, before: dict[str, int], after: dict[str, int], elapsed_s: float) -> Values:
        """Levels at the end of the interval; a field that this kernel lacks is left out."""
        del before, elapsed_s
        values: Values = {name: after[field] * 1024 for field, name in _BYTE_KEYS if field in after}
        for field, name in _PAGE_KEYS:
            if field in after:
                values[name] = after[field]
        total, available = after.get("MemTotal:"), after.get("MemAvailable:")
        if total and available is not None:
            values["mem_used_bytes"] = (total - available) * 1024
            values["mem_util"] = 100 * (total - available) / total
        if "SwapTotal:" in after and "SwapFree:" in after:
            values["swap_used_bytes"] = (after["SwapTotal:"] - after["SwapFree:"]) * 1024
        return values


SPEC = CollectorSpec(
    name="memory",
    summary="memory and swap by use",
    needs="/proc/meminfo",
    factory=MemoryCollector,
    metrics=METRICS,
)
