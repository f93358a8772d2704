"""CPU shares and times on hand-made /proc/stat files."""

import os

import pytest

from dynolog.collectors.cpu import CpuCollector
from fakes.collector_context import HostTree, numbers

MS = 1000 // os.sysconf("SC_CLK_TCK")


def measure(host_tree: HostTree, before: str, after: str, elapsed_s: float = 1000.0, **flags: bool) -> dict[str, float]:
    collector = CpuCollector(host_tree.context(**flags))
    host_tree.write("proc/stat", before)
    first = collector.read()
    host_tree.write("proc/stat", after)
    return numbers(collector.compute(first, collector.read(), elapsed_s))


def test_guest_time_is_not_counted_twice(host_tree: HostTree) -> None:
    """D04: the total of this line is 9300 + 400 of steal column 0: guest is inside user."""
    values = measure(host_tree, "cpu 0 0 0 0 0 0 0 0 0 0\n", "cpu 1000 0 200 8000 100 0 0 0 400 0\n")
    assert values["cpu_u"] == pytest.approx(100 * 1000 / 9300)
    assert values["cpu_guest"] == pytest.approx(100 * 400 / 9300)
    assert values["cpu_util"] == pytest.approx(100 * 1300 / 9300)
    assert values["cpu_guest_ms"] == 400 * MS


def test_iowait_that_goes_back_is_no_growth(host_tree: HostTree) -> None:
    """D01: the kernel lets iowait fall by a tick; the shares of the rest still sum to 100."""
    values = measure(host_tree, "cpu 10 0 10 100 73190 0 0 0 0 0\n", "cpu 20 0 20 180 73189 0 0 0 0 0\n")
    assert values["cpu_w_ms"] == 0
    assert values["cpu_u"] + values["cpu_s"] + values["cpu_i"] == pytest.approx(100)


def test_a_steal_jump_is_unknown_and_spoils_nothing_else(host_tree: HostTree) -> None:
    """D03: a steal counter that fell by 832457433 ticks in a second gives no value."""
    values = measure(
        host_tree, "cpu 0 0 0 0 0 0 0 832457433 0 0\ncpu0 0 0 0 0\n", "cpu 50 0 0 50 0 0 0 0 0 0\ncpu0 50 0 0 50\n", 1.0
    )
    assert "cpu_z_ms" not in values
    assert values["cpu_u"] == pytest.approx(50)


def test_more_ticks_than_time_has_passed_are_a_wrap(host_tree: HostTree) -> None:
    values = measure(host_tree, "cpu 0 0 0 0\ncpu0 0 0 0 0\n", "cpu 50 0 0 4294967295\ncpu0 50 0 0 50\n", 1.0)
    assert "cpu_i" not in values
    assert "cpu_util" not in values


def test_cpu_ids_may_have_holes_and_come_and_go(host_tree: HostTree) -> None:
    """D05: CPUs are known by id; one that went offline has no value, one that is new has none yet."""
    values = measure(
        host_tree,
        "cpu 0 0 0 0\ncpu0 0 0 0 0\ncpu5 100 0 0 100\ncpu8 0 0 0 0\n",
        "cpu 30 0 0 170\ncpu0 10 0 0 90\ncpu8 20 0 0 80\ncpu9 7 0 0 7\n",
        per_cpu=True,
    )
    assert values["cpu_u.cpu0"] == pytest.approx(10)
    assert values["cpu_u.cpu8"] == pytest.approx(20)
    assert values["cpu_util.cpu8"] == pytest.approx(20)
    assert not [key for key in values if key.endswith((".cpu5", ".cpu9"))]


def test_node_shares_come_from_deltas_and_the_real_topology(host_tree: HostTree) -> None:
    host_tree.write("sys/devices/system/node/node0/cpulist", "0,2\n")
    host_tree.write("sys/devices/system/node/node1/cpulist", "1,3\n")
    boot = "".join(f"cpu{cpu} 90000 0 0 10000\n" for cpu in range(4))
    later = "".join(f"cpu{cpu} {90000 + 10 * cpu} 0 0 {10000 + 100 - 10 * cpu}\n" for cpu in range(4))
    values = measure(host_tree, "cpu 360000 0 0 40000\n" + boot, "cpu 360060 0 0 40340\n" + later)
    assert values["cpu_u_node0"] == pytest.approx(10)
    assert values["cpu_u_node1"] == pytest.approx(20)
    assert values["cpu_i_node1"] == pytest.approx(80)


def test_one_node_has_no_node_values(host_tree: HostTree) -> None:
    host_tree.write("sys/devices/system/node/node0/cpulist", "0\n")
    values = measure(host_tree, "cpu 0 0 0 0\ncpu0 0 0 0 0\n", "cpu 1 0 0 1\ncpu0 1 0 0 1\n")
    assert not [key for key in values if "node" in key]


def test_every_host_metric_changes_to_what_was_counted(host_tree: HostTree) -> None:
    """Ticks 10 to 100 by column; 360 of them are in the total."""
    values = measure(
        host_tree, "cpu 1 1 1 1 1 1 1 1 1 1\n", "cpu 11 21 31 41 51 61 71 81 91 101\ncpu0 0 0 0 0\n", per_cpu=True
    )
    assert values == {
        "cpu_u_ms": 10 * MS,
        "cpu_n_ms": 20 * MS,
        "cpu_s_ms": 30 * MS,
        "cpu_w_ms": 50 * MS,
        "cpu_x_ms": 60 * MS,
        "cpu_y_ms": 70 * MS,
        "cpu_z_ms": 80 * MS,
        "cpu_guest_ms": 90 * MS,
        "cpu_guest_nice_ms": 100 * MS,
        "cpu_u": pytest.approx(100 * 10 / 360),
        "cpu_s": pytest.approx(100 * 30 / 360),
        "cpu_i": pytest.approx(100 * 40 / 360),
        "cpu_guest": pytest.approx(100 * 90 / 360),
        "cpu_guest_nice": pytest.approx(100 * 100 / 360),
        "cpu_util": pytest.approx(100 * 320 / 360),
    }


def test_every_cpu_metric_changes_to_what_was_counted(host_tree: HostTree) -> None:
    values = measure(
        host_tree,
        "cpu 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 5 5 5 5 5 5 5 5 5 5\n",
        "cpu 1 0 0 1\ncpu0 10 0 20 70 0 0 0 0 0 0\ncpu1 45 5 15 55 5 5 5 5 5 5\n",
        per_cpu=True,
    )
    assert {key: value for key, value in values.items() if ".cpu" in key} == {
        "cpu_u.cpu0": pytest.approx(10),
        "cpu_s.cpu0": pytest.approx(20),
        "cpu_i.cpu0": pytest.approx(70),
        "cpu_util.cpu0": pytest.approx(30),
        "cpu_u.cpu1": pytest.approx(40),
        "cpu_s.cpu1": pytest.approx(10),
        "cpu_i.cpu1": pytest.approx(50),
        "cpu_util.cpu1": pytest.approx(50),
    }


def test_a_cpu_whose_counter_jumped_is_left_out_of_its_node(host_tree: HostTree) -> None:
    """D03 for nodes: the other CPUs of the node give its shares, and the other node is not touched."""
    for node in (0, 1):
        host_tree.write(f"sys/devices/system/node/node{node}/cpulist", f"{2 * node}-{2 * node + 1}\n")
    zero = "".join(f"cpu{cpu} 0 0 0 0 0 0 0 9000 0 0\n" for cpu in range(4))
    later = "".join(
        f"cpu{cpu} {10 * (cpu + 1)} 0 0 {100 - 10 * (cpu + 1)} 0 0 0 {0 if cpu == 1 else 9000} 0 0\n"
        for cpu in range(4)
    )
    values = measure(host_tree, "cpu 0 0 0 0\n" + zero, "cpu 1 0 0 1\n" + later, 1.0)
    assert values["cpu_u_node0"] == pytest.approx(10)
    assert values["cpu_u_node1"] == pytest.approx(35)


def test_single_cpus_may_be_switched_on_while_running(host_tree: HostTree) -> None:
    """The first interval has no base line for them."""
    context = host_tree.context(per_cpu=False)
    collector = CpuCollector(context)
    host_tree.write("proc/stat", "cpu 0 0 0 0\ncpu0 0 0 0 0\n")
    first = collector.read()
    context.settings.update({"per_cpu": True})
    host_tree.write("proc/stat", "cpu 1 0 0 1\ncpu0 1 0 0 1\n")
    second = collector.read()
    assert "cpu_u.cpu0" not in collector.compute(first, second, 1000.0)
    host_tree.write("proc/stat", "cpu 2 0 0 2\ncpu0 2 0 0 2\n")
    assert collector.compute(second, collector.read(), 1000.0)["cpu_u.cpu0"] == pytest.approx(50)


def test_every_node_metric_changes_to_what_was_counted(host_tree: HostTree) -> None:
    for node in (0, 1):
        host_tree.write(f"sys/devices/system/node/node{node}/cpulist", f"{node}\n")
    values = measure(
        host_tree,
        "cpu 0 0 0 0\ncpu0 0 0 0 0\ncpu1 100 100 100 100\n",
        "cpu 1 0 0 1\ncpu0 10 0 20 70\ncpu1 140 100 110 150\n",
    )
    assert {key: value for key, value in values.items() if "_node" in key} == {
        "cpu_u_node0": pytest.approx(10),
        "cpu_s_node0": pytest.approx(20),
        "cpu_i_node0": pytest.approx(70),
        "cpu_u_node1": pytest.approx(40),
        "cpu_s_node1": pytest.approx(10),
        "cpu_i_node1": pytest.approx(50),
    }
