"""Counters of the memory management on hand-made /proc/vmstat files."""

import os

import pytest

from dynolog.collectors.vmstat import METRICS, VmstatCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import measure

PAGE = os.sysconf("SC_PAGE_SIZE")
# Field, factor, key; written out here a second time, so that a slip in the table shows.
FIELDS = [
    ("pgfault", 1, "page_faults"),
    ("pgmajfault", 1, "page_faults_major"),
    ("pgscan_kswapd", 1, "reclaim_kswapd_scanned_pages"),
    ("pgsteal_kswapd", 1, "reclaim_kswapd_freed_pages"),
    ("pgscan_direct", 1, "reclaim_direct_scanned_pages"),
    ("pgsteal_direct", 1, "reclaim_direct_freed_pages"),
    ("workingset_refault_anon", 1, "refaults_anon_pages"),
    ("workingset_refault_file", 1, "refaults_file_pages"),
    ("oom_kill", 1, "oom_kills"),
    ("thp_fault_alloc", 1, "thp_fault_allocs"),
    ("thp_fault_fallback", 1, "thp_fault_fallbacks"),
    ("thp_collapse_alloc", 1, "thp_collapse_allocs"),
    ("thp_collapse_alloc_failed", 1, "thp_collapse_failures"),
    ("thp_split_page", 1, "thp_splits"),
    ("compact_stall", 1, "compaction_stalls"),
    ("compact_success", 1, "compaction_successes"),
    ("compact_fail", 1, "compaction_failures"),
    ("pgmigrate_success", 1, "migrated_pages"),
    ("pgmigrate_fail", 1, "migration_failed_pages"),
    ("numa_pte_updates", 1, "numa_balancing_marked_pages"),
    ("numa_hint_faults", 1, "numa_hint_faults"),
    ("numa_hint_faults_local", 1, "numa_hint_faults_local"),
    ("numa_pages_migrated", 1, "numa_migrated_pages"),
    ("pgpgin", 1024, "page_in_bytes"),
    ("pgpgout", 1024, "page_out_bytes"),
    ("pswpin", PAGE, "swap_in_bytes"),
    ("pswpout", PAGE, "swap_out_bytes"),
    ("allocstall_movable", 1, "reclaim_direct_stalls"),
]


@pytest.mark.parametrize(("field", "factor", "key"), FIELDS)
def test_every_field_changes_its_metric(host_tree: HostTree, field: str, factor: int, key: str) -> None:
    values = measure(
        host_tree,
        VmstatCollector,
        {"proc/vmstat": f"nr_dirty 5\n{field} 100\nother 9\n"},
        {"proc/vmstat": f"nr_dirty 6\n{field} 103\nother 9\n"},
    )
    assert values == {key: 3 * factor}


def test_all_metrics_are_tested() -> None:
    assert {metric.name for metric in METRICS} == {key for _, _, key in FIELDS}


def test_stalls_of_all_zones_are_summed_and_none_is_guessed(host_tree: HostTree) -> None:
    before = "pgfault 1\nallocstall_dma32 10\nallocstall_normal 20\n"
    after = "pgfault 1\nallocstall_dma32 11\nallocstall_normal 25\n"
    assert measure(host_tree, VmstatCollector, {"proc/vmstat": before}, {"proc/vmstat": after}) == {
        "page_faults": 0,
        "reclaim_direct_stalls": 6,
    }
    gone = after.replace("allocstall_normal 25\n", "")
    assert measure(host_tree, VmstatCollector, {"proc/vmstat": before}, {"proc/vmstat": gone}) == {"page_faults": 0}


def test_a_reset_and_a_malformed_line_have_no_value(host_tree: HostTree) -> None:
    before = "pgfault 100\npgmajfault 10\noom_kill 1\n"
    after = "pgfault 99\npgmajfault x\noom_kill 2\n"
    assert measure(host_tree, VmstatCollector, {"proc/vmstat": before}, {"proc/vmstat": after}) == {"oom_kills": 1}


@pytest.mark.parametrize("content", ["", "nonsense\n", None])
def test_nothing_to_read_is_unavailable(host_tree: HostTree, content: str | None) -> None:
    with pytest.raises(SourceUnavailable, match="/proc/vmstat"):
        measure(host_tree, VmstatCollector, {"proc/vmstat": content}, {})
