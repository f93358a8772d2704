"""Intel GPUs on recorded trees, under xe and i915."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Catalogue
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.intel_gpu.backend import IntelBackend
from fakes.drm_tree import DrmTree, SteppedNs, drm_tree
from fakes.intel_trees import GIB, arc_b580, flex_170, max_1550, processor_graphics


@pytest.fixture
def tree(tmp_path: Path) -> DrmTree:
    return drm_tree(tmp_path)


@pytest.fixture
def clock() -> SteppedNs:
    return SteppedNs()


def opened(tree: DrmTree, clock: SteppedNs) -> IntelBackend:
    backend = IntelBackend(GpuOptions(backend="intel", root_dir=str(tree.root)), clock)
    backend.open()
    return backend


def only(sample: GpuSample) -> GpuReading:
    (reading,) = sample.readings
    return reading


def test_a_max_1550_under_xe(tree: DrmTree, clock: SteppedNs) -> None:
    folder = max_1550(tree)
    backend = opened(tree, clock)
    first = backend.sample()
    assert (first.backend, first.expected, first.seen) == ("intel", 1, 1)
    assert first.driver_version == "xe of kernel 6.18.0"
    assert "gpu_power_draw" not in only(first).values
    clock.advance(4)
    tree.write(f"{folder}/hwmon/hwmon3/energy1_input", f"{5_000_000_000 + 1_800_000_000}\n")
    # One tile slept 1 of 4 s, the other 3 of 4.
    tree.write(f"{folder}/tile0/gt0/gtidle/idle_residency_ms", "6000\n")
    tree.write(f"{folder}/tile1/gt1/gtidle/idle_residency_ms", "8000\n")
    reading = only(backend.sample())
    assert (reading.device, reading.name, reading.pci_bus_id, reading.minor) == (
        "0", "Intel 8086:0bd5", "0000:3a:00.0", 128
    )  # fmt: skip
    assert reading.values == {
        "gpu_awake_ratio": 0.5, "gpu_frequency_mhz": 1550, "gpu_frequency_max_mhz": 1600,
        "gpu_memory_total_bytes": 128 * GIB, "gpu_memory_frequency_max_mhz": 3200,
        "gpu_power_draw": 450, "gpu_power_limit": 600, "gpu_power_limit_max": 600,
        "gpu_temperature_celsius": 54, "gpu_memory_temperature_celsius": 61,
        "gpu_throttle_active.pl1": 1, "gpu_throttle_active.thermal": 0, "gpu_throttle_active.prochot": 0,
        "pcie_link_generation": 5, "pcie_link_generation_max": 5, "pcie_link_width": 16, "pcie_link_width_max": 16,
    }  # fmt: skip
    assert reading.counters == {"gpu_energy_joules": 6800}


def test_a_flex_under_intels_own_i915(tree: DrmTree, clock: SteppedNs) -> None:
    card = flex_170(tree)
    backend = opened(tree, clock)
    backend.sample()
    clock.advance(10)
    tree.write(f"{card}/gt/gt0/rc6_residency_ms", "3500\n")
    reading = only(backend.sample())
    assert reading.values == {
        "gpu_awake_ratio": 0.75, "gpu_frequency_mhz": 2050, "gpu_frequency_max_mhz": 2050,
        "gpu_memory_total_bytes": 16 * GIB, "gpu_memory_free_bytes": 12 * GIB, "gpu_memory_used_bytes": 4 * GIB,
        "gpu_power_draw": 0, "gpu_power_limit": 120, "gpu_power_limit_max": 150,
        "gpu_temperature_celsius": 48, "gpu_fan_rpm": 2100,
        "gpu_throttle_active.pl1": 0, "gpu_throttle_active.thermal": 1,
        # Of the slot: the chip itself says 2.5 GT/s and one lane.
        "pcie_link_generation": 4, "pcie_link_generation_max": 4, "pcie_link_width": 16, "pcie_link_width_max": 16,
    }  # fmt: skip
    assert reading.counters == {
        "gpu_energy_joules": 70,
        "ras_errors_corrected.l3_sng": 3,
        "ras_errors_corrected.sgunit": 2,
        "ras_errors_uncorrected.guc": 1,
    }


def test_an_arc_gives_its_drawing_unit_and_the_slot_it_sits_in(tree: DrmTree, clock: SteppedNs) -> None:
    arc_b580(tree)
    values = only(opened(tree, clock).sample()).values
    # The unit for video runs at 3333 MHz.
    assert values["gpu_frequency_mhz"] == 2850
    assert (values["pcie_link_generation"], values["pcie_link_generation_max"]) == (3, 3)
    assert (values["pcie_link_width"], values["pcie_link_width_max"]) == (8, 8)
    # A limit of 0 is a limit that is off.
    assert values["gpu_power_limit"] == 190
    assert (values["gpu_temperature_celsius"], values["gpu_fan_rpm"]) == (39, 900)


def test_graphics_of_a_processor_count_too(tree: DrmTree, clock: SteppedNs) -> None:
    card = processor_graphics(tree)
    backend = opened(tree, clock)
    backend.sample()
    clock.advance(2)
    tree.write(f"{card}/gt/gt0/rc6_residency_ms", "2102\n")
    reading = only(backend.sample())
    assert reading.name == "Intel Meteor Lake-P [Intel Arc Graphics]"
    # It slept all the time, and its counter's own step made that 2002 of 2000 ms. A clock that stands is a true 0.
    assert reading.values == {"gpu_awake_ratio": 0, "gpu_frequency_mhz": 0, "gpu_frequency_max_mhz": 2250}
    assert reading.counters == {}


def test_files_of_i915_before_6_0(tree: DrmTree, clock: SteppedNs) -> None:
    folder = tree.pci("0000:00:02.0", 0x8086, 0x3E92, 0x030000, "i915")
    card = tree.card(0, folder, render=128)
    tree.files(card, {"gt_act_freq_mhz": 350, "gt_RP0_freq_mhz": 1200, "power/rc6_residency_ms": 1000})
    backend = opened(tree, clock)
    backend.sample()
    clock.advance(1)
    tree.write(f"{card}/power/rc6_residency_ms", "1250\n")
    assert only(backend.sample()).values == {
        "gpu_awake_ratio": 0.75, "gpu_frequency_mhz": 350, "gpu_frequency_max_mhz": 1200
    }  # fmt: skip


def test_several_makers_and_drivers_in_one_machine(tree: DrmTree, clock: SteppedNs) -> None:
    max_1550(tree)
    flex_170(tree)
    arc_b580(tree)
    processor_graphics(tree)
    tree.card(9, tree.pci("0000:00:1f.0", 0x1A03, 0x2000, 0x030000, "ast"), render=140)
    sample = opened(tree, clock).sample()
    assert [(reading.device, reading.pci_bus_id) for reading in sample.readings] == [
        ("0", "0000:00:02.0"),
        ("1", "0000:07:00.0"),
        ("2", "0000:3a:00.0"),
        ("3", "0000:4c:00.0"),
    ]
    assert sample.driver_version == "i915 of kernel 6.18.0, xe of kernel 6.18.0"


@pytest.mark.parametrize("code", [errno.ENODEV, errno.EIO])
def test_a_card_that_does_not_answer_is_down(
    tree: DrmTree, clock: SteppedNs, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    max_1550(tree)
    processor_graphics(tree)
    backend = opened(tree, clock)
    pread = os.pread

    def refusing(fd: int, count: int, offset: int) -> bytes:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if "0000:3a:00.0" in path and "runtime_status" not in path:
            raise OSError(code, os.strerror(code))
        return pread(fd, count, offset)

    monkeypatch.setattr(os, "pread", refusing)
    sample = backend.sample()
    assert (sample.expected, sample.seen) == (2, 1)
    assert (sample.readings[1].is_up, sample.readings[1].values) == (False, {})
    assert errno.errorcode[code] in sample.readings[1].error


def test_a_card_with_broken_firmware_is_down(tree: DrmTree, clock: SteppedNs) -> None:
    folder = max_1550(tree)
    tree.write(f"{folder}/survivability_mode", "Capability Info: 0x20000000 - 0x1\n")
    reading = only(opened(tree, clock).sample())
    assert not reading.is_up
    assert "survivability mode" in reading.error


def test_a_card_that_sleeps_is_left_asleep(tree: DrmTree, clock: SteppedNs) -> None:
    folder = arc_b580(tree)
    backend = opened(tree, clock)
    backend.sample()
    tree.write(f"{folder}/power/runtime_status", "suspended\n")
    clock.advance(1)
    reading = only(backend.sample())
    assert reading.is_up
    assert reading.values == {
        "gpu_memory_total_bytes": 12 * GIB, "gpu_power_limit": 190, "pcie_link_generation_max": 3, "pcie_link_width_max": 8
    }  # fmt: skip
    # After it woke up, growth over the gap is not known.
    tree.write(f"{folder}/power/runtime_status", "active\n")
    clock.advance(1)
    assert "gpu_awake_ratio" not in only(backend.sample()).values


def test_a_card_with_another_driver_keeps_its_number(tree: DrmTree, clock: SteppedNs) -> None:
    processor_graphics(tree)
    max_1550(tree)
    backend = opened(tree, clock)
    backend.sample()
    tree.remove("sys/devices/pci0000:00/0000:00:01.0/0000:3a:00.0/driver")
    tree.remove("sys/class/drm/card1")
    clock.advance(1)
    sample = backend.sample()
    assert (sample.expected, sample.seen) == (2, 1)
    assert "no driver has taken this device" in sample.readings[1].error


def test_without_a_device_the_backend_says_so(tree: DrmTree, clock: SteppedNs) -> None:
    with pytest.raises(SourceUnavailable, match="no Intel GPU with its driver"):
        opened(tree, clock)


def test_every_key_is_of_the_catalogue(tree: DrmTree, clock: SteppedNs) -> None:
    max_1550(tree)
    flex_170(tree)
    catalogue = Catalogue(GPU_METRICS)
    backend = opened(tree, clock)
    backend.sample()
    clock.advance(1)
    for reading in backend.sample().readings:
        assert all(catalogue.resolve(key) for key in {**reading.values, **reading.counters})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(content=st.binary(max_size=40), file=st.integers(0, 200))
def test_any_content_of_any_file_costs_at_most_its_value(tree: DrmTree, content: bytes, file: int) -> None:
    clock = SteppedNs()
    folder = max_1550(tree)
    device = tree.root / folder
    files = sorted(path for path in device.rglob("*") if path.is_file() and "drm" not in path.parts)
    (keep := files[file % len(files)]).write_bytes(content)
    try:
        # Without its maker's number, or with the name of another driver, it is no Intel GPU any more.
        if keep.name == "vendor":
            return
        backend = opened(tree, clock)
        backend.sample()
        clock.advance(1)
        reading = only(backend.sample())
        assert reading.is_up or keep.name == "survivability_mode"
        backend.close()
    finally:
        keep.unlink()
