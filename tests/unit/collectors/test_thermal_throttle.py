"""Throttling by heat: two packages, two cores each, two threads a core."""

import pytest

from dynolog.collectors.thermal_throttle import ThermalThrottleCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import Files, measure, put_files

CPU = "sys/devices/system/cpu/cpu"


def throttles(core: list[int], package: list[int]) -> Files:
    """CPU n and n + 4 are threads of core n; cores 0 and 1 are in package 0."""
    files: dict[str, str | bytes | None] = {"sys/devices/system/cpu/online": "0-7\n"}
    for cpu in range(8):
        files[f"{CPU}{cpu}/topology/physical_package_id"] = f"{cpu % 4 // 2}\n"
        files[f"{CPU}{cpu}/topology/core_id"] = f"{cpu % 2}\n"
        files[f"{CPU}{cpu}/thermal_throttle/core_throttle_count"] = f"{core[cpu % 4]}\n"
        files[f"{CPU}{cpu}/thermal_throttle/package_throttle_count"] = f"{package[cpu % 4 // 2]}\n"
    return files


def test_threads_of_a_core_and_cores_of_a_package_are_not_counted_twice(host_tree: HostTree) -> None:
    before, after = throttles([10, 20, 30, 40], [5, 6]), throttles([11, 22, 33, 44], [7, 9])
    assert measure(host_tree, ThermalThrottleCollector, before, after, per_cpu=True) == {
        "cpu_core_throttles": 1 + 2 + 3 + 4,
        "cpu_package_throttles": 2 + 3,
        "cpu_core_throttles.cpu0": 1,
        "cpu_core_throttles.cpu1": 2,
        "cpu_core_throttles.cpu2": 3,
        "cpu_core_throttles.cpu3": 4,
    }


def test_a_cpu_that_goes_offline_takes_its_core_out_for_a_round(host_tree: HostTree) -> None:
    """D05: another thread of the core, another CPU of the package speak from then on, with base lines of their own."""
    put_files(host_tree, throttles([10, 20, 30, 40], [5, 6]))
    collector = ThermalThrottleCollector(host_tree.context(per_cpu=True))
    first = collector.read()
    put_files(
        host_tree,
        {
            **throttles([11, 22, 33, 44], [700, 9]),
            "sys/devices/system/cpu/online": "1-7\n",
            f"{CPU}0/thermal_throttle/core_throttle_count": None,
            f"{CPU}0/thermal_throttle/package_throttle_count": None,
        },
    )
    second = collector.read()
    assert collector.compute(first, second, 1.0) == {
        "cpu_core_throttles": 2 + 3 + 4,
        "cpu_package_throttles": 3,
        "cpu_core_throttles.cpu1": 2,
        "cpu_core_throttles.cpu2": 3,
        "cpu_core_throttles.cpu3": 4,
    }
    host_tree.write(f"{CPU}4/thermal_throttle/core_throttle_count", "16\n")
    host_tree.write(f"{CPU}1/thermal_throttle/package_throttle_count", "701\n")
    assert collector.compute(second, collector.read(), 1.0) == {
        "cpu_core_throttles": 5,
        "cpu_package_throttles": 1,
        "cpu_core_throttles.cpu1": 0,
        "cpu_core_throttles.cpu2": 0,
        "cpu_core_throttles.cpu3": 0,
        "cpu_core_throttles.cpu4": 5,
    }


def test_a_reset_and_a_failed_read_are_missing_and_not_zero(host_tree: HostTree) -> None:
    """D10: text where a number belongs."""
    after = {
        **throttles([1, 22, 33, 44], [7, 9]),
        f"{CPU}1/thermal_throttle/core_throttle_count": "N/A\n",
    }
    values = measure(host_tree, ThermalThrottleCollector, throttles([10, 20, 30, 40], [5, 6]), after, per_cpu=True)
    assert values["cpu_core_throttles"] == 3 + 4
    assert not {"cpu_core_throttles.cpu0", "cpu_core_throttles.cpu1"} & set(values)


def test_no_cpu_that_counts_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no CPU here counts throttling"):
        measure(host_tree, ThermalThrottleCollector, {"sys/devices/system/cpu/online": "0-1\n"}, {})
