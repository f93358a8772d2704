"""Clock frequencies from cpufreq and from /proc/cpuinfo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.cpu_frequency import CpuFrequencyReader, parse_cpuinfo
from dynolog.sources.host_files import HostFiles
from fakes.collector_context import HostTree

CPUINFO = b"processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: 2596.134\n\nprocessor\t: 5\ncpu MHz\t\t: 1200.000\n"


def test_cpuinfo_is_keyed_by_the_processor_line() -> None:
    assert parse_cpuinfo(CPUINFO) == {0: 2596.134, 5: 1200.0}


@pytest.mark.parametrize("bad", [b"cpu MHz\t\t: x\n", b"cpu MHz\t\t: 0.000\n", b"cpu MHz\t\t: inf\n", b"cpu MHz"])
def test_a_line_that_does_not_parse_costs_only_its_cpu(bad: bytes) -> None:
    assert parse_cpuinfo(CPUINFO + b"\nprocessor\t: 6\n" + bad) == {0: 2596.134, 5: 1200.0}


def test_a_frequency_without_its_processor_line_is_nobodys() -> None:
    assert parse_cpuinfo(b"processor\t: 0\ncpu MHz\t\t: 5.0\n\ncpu MHz\t\t: 7.0\n") == {0: 5.0}


def test_cpufreq_wins_over_cpuinfo(host_tree: HostTree) -> None:
    host_tree.write("proc/cpuinfo", CPUINFO)
    host_tree.write("sys/devices/system/cpu/online", "0,2\n")
    host_tree.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3100000\n")
    host_tree.write("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "<unknown>\n")
    assert CpuFrequencyReader(HostFiles(str(host_tree.root))).read() == {0: 3100.0}


def test_neither_is_unavailable(host_tree: HostTree) -> None:
    host_tree.write("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\n")
    with pytest.raises(SourceUnavailable, match="cpu frequency"):
        CpuFrequencyReader(HostFiles(str(host_tree.root))).read()


PIECES = st.sampled_from([b"processor\t: ", b"cpu MHz\t: ", b"1", b"\n", b":", b"x", b".", b"\xff", b"-"])


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=40).map(b"".join))
def test_any_bytes_parse(data: bytes) -> None:
    assert all(cpu >= 0 and mhz > 0 for cpu, mhz in parse_cpuinfo(data).items())
