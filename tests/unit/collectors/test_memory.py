"""Memory by use on hand-made /proc/meminfo files."""

import pytest

from dynolog.collectors.memory import METRICS, MemoryCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import measure

# Field, its unit in the file, key; written out here a second time, so that a slip in the table shows.
FIELDS = [
    ("MemTotal", "kB", "mem_total_bytes"),
    ("MemFree", "kB", "mem_free_bytes"),
    ("MemAvailable", "kB", "mem_available_bytes"),
    ("Buffers", "kB", "mem_buffers_bytes"),
    ("Cached", "kB", "mem_cached_bytes"),
    ("Active", "kB", "mem_active_bytes"),
    ("Inactive", "kB", "mem_inactive_bytes"),
    ("Unevictable", "kB", "mem_unevictable_bytes"),
    ("Mlocked", "kB", "mem_locked_bytes"),
    ("Dirty", "kB", "mem_dirty_bytes"),
    ("Writeback", "kB", "mem_writeback_bytes"),
    ("AnonPages", "kB", "mem_anon_bytes"),
    ("Mapped", "kB", "mem_mapped_bytes"),
    ("Shmem", "kB", "mem_shared_bytes"),
    ("SReclaimable", "kB", "mem_slab_reclaimable_bytes"),
    ("SUnreclaim", "kB", "mem_slab_unreclaimable_bytes"),
    ("KernelStack", "kB", "mem_kernel_stack_bytes"),
    ("PageTables", "kB", "mem_page_tables_bytes"),
    ("Percpu", "kB", "mem_percpu_bytes"),
    ("CommitLimit", "kB", "mem_commit_limit_bytes"),
    ("Committed_AS", "kB", "mem_committed_bytes"),
    ("AnonHugePages", "kB", "mem_anon_huge_bytes"),
    ("SwapTotal", "kB", "swap_total_bytes"),
    ("SwapFree", "kB", "swap_free_bytes"),
    ("SwapCached", "kB", "swap_cached_bytes"),
    ("Zswap", "kB", "zswap_bytes"),
    ("Zswapped", "kB", "zswapped_bytes"),
    ("Hugepagesize", "kB", "hugepage_size_bytes"),
    ("HugePages_Total", "", "hugepages_total"),
    ("HugePages_Free", "", "hugepages_free"),
    ("HugePages_Rsvd", "", "hugepages_reserved"),
    ("HugePages_Surp", "", "hugepages_surplus"),
]
DERIVED = {"mem_used_bytes", "mem_util", "swap_used_bytes"}


def meminfo(field: str, number: int, unit: str) -> str:
    return f"Before:  1 kB\n{field}:   {number} {unit}".rstrip() + "\nAfter:  2 kB\n"


@pytest.mark.parametrize(("field", "unit", "key"), FIELDS)
def test_every_field_changes_its_metric(host_tree: HostTree, field: str, unit: str, key: str) -> None:
    values = measure(
        host_tree,
        MemoryCollector,
        {"proc/meminfo": meminfo(field, 1, unit)},
        {"proc/meminfo": meminfo(field, 7, unit)},
    )
    assert values == {key: 7 * 1024 if unit else 7}


def test_all_metrics_are_tested() -> None:
    assert {metric.name for metric in METRICS} == {key for _, _, key in FIELDS} | DERIVED


def test_what_is_used_is_what_is_not_available(host_tree: HostTree) -> None:
    text = "MemTotal: 1000 kB\nMemAvailable: 750 kB\nSwapTotal: 100 kB\nSwapFree: 90 kB\n"
    values = measure(host_tree, MemoryCollector, {"proc/meminfo": text}, {"proc/meminfo": text})
    assert values["mem_used_bytes"] == 250 * 1024
    assert values["mem_util"] == pytest.approx(25)
    assert values["swap_used_bytes"] == 10 * 1024


def test_without_an_estimate_of_the_kernel_nothing_is_guessed(host_tree: HostTree) -> None:
    text = "MemTotal: 1000 kB\nMemFree: 750 kB\nSwapTotal: 0 kB\n"
    values = measure(host_tree, MemoryCollector, {"proc/meminfo": text}, {"proc/meminfo": text})
    assert not DERIVED & set(values)
    assert values["swap_total_bytes"] == 0


@pytest.mark.parametrize("content", ["", "nonsense\n", None])
def test_nothing_to_read_is_unavailable(host_tree: HostTree, content: str | None) -> None:
    with pytest.raises(SourceUnavailable, match="/proc/meminfo"):
        measure(host_tree, MemoryCollector, {"proc/meminfo": content}, {})
