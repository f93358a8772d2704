"""Parsing of /proc/diskstats, and which devices are whole disks."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.diskstats import DiskNames, DiskStatsReader, parse
from dynolog.sources.host_files import HostFiles
from fakes.collector_context import HostTree


class AllNames(defaultdict[bytes, str | None]):
    def __missing__(self, key: bytes) -> str | None:
        return key.decode("latin1")


ALL = AllNames()


def test_twenty_columns() -> None:
    """D13: the line of a kernel from 5.5 on."""
    disk = parse(b"   8       0 sda 100 5 2000 30 50 6 900 12 0 40 42 0 0 0 0 7 3\n", ALL)["sda"]
    assert disk.counters == (100, 5, 2000, 30, 50, 6, 900, 12, 40, 42, 0, 0, 0, 0, 7, 3)
    assert disk.in_flight == 0
    assert disk.number == b"8 0"


def test_older_kernels_have_fewer_columns_and_newer_ones_may_have_more() -> None:
    """D13: 14 and 18 columns, what lies between, and 22."""
    first = b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11"
    assert parse(first, ALL)["sda"].counters == (1, 2, 3, 4, 5, 6, 7, 8, 10, 11)
    assert parse(first + b" 12 13", ALL)["sda"].counters == (1, 2, 3, 4, 5, 6, 7, 8, 10, 11)
    assert parse(first + b" 12 13 14 15", ALL)["sda"].counters == (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15)
    long = parse(first + b" 12 13 14 15 16 17 18 19", ALL)["sda"].counters
    assert long == (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17)


def test_a_malformed_line_costs_only_itself() -> None:
    bad = b"8 1 sda1 1 2 3 4\n8 0 sdb 1 2 x 4 5 6 7 8 9 10 11\n8 0 sdc 1 -2 3 4 5 6 7 8 9 10 11\nfoo\n\n"
    data = bad + b"253 0 dm-0 1 2 3 4 5 6 7 8 9 10 11\n"
    assert list(parse(data, ALL)) == ["dm-0"]


def test_requests_in_flight_below_zero_are_unknown() -> None:
    """Drivers that count one too few: 4294967295, or 2^64 - 1."""
    for many in (b"4294967295", b"18446744073709551615"):
        assert parse(b"8 0 sda 1 2 3 4 5 6 7 8 " + many + b" 10 11", ALL)["sda"].in_flight is None


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    for disk in parse(data, ALL).values():
        assert len(disk.counters) in (10, 14, 16)
        assert min(disk.counters) >= 0


@given(st.lists(st.integers(0, 2**64 - 1), min_size=11, max_size=25), st.binary(max_size=60))
def test_a_good_line_survives_whatever_stands_around_it(numbers: list[int], noise: bytes) -> None:
    data = noise + b"\n 8 0 sdz " + b" ".join(b"%d" % number for number in numbers) + b"\n" + noise
    assert parse(data, ALL)["sdz"].counters[:8] == tuple(numbers[:8])


def names(host_tree: HostTree, partitions: bool = False, exclude: tuple[str, ...] = ()) -> DiskNames:
    return DiskNames(HostFiles(str(host_tree.root)), partitions, exclude)


def test_sysfs_says_what_is_a_partition(host_tree: HostTree) -> None:
    """A whole disk may be called like a partition (xvda1 on a cloud), and one with a slash is spelt with ! in sysfs."""
    host_tree.write("sys/block/xvda1/size", "1")
    host_tree.write("sys/block/cciss!c0d0/size", "1")
    host_tree.write("sys/class/block/odd7/partition", "1")
    chosen = names(host_tree)
    assert chosen[b"xvda1"] == "xvda1"
    assert chosen[b"cciss/c0d0"] == "cciss/c0d0"
    assert chosen[b"odd7"] is None
    assert names(host_tree, partitions=True)[b"odd7"] == "odd7"


def test_without_sysfs_the_name_decides(host_tree: HostTree) -> None:
    chosen = names(host_tree)
    whole = [b"sda", b"nvme0n1", b"dm-0", b"md127", b"vda", b"mmcblk0", b"sdaa"]
    parts = [b"sda1", b"nvme0n1p2", b"vda15", b"mmcblk0p1", b"md127p1", b"xvdb2", b"sdaa10", b"nvme0c0n1"]
    assert [chosen[name] for name in whole] == [name.decode() for name in whole]
    assert [chosen[name] for name in parts] == [None] * len(parts)


def test_a_name_is_looked_up_once_unless_the_device_is_vanishing(host_tree: HostTree) -> None:
    """A disk caught while unplugged is not taken for what its name suggests for ever."""
    chosen = names(host_tree)
    assert [chosen[b"xvda1"]] == [None]
    host_tree.write("sys/block/xvda1/size", "1")
    assert chosen[b"xvda1"] == "xvda1"
    (host_tree.root / "sys/block/xvda1/size").unlink()
    (host_tree.root / "sys/block/xvda1").rmdir()
    assert chosen[b"xvda1"] == "xvda1"


def test_prefixes_that_are_left_out_win(host_tree: HostTree) -> None:
    host_tree.write("sys/block/loop0/size", "1")
    assert names(host_tree, partitions=True, exclude=("loop", "ram"))[b"loop0"] is None


def test_changed_flags_take_effect_at_the_next_reading(host_tree: HostTree) -> None:
    host_tree.write("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1 2 3 4 5 6 7 8 9 10 11\n")
    reader = DiskStatsReader(HostFiles(str(host_tree.root)))
    assert list(reader.read()) == ["sda"]
    assert list(reader.read(partitions=True)) == ["sda", "sda1"]
    assert list(reader.read(True, ("sda1",))) == ["sda"]
