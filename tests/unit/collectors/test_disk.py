"""Disk values on hand-made /proc/diskstats."""

import pytest

from dynolog.collectors.disk import METRICS, DiskCollector
from dynolog.sources.diskstats import Disk
from fakes.big_host.disks import DISKS, build_disks, disk_counters
from fakes.collector_context import HostTree, numbers

ZERO = (0,) * 17


def line(name: str, columns: tuple[int, ...], device: str = "8 0") -> str:
    return f"{device} {name} " + " ".join(map(str, columns)) + "\n"


def measure(host_tree: HostTree, *steps: str, elapsed_s: float = 1.0, **flags: bool | str) -> dict[str, float]:
    """Values of the last of the intervals between the steps."""
    collector = DiskCollector(host_tree.context(**flags))
    values: dict[str, float] = {}
    before: dict[str, Disk] | None = None
    for step in steps:
        host_tree.write("proc/diskstats", step)
        after = collector.read()
        if before is not None:
            values = numbers(collector.compute(before, after, elapsed_s))
        before = after
    return values


def test_every_metric_of_a_disk(host_tree: HostTree) -> None:
    """In 2 s: 10 reads of 4096 bytes in 50 ms, 20 writes of 512 in 40 ms, busy 1 s, 3 s of requests."""
    after = (10, 1, 80, 50, 20, 2, 20, 40, 4, 1000, 3000, 5, 6, 7, 8, 9, 11)
    assert measure(host_tree, line("sda", ZERO), line("sda", after), elapsed_s=2.0) == {
        "disk_read_ops.sda": 10,
        "disk_read_merges.sda": 1,
        "disk_read_bytes.sda": 40960,
        "disk_read_ms.sda": 50,
        "disk_write_ops.sda": 20,
        "disk_write_merges.sda": 2,
        "disk_write_bytes.sda": 10240,
        "disk_write_ms.sda": 40,
        "disk_busy_ms.sda": 1000,
        "disk_queue_ms.sda": 3000,
        "disk_discard_ops.sda": 5,
        "disk_discard_merges.sda": 6,
        "disk_discard_bytes.sda": 3584,
        "disk_discard_ms.sda": 8,
        "disk_flush_ops.sda": 9,
        "disk_flush_ms.sda": 11,
        "disk_in_flight.sda": 4,
        "disk_queue_length.sda": 1.5,
        "disk_read_latency_ms.sda": 5,
        "disk_write_latency_ms.sda": 2,
        "disk_util.sda": 50,
    }
    assert len(METRICS) == 21


def test_an_old_kernel_has_no_discards_and_flushes(host_tree: HostTree) -> None:
    """D13: 14 columns; what the kernel does not count is missing, not 0."""
    values = measure(host_tree, line("sda", ZERO[:11]), line("sda", (1,) * 11))
    assert values["disk_read_bytes.sda"] == 512
    assert not [key for key in values if "discard" in key or "flush" in key]


def test_without_operations_there_is_no_latency(host_tree: HostTree) -> None:
    values = measure(host_tree, line("sda", ZERO), line("sda", ZERO))
    assert "disk_read_latency_ms.sda" not in values
    assert "disk_write_latency_ms.sda" not in values
    assert values["disk_util.sda"] == 0


def test_partitions_and_memory_devices_are_for_those_who_ask(host_tree: HostTree) -> None:
    names = ("sda", "sda1", "loop0", "ram1", "zram0", "sr0", "dm-0")
    steps = ["".join(line(name, ZERO) for name in names)] * 2

    def devices(values: dict[str, float]) -> set[str]:
        return {key.rpartition(".")[2] for key in values}

    assert devices(measure(host_tree, *steps)) == {"sda", "dm-0"}
    assert devices(measure(host_tree, *steps, disk_partitions=True)) == {"sda", "sda1", "dm-0"}
    assert devices(measure(host_tree, *steps, disk_exclude_prefixes="")) == {
        "sda",
        "loop0",
        "ram1",
        "zram0",
        "sr0",
        "dm-0",
    }


def test_new_and_vanished_disks_have_no_deltas(host_tree: HostTree) -> None:
    values = measure(host_tree, line("sda", ZERO) + line("sdb", ZERO), line("sda", ZERO) + line("sdc", (5,) * 17))
    assert not [key for key in values if key.endswith(".sdb")]
    assert [key for key in values if key.endswith(".sdc")] == ["disk_in_flight.sdc"]


def test_another_disk_under_the_same_name_has_no_deltas(host_tree: HostTree) -> None:
    """Hot-swapped: sdb was 8:16 and is 8:32 now, with higher counters."""
    values = measure(host_tree, line("sdb", ZERO, "8 16"), line("sdb", (5,) * 17, "8 32"))
    assert list(values) == ["disk_in_flight.sdb"]


@pytest.mark.parametrize("column", [0, 2, 4, 6, 11, 15])
def test_a_reset_makes_the_whole_disk_unknown_for_a_round(host_tree: HostTree, column: int) -> None:
    """To a small value; the columns that happen to be higher were reset as well."""
    before = tuple(100 if at == column else 0 for at in range(17))
    steps = [line("sda", before), line("sda", (7,) * 17)]
    assert list(measure(host_tree, *steps)) == ["disk_in_flight.sda"]
    assert measure(host_tree, *steps, line("sda", (8,) * 17))["disk_read_ops.sda"] == 1


def test_a_counter_that_is_0_once_is_not_growth_when_it_is_back(host_tree: HostTree) -> None:
    before, back = ((number,) * 17 for number in (10**9, 10**9 + 5))
    values = measure(host_tree, line("sda", before), line("sda", ZERO), line("sda", back), elapsed_s=1e6)
    assert list(values) == ["disk_in_flight.sda"]


def test_a_time_that_wraps_at_32_bits_costs_only_what_is_made_of_it(host_tree: HostTree) -> None:
    """The kernel keeps milliseconds in 32 bits; on a busy disk the queue time wraps every few days."""
    before = (0, 0, 0, 4294967290, 0, 0, 0, 0, 0, 10, 4294967290, 0, 0, 0, 0, 0, 0)
    after = (5, 0, 8, 4, 5, 0, 8, 10, 0, 510, 4, 0, 0, 0, 0, 0, 0)
    values = measure(host_tree, line("sda", before), line("sda", after))
    for unknown in ("disk_read_ms", "disk_read_latency_ms", "disk_queue_ms", "disk_queue_length"):
        assert f"{unknown}.sda" not in values
    assert values["disk_read_bytes.sda"] == 4096
    assert values["disk_write_latency_ms.sda"] == 2
    assert values["disk_util.sda"] == 50


def test_a_disk_busy_for_longer_than_the_interval_is_a_broken_counter(host_tree: HostTree) -> None:
    values = measure(host_tree, line("sda", ZERO), line("sda", (*ZERO[:9], 9000, *ZERO[10:])))
    assert "disk_util.sda" not in values
    assert "disk_busy_ms.sda" not in values
    assert values["disk_read_ops.sda"] == 0


def test_a_little_more_busy_than_the_interval_is_100_percent(host_tree: HostTree) -> None:
    values = measure(host_tree, line("sda", ZERO), line("sda", (*ZERO[:9], 1040, *ZERO[10:])))
    assert values["disk_util.sda"] == 100


def test_more_than_any_disk_can_do_is_no_value(host_tree: HostTree) -> None:
    values = measure(host_tree, line("sda", ZERO), line("sda", (0, 0, 2**63, *ZERO[3:])))
    assert list(values) == ["disk_in_flight.sda"]


def test_requests_in_flight_below_zero_are_missing(host_tree: HostTree) -> None:
    values = measure(host_tree, line("sda", ZERO), line("sda", (*ZERO[:8], 4294967295, *ZERO[9:])))
    assert "disk_in_flight.sda" not in values
    assert values["disk_read_ops.sda"] == 0


def test_names_that_come_and_go_do_not_fill_memory(host_tree: HostTree) -> None:
    collector = DiskCollector(host_tree.context())
    for number in range(6000):
        collector._make_keys(f"dm-{number}")
    assert len(collector._keys) <= 4097


def test_a_big_host(host_tree: HostTree) -> None:
    """64 disks with three partitions each: each disk has its own deltas, and nothing else has any."""
    collector = DiskCollector(host_tree.context())
    build_disks(host_tree.root, 0)
    before = collector.read()
    build_disks(host_tree.root, 1)
    values = numbers(collector.compute(before, collector.read(), 1.0))
    assert len(values) == 64 * 21
    for number, name in enumerate(DISKS):
        old, new = disk_counters(number, 0), disk_counters(number, 1)
        assert values[f"disk_read_bytes.{name}"] == 512 * (new[2] - old[2])
        assert values[f"disk_write_ops.{name}"] == 2 * (number + 1)
        assert values[f"disk_write_latency_ms.{name}"] == pytest.approx(3 / 2)
        assert values[f"disk_util.{name}"] == pytest.approx(0.5 * number)
        assert values[f"disk_in_flight.{name}"] == number % 4
