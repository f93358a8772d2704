"""Interrupts by class on hand-made /proc/interrupts files."""

import pytest

from dynolog.collectors.interrupts import METRICS, InterruptsCollector
from fakes.collector_context import HostTree
from fakes.measure import measure

TWO = "           CPU0       CPU1       \n  1:   5   5   device\n"


@pytest.mark.parametrize("name", [metric.name for metric in METRICS])
def test_every_class_changes_its_metric(host_tree: HostTree, name: str) -> None:
    label = name.removeprefix("interrupts_").upper()
    before, after = (f"{label}: 10 20 text\n", f"{label}: 11 24 text\n")
    if label in ("ERR", "MIS"):
        before, after = f"{label}:  3\n", f"{label}:  8\n"
    values = measure(
        host_tree, InterruptsCollector, {"proc/interrupts": TWO + before}, {"proc/interrupts": TWO + after}
    )
    assert values == {name: 5}


def test_a_cpu_that_returns_with_its_old_counts_is_not_growth(host_tree: HostTree) -> None:
    """D05: only CPUs that are online have a column."""
    one = "           CPU0       \n"
    values = measure(
        host_tree,
        InterruptsCollector,
        {"proc/interrupts": one + "LOC: 100 text\n"},
        {"proc/interrupts": TWO + "LOC: 110 900000 text\n"},
    )
    assert values == {}


def test_a_wrap_and_an_unknown_class_have_no_value(host_tree: HostTree) -> None:
    """A CPU's count has 32 bits."""
    values = measure(
        host_tree,
        InterruptsCollector,
        {"proc/interrupts": TWO + "LOC: 4294967290 5 text\nXYZ: 1 1 text\nRES: 1 1 text\n"},
        {"proc/interrupts": TWO + "LOC: 3 9 text\nXYZ: 2 2 text\nRES: 1 2 text\n"},
    )
    assert values == {"interrupts_res": 1}
