"""Network, disks and file systems of this machine, against psutil and against what the test itself did."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from dynolog.collectors.disk import DiskCollector
from dynolog.collectors.filesystem import FilesystemCollector
from dynolog.collectors.network import NetworkCollector
from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.sockets import SocketsCollector
from dynolog.collectors.spec import Context, Values
from dynolog.collectors.tcp_udp import TcpUdpCollector
from dynolog.model.flag import FlagValue, Settings
from dynolog.sources.diskstats import COLUMNS as DISK_COLUMNS
from dynolog.sources.host_files import HostFiles
from dynolog.sources.net_dev import COLUMNS as NIC_COLUMNS
from fakes.collector_context import FakeNotices

MEGABYTE = 1 << 20


def live_context(**flags: FlagValue) -> Context:
    declared = [flag for spec in COLLECTORS for flag in spec.flags]
    return Context(host=HostFiles("/"), settings=Settings(declared, flags), notices=FakeNotices())


def number(values: Values, key: str) -> float:
    value = values[key]
    assert not isinstance(value, str)
    return value


def assert_between(ours: Mapping[str, int], low: Mapping[str, int], high: Mapping[str, int]) -> None:
    """A reading taken between two readings of the oracle lies between them."""
    for name, value in ours.items():
        assert low[name] <= value <= high[name], name


def test_every_counter_of_every_interface_agrees_with_psutil() -> None:
    collector = NetworkCollector(live_context())
    low = psutil.net_io_counters(pernic=True, nowrap=False)
    devices = collector.read().devices
    high = psutil.net_io_counters(pernic=True, nowrap=False)
    assert set(devices) == set(low)
    theirs = ("bytes_recv", "packets_recv", "errin", "dropin", "bytes_sent", "packets_sent", "errout", "dropout")
    for name, counters in devices.items():
        ours = dict(zip(theirs, counters, strict=True))
        assert_between(ours, low[name]._asdict(), high[name]._asdict())
    assert len(theirs) == len(NIC_COLUMNS)


def exchange(size: int) -> None:
    """Send `size` bytes over TCP on loopback, and one datagram to a port that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer, _ = server.accept()
        with peer:
            sent = received = 0
            while received < size:
                if sent < size:
                    sent += client.send(bytes(min(65536, size - sent)))
                received += len(peer.recv(1 << 20))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", receiver.getsockname())
        assert receiver.recv(10) == b"x"


def test_traffic_on_loopback_is_counted() -> None:
    """8 MiB sent are at least 8 MiB on `lo`, both ways, and psutil saw the same interval."""
    network, protocols = NetworkCollector(live_context()), TcpUdpCollector(live_context())
    outer_before = psutil.net_io_counters(pernic=True, nowrap=False)["lo"]
    before, protocols_before = network.read(), protocols.read()
    started = time.monotonic()
    inner_before = psutil.net_io_counters(pernic=True, nowrap=False)["lo"]
    exchange(8 * MEGABYTE)
    inner_after = psutil.net_io_counters(pernic=True, nowrap=False)["lo"]
    after, protocols_after = network.read(), protocols.read()
    outer_after = psutil.net_io_counters(pernic=True, nowrap=False)["lo"]
    elapsed_s = time.monotonic() - started
    values = network.compute(before, after, elapsed_s)
    assert number(values, "rx_bytes.lo") >= 8 * MEGABYTE
    for ours, theirs in (("rx_bytes", "bytes_recv"), ("tx_bytes", "bytes_sent"), ("rx_packets", "packets_recv")):
        low = getattr(inner_after, theirs) - getattr(inner_before, theirs)
        high = getattr(outer_after, theirs) - getattr(outer_before, theirs)
        assert low <= number(values, f"{ours}.lo") <= high
    counted = protocols.compute(protocols_before, protocols_after, elapsed_s)
    assert number(counted, "tcp_active_opens") >= 1
    assert number(counted, "tcp_passive_opens") >= 1
    assert number(counted, "tcp_in_segs") >= 8 * MEGABYTE // 65536
    assert number(counted, "udp_in_datagrams") >= 1
    assert number(counted, "udp_out_datagrams") >= 1


def test_sockets_in_use_are_counted() -> None:
    collector = SocketsCollector(live_context())
    before = collector.compute({}, collector.read(), 1.0)
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        after = collector.compute({}, collector.read(), 1.0)
    # Others on this machine close some meanwhile.
    assert number(after, "tcp_sockets_in_use") >= number(before, "tcp_sockets_in_use") + 25
    assert number(after, "sockets_used") >= number(before, "sockets_used") + 25


def test_every_counter_of_every_disk_agrees_with_psutil() -> None:
    context = live_context(disk_partitions=True, disk_exclude_prefixes="")
    low = psutil.disk_io_counters(perdisk=True, nowrap=False)
    disks = DiskCollector(context).read()
    high = psutil.disk_io_counters(perdisk=True, nowrap=False)
    if not low:
        pytest.skip("psutil sees no disk here")
    assert set(disks) == set(low)
    theirs = {
        "reads": "read_count",
        "read_merges": "read_merged_count",
        "read_ms": "read_time",
        "writes": "write_count",
        "write_merges": "write_merged_count",
        "write_ms": "write_time",
        "busy_ms": "busy_time",
    }
    for name, disk in disks.items():
        ours = {
            theirs[column]: value
            for column, value in zip(DISK_COLUMNS, disk.counters, strict=False)
            if column in theirs
        }
        ours["read_bytes"] = disk.counters[DISK_COLUMNS.index("read_sectors")] * 512
        ours["write_bytes"] = disk.counters[DISK_COLUMNS.index("write_sectors")] * 512
        assert_between(ours, low[name]._asdict(), high[name]._asdict())


def test_a_file_that_is_written_is_counted_on_some_disk(tmp_path: Path) -> None:
    """8 MiB written and synced reach the disk below, if there is one."""
    if os.major(os.stat(tmp_path).st_dev) == 0:
        pytest.skip("the temporary directory is not on a block device")
    collector = DiskCollector(live_context(disk_partitions=True, disk_exclude_prefixes=""))
    before, started = collector.read(), time.monotonic()
    with (tmp_path / "data").open("wb") as file:
        file.write(os.urandom(8 * MEGABYTE))
        file.flush()
        os.fsync(file.fileno())
    values = collector.compute(before, collector.read(), time.monotonic() - started)
    written = max(number(values, key) for key in values if key.startswith("disk_write_bytes."))
    assert written >= 8 * MEGABYTE
    assert max(number(values, key) for key in values if key.startswith("disk_util.")) > 0


def test_every_file_system_agrees_with_psutil() -> None:
    """Others on this machine write meanwhile: sizes are equal, free space within 1 GiB."""
    collector = FilesystemCollector(live_context())
    snapshot = collector.read()
    values = collector.compute(snapshot, snapshot, 1.0)
    points = [key.partition(".")[2] for key in values if key.startswith("filesystem_size_bytes.")]
    assert points
    for point in points:
        theirs = psutil.disk_usage(point)
        assert values[f"filesystem_size_bytes.{point}"] == theirs.total
        assert abs(number(values, f"filesystem_available_bytes.{point}") - theirs.free) < 1 << 30
        assert number(values, f"filesystem_util.{point}") == pytest.approx(theirs.percent, abs=2)


WATCH = """
import subprocess, sys
from dynolog.collectors.network import NetworkCollector
from test_kernel_live_b import live_context
def ip(*words): subprocess.run(["ip", *words], check=True)
collector = NetworkCollector(live_context())
ip("link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
readings = [collector.read(), collector.read()]
ip("link", "del", "veth0")
readings += [collector.read()]
ip("link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
readings += [collector.read(), collector.read()]
for before, after in zip(readings, readings[1:]):
    values = collector.compute(before, after, 1.0)
    print(" ".join(sorted(key for key in values if key.startswith("rx_bytes."))))
"""


def run_apart(namespace: str, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a namespace of its own (`-n` network, `-m` mounts)."""
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    return subprocess.run(
        ["unshare", namespace, sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.root
def test_an_interface_that_is_unplugged_while_watched() -> None:
    """A veth pair in a network namespace of its own: measured, gone, and new again without a value at first."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("NEEDS ROOT, unshare and ip to make a network namespace")
    done = run_apart("-n", WATCH)
    assert done.returncode == 0, done.stderr
    plugged = "rx_bytes.lo rx_bytes.veth0 rx_bytes.veth1"
    virtual = [" ".join(word for word in line.split() if "ifb" not in word) for line in done.stdout.splitlines()]
    assert virtual == [plugged, "rx_bytes.lo", "rx_bytes.lo", plugged]


HANG = """
import ctypes, json, os, sys
from dynolog.collectors.filesystem import FilesystemCollector
from test_kernel_live_b import live_context
point = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"silent", point.encode(), b"fuse", 0, options):
    sys.exit(77)
collector = FilesystemCollector(live_context())
def look():
    snapshot = collector.read()
    values = collector.compute(snapshot, snapshot, 1.0)
    return [values.get(f"filesystem_responding.{name}") for name in ("/", point)]
seen = [look(), look()]
threads = len(os.listdir("/proc/self/task"))
os.close(server)
(errand,) = [errand for (device, name), errand in collector._errands.items() if name == point]
assert errand.wait(20)
seen.append(look())
libc.umount2(point.encode(), 2)
seen.append(look())
print(json.dumps({"seen": seen, "threads": threads, "left": len(os.listdir("/proc/self/task"))}))
"""


@pytest.mark.root
def test_a_file_system_whose_server_is_silent(tmp_path: Path) -> None:
    """D20 for real: a FUSE mount that nobody serves hangs in statvfs(3); one thread waits, the rest is measured."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not Path("/dev/fuse").exists():
        pytest.skip("NEEDS ROOT, unshare and /dev/fuse to mount a file system that hangs")
    done = run_apart("-m", HANG, str(tmp_path))
    if done.returncode == 77:
        pytest.skip("NEEDS the right to mount FUSE")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["seen"] == [[1, 0], [1, 0], [1, 0], [1, None]]
    assert found["threads"] == 2
    assert found["left"] == 1
