"""The values of a host of 256 CPUs and 4 nodes, one second after the first reading."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynolog.collectors import (
    activity,
    cpu,
    cpu_frequency,
    edac,
    interrupts,
    load,
    memory,
    numa,
    pcie_aer,
    pressure,
    rapl,
    sensors,
    thermal_throttle,
    uptime,
    vmstat,
)
from dynolog.collectors.spec import CollectorSpec
from fakes.big_host import board, processors
from fakes.big_host import memory as big_memory
from fakes.big_host.board import build_board
from fakes.big_host.memory import build_memory
from fakes.big_host.processors import build_processors
from fakes.collector_context import HostTree, numbers

SPECS = (
    cpu.SPEC,
    activity.SPEC,
    memory.SPEC,
    vmstat.SPEC,
    load.SPEC,
    uptime.SPEC,
    pressure.SPEC,
    interrupts.SPEC,
    cpu_frequency.SPEC,
    thermal_throttle.SPEC,
    numa.SPEC,
    edac.SPEC,
    pcie_aer.SPEC,
    sensors.SPEC,
    rapl.SPEC,
)
Measured = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Values by collector of the second from step 0 to step 1."""
    tree = HostTree(tmp_path_factory.mktemp("big"))
    builders: tuple[Callable[[Path, int], None], ...] = (build_processors, build_memory, build_board)
    context = tree.context(per_cpu=True)
    for build in builders:
        build(tree.root, 0)
    collectors: list[tuple[CollectorSpec, Any, Any]] = []
    for spec in SPECS:
        collector = spec.factory(context)
        collectors.append((spec, collector, collector.read()))
    for build in builders:
        build(tree.root, 1)
    return {
        spec.name: numbers(collector.compute(first, collector.read(), 1.0)) for spec, collector, first in collectors
    }


def test_cpu_shares_of_nodes_cpus_and_the_host(measured: Measured) -> None:
    values = measured["cpu"]
    for node in range(processors.NODES):
        user, system = processors.USER_PCT[node], processors.SYSTEM_PCT[node]
        assert values[f"cpu_u_node{node}"] == pytest.approx(user)
        assert values[f"cpu_s_node{node}"] == pytest.approx(system)
        assert values[f"cpu_i_node{node}"] == pytest.approx(98 - user - system)
    for number in (0, 31, 32, 127, 128, 255):
        assert values[f"cpu_u.cpu{number}"] == pytest.approx(processors.USER_PCT[processors.node_of(number)])
    assert values["cpu_u"] == pytest.approx(25)
    assert values["cpu_util"] == pytest.approx(25 + 12.5 + 2)
    assert values["cpu_u_ms"] == 256 * 250
    assert len([key for key in values if key.startswith("cpu_i.cpu")]) == 256


def test_activity(measured: Measured) -> None:
    values = measured["activity"]
    assert values["context_switches"] == processors.CONTEXT_SWITCHES
    assert values["interrupts"] == processors.INTERRUPTS
    assert values["forks"] == processors.FORKS
    assert values["softirqs"] == sum(processors.SOFTIRQS)
    assert values["softirqs_timer"] == 256_000
    assert values["softirqs_rcu"] == 64_000
    assert (values["procs_running"], values["procs_blocked"]) == (120, 3)


def test_interrupts_by_class(measured: Measured) -> None:
    values = measured["interrupts"]
    for label, per_cpu in processors.INTERRUPTS_PER_CPU.items():
        assert values[f"interrupts_{label.lower()}"] == 256 * per_cpu
    assert values["interrupts_err"] == 0
    assert len(values) == len(processors.INTERRUPTS_PER_CPU) + 3


def test_load_uptime_and_pressure(measured: Measured) -> None:
    assert measured["load"]["load_1m"] == 101.25
    assert measured["load"]["threads_total"] == 9001
    assert measured["uptime"]["uptime"] == 4_000_001
    assert measured["pressure"]["pressure_io_full_us"] == 20_000
    assert measured["pressure"]["pressure_io_full_avg10"] == 2.0
    assert measured["pressure"]["pressure_irq_full_us"] == 400
    assert len(measured["pressure"]) == 14


def test_frequency_and_throttling(measured: Measured) -> None:
    values = measured["cpu_frequency"]
    assert values["cpu_frequency_min_mhz"] == 2001
    assert values["cpu_frequency_max_mhz"] == 2001 + 4 * 255
    assert values["cpu_frequency_mhz"] == pytest.approx(2001 + 2 * 255)
    assert values["cpu_frequency_mhz.cpu100"] == 2401
    assert measured["thermal_throttle"]["cpu_core_throttles"] == 128 * processors.CORE_THROTTLES
    assert measured["thermal_throttle"]["cpu_package_throttles"] == 2 * processors.PACKAGE_THROTTLES


def test_memory_and_its_nodes(measured: Measured) -> None:
    kb = big_memory.NODE_TOTAL_KB
    assert measured["memory"]["mem_total_bytes"] == 4 * kb * 1024
    assert measured["memory"]["mem_free_bytes"] == (kb // 8 * 10 + 16) * 1024
    assert measured["memory"]["mem_util"] == pytest.approx(25)
    assert measured["vmstat"]["page_faults"] == big_memory.VMSTAT_STEP["pgfault"]
    assert measured["vmstat"]["oom_kills"] == big_memory.VMSTAT_STEP["oom_kill"]
    assert measured["vmstat"]["reclaim_direct_stalls"] == sum(
        grown for name, grown in big_memory.VMSTAT_STEP.items() if name.startswith("allocstall_")
    )
    for node in range(4):
        assert measured["numa"][f"numa_mem_free_bytes_node{node}"] == (kb // 8 * (node + 1) + 4) * 1024
        assert measured["numa"][f"numa_other_pages_node{node}"] == 1_030


def test_hardware_errors(measured: Measured) -> None:
    assert measured["edac"]["edac_correctable_errors.mc2"] == big_memory.CORRECTABLE_ERRORS
    assert sum(measured["edac"].values()) == big_memory.CORRECTABLE_ERRORS
    assert measured["pcie_aer"]["pcie_aer_correctable_errors.0000:00:00.0"] == board.CORRECTABLE_ERRORS
    assert sum(measured["pcie_aer"].values()) == board.CORRECTABLE_ERRORS
    assert len(measured["pcie_aer"]) == 3 * board.PCI_DEVICES


def test_sensors_and_energy(measured: Measured) -> None:
    assert measured["sensors"]["sensor_temperature_celsius.coretemp.1/Package_id_1"] == 41
    assert len(measured["sensors"]) == 2 * 65
    for package in (0, 1):
        assert measured["rapl"][f"rapl_power_watts.package-{package}"] == board.PACKAGE_WATTS
        assert measured["rapl"][f"rapl_energy_joules.package-{package}/dram"] == board.DRAM_WATTS


def test_energy_counters_wrap_on_the_way(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    build_board(tmp_path, 1)
    collector = rapl.RaplCollector(tree.context())
    first = collector.read()
    build_board(tmp_path, 2)
    second = collector.read()
    assert second["package-0"].energy_uj < first["package-0"].energy_uj
    assert collector.compute(first, second, 1.0)["rapl_power_watts.package-0"] == board.PACKAGE_WATTS
