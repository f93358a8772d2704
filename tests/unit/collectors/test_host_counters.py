"""Rates of two readings of a host, computed by hand."""

from pathlib import Path

from dynolog.collectors.host_counters import HostCounters, HostReading
from dynolog.sources.host_files import HostFiles
from dynolog.sources.rdma_bytes import RdmaBytesReader
from fakes.profiling import ManualClock

_NIC = "{name}: {rx} 1 0 0 0 0 0 0 {tx} 1 0 0 0 0 0 0\n"


class Host:
    """A small tree whose files a test writes; `later` reads it, after some time has passed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = ManualClock()
        self.write(
            "proc/stat",
            "cpu  100 10 50 1000 20 3 2 5 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nprocs_running 4\n",
        )
        self.pressure("cpu", 1_000)
        self.pressure("io", 2_000)
        self.pressure("memory", 3_000)
        self.write("proc/net/dev", _NIC.format(name="eth0", rx=1000, tx=500) + _NIC.format(name="veth1", rx=9, tx=9))
        self.write("sys/class/net/eth0/device/vendor", "0x1")
        self.write("proc/diskstats", self.disk("nvme0n1", 100, 50) + self.disk("dm-0", 100, 50))
        self.write("sys/block/nvme0n1/size", "1")
        self.counters = HostCounters(HostFiles(str(root)), self.clock)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def pressure(self, resource: str, total_us: int) -> None:
        self.write(f"proc/pressure/{resource}", f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\n")

    @staticmethod
    def disk(name: str, read: int, written: int) -> str:
        return f"259 0 {name} 1 0 {read} 0 1 0 {written} 0 0 0 0\n"

    def later(self, seconds: float = 0.1) -> HostReading:
        self.clock.pass_s(seconds)
        return self.counters.read()


def test_each_counter_is_the_rate_of_its_interval(tmp_path: Path) -> None:
    host = Host(tmp_path)
    before = host.counters.read()
    # 20 ticks: 8 user and 1 nice, 4 system, 2 idle, 1 iowait, 1 irq and 1 softirq, 2 steal.
    host.write(
        "proc/stat",
        "cpu  108 11 54 1002 21 4 3 7 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nprocs_running 9\n",
    )
    host.pressure("cpu", 51_000)
    host.pressure("io", 3_000)
    host.write("proc/net/dev", _NIC.format(name="eth0", rx=2000, tx=700) + _NIC.format(name="veth1", rx=99, tx=99))
    host.write("proc/diskstats", host.disk("nvme0n1", 110, 54) + host.disk("dm-0", 900, 900))
    after = host.later(0.1)
    assert host.counters.compute(before, after) == {
        "cpu_count": 2.0,
        "run_queue": 3.0,  # at the begin of the interval, without the thread that reads
        "cpu_user_pct": 45.0,
        "cpu_system_pct": 20.0,
        "cpu_irq_pct": 10.0,
        "cpu_iowait_pct": 5.0,
        "cpu_steal_pct": 10.0,
        "cpu_idle_pct": 10.0,
        "pressure_cpu_pct": 50.0,
        "pressure_io_pct": 1.0,
        "pressure_memory_pct": 0.0,
        "nic_rx_bytes_per_s": 10_000.0,  # veth1 lies on top of eth0
        "nic_tx_bytes_per_s": 2_000.0,
        "disk_read_bytes_per_s": 51_200.0,  # dm-0 lies on top of nvme0n1
        "disk_write_bytes_per_s": 20_480.0,
    }
    assert (after.wall_ns - before.wall_ns, after.monotonic_ns - before.monotonic_ns) == (100_000_000, 100_000_000)


def test_what_cannot_be_known_is_missing_and_never_0(tmp_path: Path) -> None:
    """A source that is not there, a counter that went back, a device that came: none has a value."""
    host = Host(tmp_path)
    for resource in ("cpu", "io", "memory"):
        (tmp_path / f"proc/pressure/{resource}").unlink()
    host.counters = HostCounters(HostFiles(str(tmp_path)), host.clock)
    before = host.counters.read()
    host.write("proc/net/dev", _NIC.format(name="eth0", rx=10, tx=700))
    host.write("proc/diskstats", host.disk("nvme1n1", 110, 54))
    values = host.counters.compute(before, host.later())
    assert not [name for name in values if name.startswith(("pressure", "disk", "nic_rx"))]
    assert values["nic_tx_bytes_per_s"] == 2_000.0
    assert set(host.counters.missing) == {"/proc/pressure"}
    assert host.counters.compute(before, before) == {}


def test_of_several_devices_each_has_its_own_beside_the_sum(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write("sys/class/net/eth1/device/vendor", "0x1")
    two = _NIC.format(name="eth0", rx=0, tx=0) + _NIC.format(name="eth1", rx=0, tx=0)
    host.write("proc/net/dev", two)
    before = host.counters.read()
    host.write("proc/net/dev", _NIC.format(name="eth0", rx=10, tx=0) + _NIC.format(name="eth1", rx=30, tx=0))
    values = host.counters.compute(before, host.later(1.0))
    assert {name: value for name, value in values.items() if "nic_rx" in name} == {
        "nic_rx_bytes_per_s": 40.0,
        "nic_rx_bytes_per_s.eth0": 10.0,
        "nic_rx_bytes_per_s.eth1": 30.0,
    }


def test_rdma_ports_count_in_words_or_in_bytes(tmp_path: Path) -> None:
    """InfiniBand's counters are in units of 4 bytes; a driver without them counts bytes; a stuck or unreadable one is not known."""
    host = Host(tmp_path)
    ports = "sys/class/infiniband/{}/ports/1/{}"
    for name, received, sent in (("mlx5_0", "10", "4294967295"), ("mlx5_1", "x", "7")):
        host.write(ports.format(name, "counters/port_rcv_data"), f"{received}\n")
        host.write(ports.format(name, "counters/port_xmit_data"), f"{sent}\n")
    host.write(ports.format("efa_0", "hw_counters/rx_bytes"), "100\n")
    host.write(ports.format("efa_0", "hw_counters/tx_bytes"), "200\n")
    reader = RdmaBytesReader(HostFiles(str(tmp_path)))
    assert reader.read() == {"efa_0": (100, 200), "mlx5_0": (40, None), "mlx5_1": (None, 28)}
    counters = HostCounters(HostFiles(str(tmp_path)), host.clock)
    before = counters.read()
    host.write(ports.format("efa_0", "hw_counters/rx_bytes"), "1100\n")
    host.clock.pass_s(0.5)
    values = counters.compute(before, counters.read())
    assert values["rdma_rx_bytes_per_s.efa_0"] == 2_000.0
    assert values["rdma_tx_bytes_per_s.mlx5_1"] == 0.0
    assert "rdma_rx_bytes_per_s" not in values, "no sum of which a part is not known"
