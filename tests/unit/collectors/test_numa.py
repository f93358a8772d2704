"""NUMA nodes on hand-made files."""

import pytest

from dynolog.collectors.numa import NumaCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import measure

FOLDER = "sys/devices/system/node/node"


def node(number: int, free: int, counts: list[int]) -> dict[str, str]:
    names = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")
    return {
        f"{FOLDER}{number}/meminfo": "".join(
            f"Node {number} {name}:   {kb} kB\n"
            for name, kb in (("MemTotal", 100), ("MemFree", free), ("MemUsed", 100 - free))
        ),
        f"{FOLDER}{number}/numastat": "".join(f"{n} {c}\n" for n, c in zip(names, counts, strict=True)),
    }


def test_every_metric_of_each_node(host_tree: HostTree) -> None:
    before = node(0, 50, [10, 10, 10, 10, 10, 10]) | node(2, 60, [0, 0, 0, 0, 0, 0])
    after = node(0, 40, [11, 12, 13, 14, 15, 16]) | node(2, 70, [7, 0, 0, 0, 0, 0])
    values = measure(host_tree, NumaCollector, before, after)
    assert {key: value for key, value in values.items() if key.endswith("_node0")} == {
        "numa_mem_total_bytes_node0": 100 * 1024,
        "numa_mem_free_bytes_node0": 40 * 1024,
        "numa_mem_used_bytes_node0": 60 * 1024,
        "numa_hit_pages_node0": 1,
        "numa_miss_pages_node0": 2,
        "numa_foreign_pages_node0": 3,
        "numa_local_pages_node0": 5,
        "numa_other_pages_node0": 6,
    }
    assert values["numa_mem_free_bytes_node2"] == 70 * 1024
    assert values["numa_hit_pages_node2"] == 7


def test_a_node_that_vanishes_or_falls_back_costs_only_itself(host_tree: HostTree) -> None:
    before = node(0, 50, [10] * 6) | node(1, 60, [10] * 6)
    after = node(0, 50, [9, 11, 11, 11, 11, 11]) | {f"{FOLDER}1/meminfo": "x", f"{FOLDER}1/numastat": "y"}
    values = measure(host_tree, NumaCollector, before, after)
    assert "numa_hit_pages_node0" not in values
    assert values["numa_miss_pages_node0"] == 1
    assert not [key for key in values if key.endswith("_node1")]


def test_no_node_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no NUMA node"):
        measure(host_tree, NumaCollector, {}, {})
