"""Memory of the big host: 4 nodes of 512 GiB, 8 memory controllers.

A step is a second; in each, every counter of `/proc/vmstat` grows by `VMSTAT_STEP` for its place in the list.
"""

from pathlib import Path

from fakes.big_host.files import write

NODES = 4
CONTROLLERS = 8
NODE_TOTAL_KB = 512 * 1024 * 1024
NODE_FREE_KB = {node: NODE_TOTAL_KB // 8 * (node + 1) for node in range(NODES)}
FREE_KB_STEP = 4  # freed on each node in a step
NUMASTAT = {
    "numa_hit": 50_000,
    "numa_miss": 30,
    "numa_foreign": 20,
    "interleave_hit": 0,
    "local_node": 49_000,
    "other_node": 1_030,
}
MOVED_BYTES, LOCAL_BYTES, OCCUPIED_BYTES = (
    3 << 30,
    2 << 30,
    200 << 20,
)  # by Resource Control, of each of 4 caches in a step
CORRECTABLE_ERRORS = 3  # on controller mc2 in a step; the others have none
_VMSTAT_NAMES = """
nr_free_pages nr_free_pages_blocks nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file
nr_zone_active_file nr_zone_unevictable nr_zone_write_pending nr_mlock nr_zspages nr_free_cma numa_hit
numa_miss numa_foreign numa_interleave numa_local numa_other nr_inactive_anon nr_active_anon nr_inactive_file
nr_active_file nr_unevictable nr_slab_reclaimable nr_slab_unreclaimable nr_isolated_anon nr_isolated_file
workingset_nodes workingset_refault_anon workingset_refault_file workingset_activate_anon
workingset_activate_file workingset_restore_anon workingset_restore_file workingset_nodereclaim nr_anon_pages
nr_mapped nr_file_pages nr_dirty nr_writeback nr_shmem nr_shmem_hugepages nr_shmem_pmdmapped nr_file_hugepages
nr_file_pmdmapped nr_anon_transparent_hugepages nr_vmscan_write nr_vmscan_immediate_reclaim nr_dirtied
nr_written nr_throttled_written nr_kernel_misc_reclaimable nr_foll_pin_acquired nr_foll_pin_released
nr_kernel_stack nr_page_table_pages nr_sec_page_table_pages nr_iommu_pages nr_swapcached pgpromote_success
pgpromote_candidate pgpromote_candidate_nrl pgdemote_kswapd pgdemote_direct pgdemote_khugepaged
pgdemote_proactive nr_hugetlb nr_balloon_pages nr_kernel_file_pages nr_dirty_threshold
nr_dirty_background_threshold nr_memmap_pages nr_memmap_boot_pages pgpgin pgpgout pswpin pswpout pgalloc_dma
pgalloc_dma32 pgalloc_normal pgalloc_movable pgalloc_device allocstall_dma allocstall_dma32 allocstall_normal
allocstall_movable allocstall_device pgskip_dma pgskip_dma32 pgskip_normal pgskip_movable pgskip_device pgfree
pgactivate pgdeactivate pglazyfree pgfault pgmajfault pglazyfreed pgrefill pgreuse pgsteal_kswapd
pgsteal_direct pgsteal_khugepaged pgsteal_proactive pgscan_kswapd pgscan_direct pgscan_khugepaged
pgscan_proactive pgscan_direct_throttle pgscan_anon pgscan_file pgsteal_anon pgsteal_file zone_reclaim_success
zone_reclaim_failed pginodesteal slabs_scanned kswapd_inodesteal kswapd_low_wmark_hit_quickly
kswapd_high_wmark_hit_quickly pageoutrun pgrotated drop_pagecache drop_slab oom_kill numa_pte_updates
numa_huge_pte_updates numa_hint_faults numa_hint_faults_local numa_pages_migrated pgmigrate_success
pgmigrate_fail thp_migration_success thp_migration_fail thp_migration_split compact_migrate_scanned
compact_free_scanned compact_isolated compact_stall compact_fail compact_success compact_daemon_wake
compact_daemon_migrate_scanned compact_daemon_free_scanned htlb_buddy_alloc_success htlb_buddy_alloc_fail
unevictable_pgs_culled unevictable_pgs_scanned unevictable_pgs_rescued unevictable_pgs_mlocked
unevictable_pgs_munlocked unevictable_pgs_cleared unevictable_pgs_stranded thp_fault_alloc thp_fault_fallback
thp_fault_fallback_charge thp_collapse_alloc thp_collapse_alloc_failed thp_file_alloc thp_file_fallback
thp_file_fallback_charge thp_file_mapped thp_split_page thp_split_page_failed thp_deferred_split_page
thp_underused_split_page thp_split_pmd thp_scan_exceed_none_pte thp_scan_exceed_swap_pte
thp_scan_exceed_share_pte thp_split_pud thp_zero_page_alloc thp_zero_page_alloc_failed thp_swpout
thp_swpout_fallback balloon_inflate balloon_deflate balloon_migrate swap_ra swap_ra_hit swpin_zero swpout_zero
ksm_swpin_copy cow_ksm zswpin zswpout zswpwb direct_map_level2_splits direct_map_level3_splits
direct_map_level2_collapses direct_map_level3_collapses nr_unstable
"""
VMSTAT_STEP = {name: 10 * place for place, name in enumerate(_VMSTAT_NAMES.split())}
_MEMINFO = {
    "MemFree": NODE_TOTAL_KB // 4,
    "MemAvailable": NODE_TOTAL_KB * 3,
    "Buffers": 3_000_000,
    "Cached": 700_000_000,
    "SwapCached": 0,
    "Active": 400_000_000,
    "Inactive": 300_000_000,
    "Active(anon)": 100_000_000,
    "Inactive(anon)": 50_000_000,
    "Unevictable": 20_000,
    "Mlocked": 19_000,
    "SwapTotal": 8_388_604,
    "SwapFree": 8_000_000,
    "Zswap": 0,
    "Zswapped": 0,
    "Dirty": 30_000,
    "Writeback": 128,
    "AnonPages": 90_000_000,
    "Mapped": 5_000_000,
    "Shmem": 60_000_000,
    "KReclaimable": 7_000_000,
    "Slab": 9_000_000,
    "SReclaimable": 7_000_000,
    "SUnreclaim": 2_000_000,
    "KernelStack": 150_000,
    "PageTables": 400_000,
    "NFS_Unstable": 0,
    "CommitLimit": 1_081_000_000,
    "Committed_AS": 250_000_000,
    "VmallocTotal": 34_359_738_367,
    "VmallocUsed": 2_000_000,
    "Percpu": 1_500_000,
    "AnonHugePages": 80_000_000,
    "Hugetlb": 0,
    "DirectMap4k": 5_000_000,
}


def build_memory(root: Path, step: int) -> None:
    """Write or rewrite the files of the memory as they are at `step`."""
    fields = {
        "MemTotal": NODES * NODE_TOTAL_KB,
        **_MEMINFO,
        "MemFree": sum(NODE_FREE_KB.values()) + NODES * FREE_KB_STEP * step,
    }
    lines = [f"{name + ':':<16}{kb:>10} kB\n" for name, kb in fields.items()]
    lines += [
        "HugePages_Total:     512\n",
        "HugePages_Free:      500\n",
        "HugePages_Rsvd:        2\n",
        "HugePages_Surp:        0\n",
    ]
    write(root, "proc/meminfo", "".join([*lines, "Hugepagesize:       2048 kB\n"]))
    counters = (f"{name} {123_456_789 + per_step * step}\n" for name, per_step in VMSTAT_STEP.items())
    write(root, "proc/vmstat", "".join(counters))
    for node in range(NODES):
        _build_node(root, node, step)
    for controller in range(CONTROLLERS):
        folder = f"sys/devices/system/edac/mc/mc{controller}"
        errors = CORRECTABLE_ERRORS * step if controller == 2 else 0
        write(root, f"{folder}/ce_count", f"{40 + errors}\n")
        write(root, f"{folder}/ue_count", "0\n")


def _build_node(root: Path, node: int, step: int) -> None:
    folder = f"sys/devices/system/node/node{node}"
    free = NODE_FREE_KB[node] + FREE_KB_STEP * step
    fields = {"MemTotal": NODE_TOTAL_KB, "MemFree": free, "MemUsed": NODE_TOTAL_KB - free, **_MEMINFO}
    fields["MemFree"] = free
    write(
        root, f"{folder}/meminfo", "".join(f"Node {node} {name + ':':<16}{kb:>10} kB\n" for name, kb in fields.items())
    )
    write(root, f"{folder}/numastat", "".join(f"{name} {10**9 + n * step}\n" for name, n in NUMASTAT.items()))
