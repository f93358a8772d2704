"""Errors of memory controllers and PCIe devices."""

import pytest

from dynolog.collectors.edac import EdacCollector
from dynolog.collectors.pcie_aer import PcieAerCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import measure

MC = "sys/devices/system/edac/mc"
DEVICE = "sys/bus/pci/devices/0000:3b:00.0"


def aer(correctable: int | str, nonfatal: int, fatal: int) -> dict[str, str]:
    return {
        f"{DEVICE}/aer_dev_correctable": f"RxErr 0\nBadTLP {correctable}\nTOTAL_ERR_COR {correctable}\n",
        f"{DEVICE}/aer_dev_nonfatal": f"Undefined 0\nTOTAL_ERR_NONFATAL {nonfatal}\n",
        f"{DEVICE}/aer_dev_fatal": f"Undefined 0\nTOTAL_ERR_FATAL {fatal}\n",
    }


def test_memory_errors_of_each_controller(host_tree: HostTree) -> None:
    before = {f"{MC}/mc0/ce_count": "5\n", f"{MC}/mc0/ue_count": "0\n", f"{MC}/mc1/ce_count": "9\n"}
    after = {f"{MC}/mc0/ce_count": "8\n", f"{MC}/mc0/ue_count": "1\n", f"{MC}/mc1/ce_count": "0\n"}
    assert measure(host_tree, EdacCollector, before, after) == {
        "edac_correctable_errors.mc0": 3,
        "edac_uncorrectable_errors.mc0": 1,
    }


def test_an_unreadable_count_is_missing_and_not_zero(host_tree: HostTree) -> None:
    """D10, D12: text, and a directory in place of a file."""
    before = {f"{MC}/mc0/ce_count": "5\n", f"{MC}/mc0/ue_count/x": "0\n"}
    assert measure(host_tree, EdacCollector, before, {f"{MC}/mc0/ce_count": "\n"}) == {}


def test_no_controller_is_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no memory controller"):
        measure(host_tree, EdacCollector, {}, {})


def test_pcie_errors_of_a_device_by_severity(host_tree: HostTree) -> None:
    assert measure(host_tree, PcieAerCollector, aer(10, 20, 30), aer(11, 22, 33)) == {
        "pcie_aer_correctable_errors.0000:3b:00.0": 1,
        "pcie_aer_nonfatal_errors.0000:3b:00.0": 2,
        "pcie_aer_fatal_errors.0000:3b:00.0": 3,
    }


def test_pcie_counts_that_reset_or_do_not_parse_have_no_value(host_tree: HostTree) -> None:
    assert measure(host_tree, PcieAerCollector, aer(10, 20, 30), aer("junk", 1, 31)) == {
        "pcie_aer_fatal_errors.0000:3b:00.0": 1
    }


def test_a_device_that_is_unplugged_costs_only_itself(host_tree: HostTree) -> None:
    other = {path.replace("3b", "af"): text for path, text in aer(1, 1, 1).items()}
    gone = dict.fromkeys(other)
    values = measure(host_tree, PcieAerCollector, aer(1, 1, 1) | other, aer(2, 1, 1) | gone)
    assert values["pcie_aer_correctable_errors.0000:3b:00.0"] == 1
    assert not [key for key in values if "af" in key]


def test_devices_without_counters_are_unavailable(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no device with AER"):
        measure(host_tree, PcieAerCollector, {"sys/bus/pci/devices/0000:00:00.0/vendor": "0x8086\n"}, {})
