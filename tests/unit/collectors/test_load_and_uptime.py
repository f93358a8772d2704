"""Load, threads, uptime and boot id."""

from dynolog.collectors.load import LoadCollector
from dynolog.collectors.uptime import UptimeCollector
from fakes.collector_context import HostTree
from fakes.measure import measure

BOOT = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def test_load_is_that_of_the_end_of_the_interval(host_tree: HostTree) -> None:
    values = measure(
        host_tree,
        LoadCollector,
        {"proc/loadavg": "1.00 1.00 1.00 1/10 100\n"},
        {"proc/loadavg": "2.50 3.25 4.75 5/1234 200\n"},
    )
    assert values == {
        "load_1m": 2.5,
        "load_5m": 3.25,
        "load_15m": 4.75,
        "threads_runnable": 5,
        "threads_total": 1234,
    }


def test_uptime_is_an_integer_and_the_boot_has_an_id(host_tree: HostTree) -> None:
    files = {"proc/uptime": "100.25 50.00\n", "proc/sys/kernel/random/boot_id": BOOT + "\n"}
    values = measure(host_tree, UptimeCollector, files, {"proc/uptime": "101.99 51.00\n"})
    assert values == {"uptime": 101, "boot_id": BOOT}
    assert isinstance(values["uptime"], int)


def test_a_boot_without_an_id_still_has_an_uptime(host_tree: HostTree) -> None:
    assert measure(host_tree, UptimeCollector, {"proc/uptime": "5.00 1.00\n"}, {}) == {"uptime": 5}
