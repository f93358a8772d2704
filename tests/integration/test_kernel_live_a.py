"""Kernel collectors on this machine, with psutil as the oracle.

The two do not read at the same moment, so psutil reads before and after: what we say must lie between, or near.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from dynolog.collectors.activity import ActivityCollector
from dynolog.collectors.cpu import CpuCollector
from dynolog.collectors.cpu_frequency import CpuFrequencyCollector
from dynolog.collectors.load import LoadCollector
from dynolog.collectors.memory import MemoryCollector
from dynolog.collectors.spec import Collector, Context
from dynolog.collectors.uptime import UptimeCollector
from dynolog.collectors.vmstat import VmstatCollector
from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles
from fakes.collector_context import FakeNotices, HostTree, numbers

MB = 1 << 20


def work(milliseconds: int) -> None:
    """Keep one CPU busy, and the kernel with it: pages, forks, context switches."""
    end = time.monotonic() + milliseconds / 1000
    while time.monotonic() < end:
        bytearray(MB)
        pid = os.posix_spawn("/bin/true", ["true"], {})
        os.waitpid(pid, 0)


class Between:
    """What psutil said before and after, and what we say of the same time."""

    def __init__(
        self, host_tree: HostTree, factory: Callable[[Context], Collector[Any]], oracle: Callable[[], Any]
    ) -> None:
        context = Context(host=HostFiles("/"), settings=host_tree.context(per_cpu=True).settings, notices=FakeNotices())
        collector = factory(context)
        outer_start = oracle()
        before = collector.read()
        inner_start = oracle()
        started = time.monotonic()
        work(250)
        inner_end = oracle()
        elapsed_s = time.monotonic() - started
        after = collector.read()
        outer_end = oracle()
        self.values = numbers(collector.compute(before, after, elapsed_s))
        self.inner = (inner_start, inner_end)
        self.outer = (outer_start, outer_end)

    def check_counter(self, key: str, field: str, factor: float = 1, slack: float = 0) -> None:
        """The growth that we saw is at least that of the inner and at most that of the outer pair of psutil's readings."""
        least = (getattr(self.inner[1], field) - getattr(self.inner[0], field)) * factor
        most = (getattr(self.outer[1], field) - getattr(self.outer[0], field)) * factor
        assert least - slack <= self.values[key] <= most + slack, key


def test_cpu_times(host_tree: HostTree) -> None:
    seen = Between(host_tree, CpuCollector, psutil.cpu_times)
    slack = 3 * 1000 / os.sysconf("SC_CLK_TCK")  # the kernel adds up CPUs that tick at different moments
    for key, field in (
        ("cpu_u_ms", "user"),
        ("cpu_s_ms", "system"),
        ("cpu_n_ms", "nice"),
        ("cpu_w_ms", "iowait"),
        ("cpu_x_ms", "irq"),
        ("cpu_y_ms", "softirq"),
        ("cpu_z_ms", "steal"),
        ("cpu_guest_ms", "guest"),
    ):
        seen.check_counter(key, field, factor=1000, slack=slack)
    assert seen.values["cpu_u_ms"] + seen.values["cpu_s_ms"] > 0
    single = [key for key in seen.values if key.startswith("cpu_util.cpu")]
    assert len(single) == psutil.cpu_count()


def test_context_switches_and_interrupts(host_tree: HostTree) -> None:
    seen = Between(host_tree, ActivityCollector, psutil.cpu_stats)
    seen.check_counter("context_switches", "ctx_switches")
    seen.check_counter("interrupts", "interrupts")
    seen.check_counter("softirqs", "soft_interrupts")
    assert seen.values["context_switches"] > 0
    assert seen.values["forks"] > 0
    assert seen.values["procs_running"] >= 1


def test_memory(host_tree: HostTree) -> None:
    seen = Between(host_tree, MemoryCollector, psutil.virtual_memory)
    assert seen.values["mem_total_bytes"] == seen.outer[1].total
    for key, field in (
        ("mem_free_bytes", "free"),
        ("mem_available_bytes", "available"),
        ("mem_buffers_bytes", "buffers"),
        ("mem_shared_bytes", "shared"),
        ("mem_active_bytes", "active"),
        ("mem_inactive_bytes", "inactive"),
    ):
        assert seen.values[key] == pytest.approx(getattr(seen.outer[1], field), abs=256 * MB), key
    assert seen.values["mem_util"] == pytest.approx(seen.outer[1].percent, abs=3)


def test_swap(host_tree: HostTree) -> None:
    seen = Between(host_tree, MemoryCollector, psutil.swap_memory)
    assert seen.values["swap_total_bytes"] == seen.outer[1].total
    assert seen.values["swap_used_bytes"] == pytest.approx(seen.outer[1].used, abs=256 * MB)


def test_paging(host_tree: HostTree) -> None:
    seen = Between(host_tree, VmstatCollector, psutil.swap_memory)
    # psutil takes a page for 4 kB.
    seen.check_counter("swap_in_bytes", "sin", factor=os.sysconf("SC_PAGE_SIZE") / 4096)
    seen.check_counter("swap_out_bytes", "sout", factor=os.sysconf("SC_PAGE_SIZE") / 4096)
    assert seen.values["page_faults"] >= 256  # work() touches megabytes


def test_load(host_tree: HostTree) -> None:
    seen = Between(host_tree, LoadCollector, psutil.getloadavg)
    for key, (before, after) in zip(("load_1m", "load_5m", "load_15m"), zip(*seen.outer, strict=True), strict=True):
        assert min(before, after) - 0.01 <= seen.values[key] <= max(before, after) + 0.01
    assert seen.values["threads_total"] >= len(psutil.pids())  # each has one at least; kernel threads count
    assert seen.values["threads_runnable"] >= 1


def test_uptime(host_tree: HostTree) -> None:
    seen = Between(host_tree, UptimeCollector, psutil.boot_time)
    assert seen.values["uptime"] == pytest.approx(time.time() - seen.outer[1], abs=2.5)


def test_frequency(host_tree: HostTree) -> None:
    if psutil.cpu_freq() is None:
        pytest.skip("psutil finds no frequency here")
    try:
        seen = Between(host_tree, CpuFrequencyCollector, psutil.cpu_freq)
    except SourceUnavailable as error:
        pytest.skip(str(error))
    assert seen.values["cpu_frequency_min_mhz"] <= seen.values["cpu_frequency_mhz"]
    assert seen.values["cpu_frequency_mhz"] == pytest.approx(seen.outer[1].current, rel=0.5)
