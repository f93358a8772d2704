"""Clock frequency of CPUs."""

import pytest

from dynolog.collectors.cpu_frequency import CpuFrequencyCollector
from fakes.collector_context import HostTree
from fakes.measure import measure


def frequencies(*khz: int | str) -> dict[str, str]:
    return {f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq": f"{f}\n" for cpu, f in enumerate(khz)}


ONLINE = {"sys/devices/system/cpu/online": "0-2\n"}


def test_mean_slowest_and_fastest(host_tree: HostTree) -> None:
    before = ONLINE | frequencies(1000, 1000, 1000)
    values = measure(host_tree, CpuFrequencyCollector, before, frequencies(1_000_000, 2_500_000, 4_000_000))
    assert values == {
        "cpu_frequency_mhz": pytest.approx(2500),
        "cpu_frequency_min_mhz": 1000,
        "cpu_frequency_max_mhz": 4000,
    }


def test_single_cpus_are_given_when_wanted_and_only_those_that_say(host_tree: HostTree) -> None:
    before = ONLINE | frequencies(1000, 1000, 1000)
    after = {
        **frequencies(1_000_000, "junk", 4_000_000),
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq": None,
    }
    values = measure(host_tree, CpuFrequencyCollector, before, after, per_cpu=True)
    assert {key: value for key, value in values.items() if ".cpu" in key} == {"cpu_frequency_mhz.cpu0": 1000}


def test_cpuinfo_stands_in(host_tree: HostTree) -> None:
    text = "processor\t: 0\ncpu MHz\t\t: 2600.5\n"
    values = measure(host_tree, CpuFrequencyCollector, {"proc/cpuinfo": text}, {})
    assert values["cpu_frequency_mhz"] == 2600.5
