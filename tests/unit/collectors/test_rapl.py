"""RAPL energy and power on hand-made powercap files."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.collectors.rapl import RaplCollector, energy_delta_uj
from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import KernelFile
from dynolog.sources.powercap import Energy
from fakes.collector_context import HostTree
from fakes.measure import measure

FOLDER = "sys/class/powercap"


def zone(directory: str, name: str, energy_uj: int | str, range_uj: int = 262_143_328_850) -> dict[str, str]:
    return {
        f"{FOLDER}/{directory}/name": f"{name}\n",
        f"{FOLDER}/{directory}/energy_uj": f"{energy_uj}\n",
        f"{FOLDER}/{directory}/max_energy_range_uj": f"{range_uj}\n",
    }


def test_energy_and_power_of_packages_and_their_parts(host_tree: HostTree) -> None:
    before = zone("intel-rapl:0", "package-0", 1_000_000) | zone("intel-rapl:0:0", "dram", 0)
    before |= zone("intel-rapl-mmio:0", "package-0", 5) | {f"{FOLDER}/intel-rapl/enabled": "1\n"}
    after = zone("intel-rapl:0", "package-0", 501_000_000) | zone("intel-rapl:0:0", "dram", 40_000_000)
    assert measure(host_tree, RaplCollector, before, after, elapsed_s=2.0) == {
        "rapl_energy_joules.package-0": 500,
        "rapl_power_watts.package-0": 250,
        "rapl_energy_joules.package-0/dram": 40,
        "rapl_power_watts.package-0/dram": 20,
    }


def test_a_wrap_is_known_by_the_range(host_tree: HostTree) -> None:
    before, after = zone("intel-rapl:0", "package-0", 990, 1000), zone("intel-rapl:0", "package-0", 15, 1000)
    values = measure(host_tree, RaplCollector, before, after)
    assert values["rapl_energy_joules.package-0"] == pytest.approx(25e-6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Energy(400, 1000), Energy(300, 1000)),  # 900 µJ of a range of 1000: more probably a reset
        (Energy(400, 0), Energy(300, 0)),  # no range
        (Energy(400, 1000), Energy(500, 2000)),  # another counter
        (Energy(5000, 1000), Energy(300, 1000)),  # beyond its own range
    ],
)
def test_a_reset_is_not_a_wrap(old: Energy, new: Energy) -> None:
    assert energy_delta_uj(old, new) is None


@given(st.integers(2, 2**62), st.data())
def test_growth_of_up_to_half_the_range_is_exact(range_uj: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, range_uj - 1))
    grown = data.draw(st.integers(0, range_uj // 2))
    assert energy_delta_uj(Energy(start, range_uj), Energy((start + grown) % range_uj, range_uj)) == grown


def test_a_zone_that_cannot_be_read_costs_only_itself(host_tree: HostTree) -> None:
    before = zone("intel-rapl:0", "package-0", 1_000_000) | zone("intel-rapl:1", "package-1", 1)
    after = zone("intel-rapl:0", "package-0", 2_000_000) | zone("intel-rapl:1", "package-1", "junk")
    assert measure(host_tree, RaplCollector, before, after, elapsed_s=0.0) == {"rapl_energy_joules.package-0": 1}


def test_no_time_has_no_power(host_tree: HostTree) -> None:
    files = zone("intel-rapl:0", "package-0", 1)
    assert "rapl_power_watts.package-0" not in measure(host_tree, RaplCollector, files, files, elapsed_s=0.0)


def test_a_counter_for_root_alone_is_said_with_its_remedy(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    real = KernelFile.read

    def refuse(file: KernelFile) -> bytes:
        if file.path.endswith("energy_uj"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(file)

    monkeypatch.setattr(KernelFile, "read", refuse)
    with pytest.raises(SourceUnavailable, match=r"only root may read it.*run the daemon as root"):
        measure(host_tree, RaplCollector, zone("intel-rapl:0", "package-0", 1), {})


def test_no_counter_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no energy counter"):
        measure(host_tree, RaplCollector, {}, {})
