"""Pressure on hand-made /proc/pressure files."""

import pytest

from dynolog.collectors.pressure import METRICS, PressureCollector
from fakes.collector_context import HostTree
from fakes.measure import measure

LINES = [(r, e) for r in ("cpu", "memory", "io", "irq") for e in ("some", "full") if (r, e) != ("irq", "some")]


def line(extent: str, avg10: float, total: int) -> str:
    return f"{extent} avg10={avg10:.2f} avg60=0.00 avg300=0.00 total={total}\n"


@pytest.mark.parametrize(("resource", "extent"), LINES)
def test_every_line_changes_its_two_metrics(host_tree: HostTree, resource: str, extent: str) -> None:
    path = f"proc/pressure/{resource}"
    values = measure(host_tree, PressureCollector, {path: line(extent, 1.0, 5000)}, {path: line(extent, 12.5, 5750)})
    assert values == {f"pressure_{resource}_{extent}_us": 750, f"pressure_{resource}_{extent}_avg10": 12.5}


def test_all_metrics_are_tested() -> None:
    assert len(METRICS) == 2 * len(LINES)


def test_a_resource_that_vanishes_or_is_new_has_no_delta(host_tree: HostTree) -> None:
    before = {"proc/pressure/cpu": line("some", 1, 10), "proc/pressure/io": line("some", 1, 10)}
    after = {"proc/pressure/cpu": line("some", 1, 4), "proc/pressure/io": line("some", 2, 11) + line("full", 3, 99)}
    assert measure(host_tree, PressureCollector, before, after) == {
        "pressure_cpu_some_avg10": 1,
        "pressure_io_some_us": 1,
        "pressure_io_some_avg10": 2,
        "pressure_io_full_avg10": 3,
    }


def test_a_missing_resource_is_said_once(host_tree: HostTree) -> None:
    """D16: no irq file before Linux 6.1."""
    measure(
        host_tree, PressureCollector, {f"proc/pressure/{r}": line("some", 1, 1) for r in ("cpu", "memory", "io")}, {}
    )
    assert set(host_tree.notices.said) == {"pressure_irq"}
