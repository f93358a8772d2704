"""ROCm's own package beside the files: what it adds, and that nothing it does can take the files away."""

import sys
from pathlib import Path

import pytest

from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.sources.amdgpu.backend import AmdBackend
from dynolog.sources.gpu_backend import GpuOptions
from fakes.amd_trees import radeon
from fakes.drm_tree import DrmTree, SteppedNs, drm_tree
from fakes.fake_amdsmi import fake_amdsmi

NEWER_TABLE = b"\x08\x00\x01\x09" + bytes(100)
METRICS: dict[str, object] = {
    "common_header.content_revision": 9,
    "temperature_hotspot": 61,
    "temperature_mem": "N/A",
    "average_gfx_activity": 55,
    "current_socket_power": 402,
    "energy_accumulator": 65536 * 3,
    "pcie_replay_count_acc": 4,
    "current_uclk": 1900,
    "current_gfxclks": [2400, 2390, "N/A", "N/A"],
    "xgmi_read_data_acc": [10, 20, "N/A"],
    "xgmi_write_data_acc": [1, 2, "N/A"],
    "accumulation_counter": 100,
    "ppt_residency_acc": 5,
}
DEVICE: dict[str, dict[str, object]] = {"0000:03:00.0": {"market_name": "AMD Radeon RX 6700 XT", "metrics": METRICS}}


@pytest.fixture
def tree(tmp_path: Path) -> DrmTree:
    tree = drm_tree(tmp_path)
    radeon(tree)
    return tree


def sampled(tree: DrmTree) -> GpuSample:
    backend = AmdBackend(GpuOptions(backend="amd", root_dir=str(tree.root)), SteppedNs())
    backend.open()
    try:
        return backend.sample()
    finally:
        backend.close()


def only(sample: GpuSample) -> GpuReading:
    (reading,) = sample.readings
    return reading


def test_it_names_a_card_whose_board_does_not(tree: DrmTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", fake_amdsmi(DEVICE))
    sample = sampled(tree)
    assert sample.library_version == "amdsmi 26.2.0"
    assert only(sample).name == "AMD Radeon RX 6700 XT"


def test_it_reads_the_table_of_a_newer_driver(tree: DrmTree, monkeypatch: pytest.MonkeyPatch) -> None:
    without = only(sampled(tree)).values
    folder = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0"
    tree.write(f"{folder}/gpu_metrics", NEWER_TABLE)
    monkeypatch.setitem(sys.modules, "amdsmi", fake_amdsmi(DEVICE))
    sample = sampled(tree)
    reading = only(sample)
    assert sample.notices == ()
    # What has a file keeps the file's value (busy, power, temperature, clocks).
    assert reading.values == without
    assert reading.counters == {"gpu_energy_joules": 3, "pcie_replays": 4, "gpu_throttle_ms.power": 0}


@pytest.mark.parametrize(
    "function",
    [
        "amdsmi_init",
        "amdsmi_get_lib_version",
        "amdsmi_get_processor_handles",
        "amdsmi_get_gpu_device_bdf",
        "amdsmi_get_gpu_asic_info",
        "amdsmi_get_gpu_metrics_info",
        "amdsmi_shut_down",
    ],
)
def test_whatever_it_raises_the_files_are_read(tree: DrmTree, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """C13."""
    without = only(sampled(tree))
    monkeypatch.setitem(sys.modules, "amdsmi", fake_amdsmi(DEVICE, failing=frozenset({function})))
    reading = only(sampled(tree))
    assert (reading.is_up, reading.values, reading.counters) == (True, without.values, without.counters)


def test_a_library_that_is_not_there_is_not_missed(tree: DrmTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libamd_smi.so the package raises KeyError at its import."""

    class Broken:
        def find_spec(self, name: str, *_arguments: object) -> None:
            if name == "amdsmi":
                raise KeyError("ROCM_HOME")

    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    sample = sampled(tree)
    assert only(sample).is_up
    assert sample.library_version == ""
