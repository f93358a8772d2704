"""AMD GPUs on recorded trees: an MI250, eight MI300X, a Radeon, and what goes wrong with them."""

import errno
import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Catalogue
from dynolog.sources.amdgpu.backend import AmdBackend
from dynolog.sources.amdgpu.card import AmdCard
from dynolog.sources.amdgpu.kfd import KfdProcesses
from dynolog.sources.gpu_backend import GpuOptions
from fakes.amd_trees import GIB, kfd_host, kfd_node, kfd_process, mi250, mi300_table, mi300x, mi300x_eight, radeon
from fakes.amdgpu_tables import table
from fakes.drm_tree import DrmTree, SteppedNs, drm_tree


@pytest.fixture
def tree(tmp_path: Path) -> DrmTree:
    return drm_tree(tmp_path)


@pytest.fixture
def clock() -> SteppedNs:
    return SteppedNs()


def opened(tree: DrmTree, clock: SteppedNs) -> AmdBackend:
    backend = AmdBackend(GpuOptions(backend="amd", root_dir=str(tree.root)), clock)
    backend.open()
    return backend


def only(sample: GpuSample) -> GpuReading:
    (reading,) = sample.readings
    return reading


def test_both_dies_of_an_mi250(tree: DrmTree, clock: SteppedNs) -> None:
    mi250(tree)
    sample = opened(tree, clock).sample()
    assert (sample.backend, sample.expected, sample.seen) == ("amd", 2, 2)
    assert sample.driver_version == "amdgpu of kernel 6.18.0"
    first, second = sample.readings
    assert (first.device, first.uuid, first.minor, first.pci_bus_id) == ("0", "bd8a5f9c3e02a1b0", 128, "0000:29:00.0")
    assert first.name == "AMD INSTINCT MI250 (MCM) OAM AC MBA"
    assert first.values == {
        "gpu_device_utilization": 93, "gpu_memory_utilization": 35,
        "gpu_memory_total_bytes": 64 * GIB, "gpu_memory_used_bytes": 48 * GIB, "gpu_memory_free_bytes": 16 * GIB,
        "gpu_gtt_total_bytes": 256 * GIB, "gpu_gtt_used_bytes": 16 << 20, "gpu_processes": 1,
        "gpu_frequency_mhz": 1700, "gpu_frequency_max_mhz": 1700, "gpu_memory_frequency_mhz": 1600, "gpu_memory_frequency_max_mhz": 1600,
        "gpu_power_draw": 304, "gpu_power_limit": 560, "gpu_power_limit_max": 560,
        "gpu_temperature_celsius": 47, "gpu_edge_temperature_celsius": 41, "gpu_memory_temperature_celsius": 52,
        "gpu_temperature_slowdown_celsius": 105,
        "pcie_link_generation": 4, "pcie_link_generation_max": 4, "pcie_link_width": 16, "pcie_link_width_max": 16,
        "xgmi_hive_id": "7463142378451112233", "xgmi_peers": 1,
        "gpu_clock_event_reasons": 1, "gpu_throttle_active.power": 1, "gpu_throttle_active.current": 0, "gpu_throttle_active.thermal": 0,
        "gpu_throttle_active.hbm_thermal": 0, "gpu_throttle_active.vr_thermal": 0, "gpu_throttle_active.liquid_thermal": 0,
        "gpu_throttle_active.prochot": 0,
    }  # fmt: skip
    assert first.counters == {
        "gpu_energy_joules": 1000, "pcie_replays": 0, "ecc_corrected_errors": 0, "ecc_uncorrected_errors": 0,
        "ras_errors_corrected.umc": 0, "ras_errors_uncorrected.umc": 0, "ras_errors_corrected.gfx": 0, "ras_errors_uncorrected.gfx": 0,
    }  # fmt: skip
    assert [(process.pid, process.used_memory_bytes) for process in first.processes] == [(4242, 47 * GIB)]
    # The second die is measured with the first: its zeros are no power, no limit and no energy.
    assert not {"gpu_power_draw", "gpu_power_limit", "gpu_power_limit_max"} & second.values.keys()
    assert "gpu_energy_joules" not in second.counters
    assert second.values["gpu_throttle_active.hbm_thermal"] == 1
    assert second.counters["pcie_replays"] == 2
    # A process that opened the compute driver has a file for every GPU; 0 bytes is no use of it.
    assert second.processes == ()
    assert second.values["gpu_processes"] == 0


def test_eight_mi300x_with_xgmi_and_one_with_memory_errors(tree: DrmTree, clock: SteppedNs) -> None:
    folders = mi300x_eight(tree)
    backend = opened(tree, clock)
    first = backend.sample()
    assert [reading.values["gpu_device_utilization"] for reading in first.readings] == list(range(90, 98))
    assert [reading.pci_bus_id for reading in first.readings][:2] == ["0000:0c:00.0", "0000:22:00.0"]
    assert "nvlink_rx_bytes" not in first.readings[0].values
    clock.advance(2)
    for folder in folders:
        tree.write(f"{folder}/gpu_metrics", mi300_table(3))
    sample = backend.sample()
    assert (sample.expected, sample.seen) == (8, 8)
    values = sample.readings[5].values
    # Seven links, 2,000,000 kB of 1024 B a second on each; half of it the other way.
    assert values["nvlink_rx_bytes"] == 7 * 2_000_000 * 1024
    assert values["nvlink_tx_bytes"] == 7 * 1_000_000 * 1024
    assert {key: value for key, value in values.items() if key.startswith("nvlink_is_up")} == {
        f"nvlink_is_up.{link}": int(link != 4) for link in range(1, 8)
    }
    assert values["gpu_power_draw"] == 650
    assert (values["gpu_frequency_mhz"], values["gpu_frequency_max_mhz"]) == (500, 2100)
    # No level is in force in pp_dpm_mclk, so the table's clock is given.
    assert (values["gpu_memory_frequency_mhz"], values["gpu_memory_frequency_max_mhz"]) == (1300, 1300)
    assert (values["gpu_temperature_celsius"], values["gpu_memory_temperature_celsius"]) == (65, 55)
    assert "gpu_edge_temperature_celsius" not in values
    assert (values["xgmi_peers"], values["xgmi_hive_id"], values["gpu_partition_mode"]) == (7, "1234", "SPX")
    assert (values["pcie_link_generation"], values["retired_pages"]) == (5, 0)
    before, after = first.readings[5].counters, sample.readings[5].counters
    assert after["gpu_energy_joules"] - before["gpu_energy_joules"] == 1400
    # 400 of 2000 cycles in 2 s.
    assert after["gpu_throttle_ms.power"] - before["gpu_throttle_ms.power"] == 400
    assert after["gpu_throttle_ms.thermal"] == 0
    assert after["pcie_replays"] == 11
    third = sample.readings[2]
    assert (third.counters["ecc_corrected_errors"], third.counters["ecc_uncorrected_errors"]) == (14, 1)
    assert (third.counters["ras_errors_corrected.gfx"], third.counters["ras_errors_uncorrected.gfx"]) == (3, 0)
    # A block whose file says something else is missing, not 0.
    assert "ras_errors_corrected.vcn" not in third.counters
    assert third.values["retired_pages"] == 2


def test_a_radeon_gives_what_it_has(tree: DrmTree, clock: SteppedNs) -> None:
    radeon(tree)
    reading = only(opened(tree, clock).sample())
    assert reading.is_up
    assert reading.name == "AMD Navi 22 [Radeon RX 6700]"
    assert reading.uuid == ""
    assert reading.values == {
        "gpu_device_utilization": 7,
        "gpu_memory_total_bytes": 12 * GIB, "gpu_memory_used_bytes": GIB, "gpu_memory_free_bytes": 11 * GIB,
        "gpu_frequency_mhz": 500, "gpu_frequency_max_mhz": 2725, "gpu_memory_frequency_mhz": 96, "gpu_memory_frequency_max_mhz": 1000,
        "gpu_power_draw": 31, "gpu_power_limit": 186,
        "gpu_temperature_celsius": 44, "gpu_edge_temperature_celsius": 44, "gpu_temperature_slowdown_celsius": 100,
        "gpu_fan_speed": 20, "gpu_fan_rpm": 0,
        # Of the slot, not of the link between the board's own switch and the chip.
        "pcie_link_generation": 3, "pcie_link_generation_max": 3, "pcie_link_width": 8, "pcie_link_width_max": 16,
    }  # fmt: skip
    assert reading.counters == {}
    assert reading.processes == ()


def test_partitions_are_devices_of_their_own(tree: DrmTree, clock: SteppedNs) -> None:
    """An MI300X in four parts: the first is read with the socket, the others have what is known of them alone."""
    kfd_host(tree)
    folder = mi300x(tree, 0, 0x0C)
    tree.write(f"{folder}/current_compute_partition", "QPX\n")
    tree.write(
        f"{folder}/gpu_metrics",
        table((1, 7), {"num_partition": 4}, {0: [10, 20], 1: [50, 70], 2: [0, 0], 3: [0xFFFFFFFF, 0xFFFFFFFF]}),
    )
    for part in range(4):
        # The driver puts the number of the partition where PCI has the function.
        kfd_node(tree, part + 1, 500 + part, 0x0C00 + part, render=128 + part, xgmi=[], vram=48 * GIB)
    kfd_process(tree, 77, {501: 5 * GIB, 500: 0})
    sample = opened(tree, clock).sample()
    assert (sample.expected, sample.seen) == (1, 1)
    assert [(reading.device, reading.pci_bus_id, reading.minor) for reading in sample.readings] == [
        ("0", "0000:0c:00.0", 128),
        ("1", "0000:0c:00.1", 129),
        ("2", "0000:0c:00.2", 130),
        ("3", "0000:0c:00.3", 131),
    ]
    socket, second, third, fourth = sample.readings
    assert (socket.values["gpu_partition_mode"], socket.values["gpu_power_draw"]) == ("QPX", 650)
    assert second.values == {
        "gpu_device_utilization": 60, "gpu_memory_total_bytes": 48 * GIB, "gpu_processes": 1
    }  # fmt: skip
    assert [process.pid for process in second.processes] == [77]
    assert third.values["gpu_device_utilization"] == 0
    assert "gpu_device_utilization" not in fourth.values


def test_a_socket_that_is_no_longer_divided_loses_no_device(tree: DrmTree, clock: SteppedNs) -> None:
    kfd_host(tree)
    mi300x(tree, 0, 0x0C)
    for part in range(2):
        kfd_node(tree, part + 1, 500 + part, 0x0C00 + part, render=128 + part, xgmi=[], vram=96 * GIB)
    backend = opened(tree, clock)
    assert len(backend.sample().readings) == 2
    tree.remove("sys/class/kfd/kfd/topology/nodes/2")
    tree.write("sys/class/kfd/kfd/topology/generation_id", "4\n")
    clock.advance(31)
    sample = backend.sample()
    assert (len(sample.readings), sample.expected, sample.seen) == (1, 1, 1)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EBUSY, errno.ENODEV, errno.EIO])
def test_a_card_in_reset_is_down_and_costs_the_others_nothing(
    tree: DrmTree, clock: SteppedNs, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """C01, C03."""
    mi300x_eight(tree)
    backend = opened(tree, clock)
    assert backend.sample().seen == 8
    pread = os.pread

    def refusing(fd: int, count: int, offset: int) -> bytes:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if "0000:38:00.0" in path and "mem_info" not in path and "runtime_status" not in path:
            raise OSError(code, os.strerror(code))
        return pread(fd, count, offset)

    monkeypatch.setattr(os, "pread", refusing)
    clock.advance(1)
    sample = backend.sample()
    assert (sample.expected, sample.seen) == (8, 7)
    down = sample.readings[2]
    assert (down.is_up, down.values, down.counters) == (False, {}, {})
    assert errno.errorcode[code] in down.error
    assert all(reading.is_up and reading.values for reading in sample.readings if reading.device != "2")
    monkeypatch.undo()
    clock.advance(1)
    assert backend.sample().seen == 8


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EPERM, errno.EINVAL, errno.ENODEV])
def test_one_file_that_fails_costs_only_its_value(
    tree: DrmTree, clock: SteppedNs, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    radeon(tree)
    backend = opened(tree, clock)
    whole = only(backend.sample()).values
    pread = os.pread

    def refusing(fd: int, count: int, offset: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("gpu_busy_percent"):
            raise OSError(code, os.strerror(code))
        return pread(fd, count, offset)

    monkeypatch.setattr(os, "pread", refusing)
    clock.advance(1)
    reading = only(backend.sample())
    assert reading.is_up
    assert reading.values == {key: value for key, value in whole.items() if key != "gpu_device_utilization"}


def test_a_card_that_falls_off_the_bus_is_down_and_comes_back_under_its_number(tree: DrmTree, clock: SteppedNs) -> None:
    mi300x_eight(tree)
    backend = opened(tree, clock)
    backend.sample()
    links = ["sys/class/drm/card3", "sys/bus/pci/devices/0000:38:00.0"]
    targets = {link: os.readlink(tree.root / link) for link in links}
    for link in links:
        tree.remove(link)
    clock.advance(1)
    sample = backend.sample()
    assert (sample.expected, sample.seen) == (8, 7)
    lost = sample.readings[2]
    assert (lost.device, lost.is_up, lost.pci_bus_id) == ("2", False, "0000:38:00.0")
    assert "has gone" in lost.error
    for link, target in targets.items():
        (tree.root / link).symlink_to(target)
    clock.advance(1)
    back = backend.sample()
    assert back.seen == 8
    assert back.readings[2].values["gpu_device_utilization"] == 92


def test_a_card_without_driver_is_expected_and_not_seen(tree: DrmTree, clock: SteppedNs) -> None:
    mi300x_eight(tree)
    tree.remove("sys/class/drm/card3")
    tree.remove("sys/devices/pci0000:00/0000:00:02.1/0000:38:00.0/driver")
    sample = opened(tree, clock).sample()
    assert (sample.expected, sample.seen) == (8, 7)
    assert (sample.readings[2].device, sample.readings[2].is_up) == ("2", False)
    assert "no driver has taken this device" in sample.readings[2].error


def test_a_card_that_sleeps_is_not_woken(tree: DrmTree, clock: SteppedNs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its power state is read; reading a measurement would power the card up."""
    folder = radeon(tree)
    tree.write(f"{folder}/power/runtime_status", "active\n")
    backend = opened(tree, clock)
    backend.sample()
    tree.write(f"{folder}/power/runtime_status", "suspended\n")
    read: list[str] = []
    pread = os.pread

    def noting(fd: int, count: int, offset: int) -> bytes:
        read.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        return pread(fd, count, offset)

    monkeypatch.setattr(os, "pread", noting)
    clock.advance(1)
    reading = only(backend.sample())
    assert reading.is_up
    assert read == ["runtime_status"]
    assert "gpu_device_utilization" not in reading.values
    assert "pcie_link_generation" not in reading.values
    assert reading.values["gpu_memory_total_bytes"] == 12 * GIB


def test_error_counters_are_read_every_ten_seconds(tree: DrmTree, clock: SteppedNs) -> None:
    folders = mi300x_eight(tree)
    backend = opened(tree, clock)
    assert backend.sample().readings[0].counters["ras_errors_corrected.umc"] == 0
    tree.write(f"{folders[0]}/ras/umc_err_count", "ue: 0\nce: 5\n")
    clock.advance(AmdCard.SLOW_EVERY_NS / 1e9 - 1)
    assert backend.sample().readings[0].counters["ras_errors_corrected.umc"] == 0
    clock.advance(1)
    assert backend.sample().readings[0].counters["ras_errors_corrected.umc"] == 5


def test_a_process_that_starts_ends_or_takes_another_gpu_shows(tree: DrmTree, clock: SteppedNs) -> None:
    mi300x_eight(tree)
    backend = opened(tree, clock)

    def users() -> dict[str, list[tuple[int, int | None]]]:
        return {
            reading.device: [(process.pid, process.used_memory_bytes) for process in reading.processes]
            for reading in backend.sample().readings
            if reading.processes
        }

    assert users() == {}
    kfd_process(tree, 77, {2000: GIB, 2001: 0})
    kfd_process(tree, 78, {2000: 3 * GIB})
    clock.advance(1)
    assert users() == {"0": [(77, GIB), (78, 3 * GIB)]}
    kfd_process(tree, 77, {2000: 2 * GIB, 2001: 5 * GIB})
    clock.advance(1)
    assert users() == {"0": [(77, 2 * GIB), (78, 3 * GIB)]}
    tree.remove("sys/class/kfd/kfd/proc/78")
    clock.advance(KfdProcesses.FIRST_WAIT_NS / 1e9)
    assert users() == {"0": [(77, 2 * GIB)], "1": [(77, 5 * GIB)]}
    kfd_process(tree, 77, {2000: 0, 2001: 0})
    clock.advance(1)
    assert users() == {}


def test_a_link_whose_counter_went_down_gives_no_sum(tree: DrmTree, clock: SteppedNs) -> None:
    kfd_host(tree)
    folder = mi300x(tree, 0, 0x0C)
    backend = opened(tree, clock)
    backend.sample()
    clock.advance(1)
    tree.write(f"{folder}/gpu_metrics", mi300_table(2, xgmi_read_data_acc=[0xFFFFFFFFFFFFFFFF, 5] + [4_000_000] * 6))
    values = only(backend.sample()).values
    assert "nvlink_rx_bytes" not in values
    assert values["nvlink_tx_bytes"] == 7 * 1_000_000 * 1024


def test_energy_of_a_chip_whose_unit_is_not_known_is_not_given(tree: DrmTree, clock: SteppedNs) -> None:
    folder = radeon(tree)
    tree.write(f"{folder}/gpu_metrics", table((1, 3), {"energy_accumulator": 5, "temperature_mem": 60}))
    reading = only(opened(tree, clock).sample())
    assert "gpu_energy_joules" not in reading.counters
    # What has no file of its own comes from the table.
    assert reading.values["gpu_memory_temperature_celsius"] == 60


def test_replays_are_counted_by_the_file_where_there_is_one(tree: DrmTree, clock: SteppedNs) -> None:
    """The table counts from another beginning: when the file fails for a round, it must not step in."""
    kfd_host(tree)
    folder = mi300x(tree, 0, 0x0C)
    tree.write(f"{folder}/pcie_replay_count", "3\n")
    backend = opened(tree, clock)
    assert only(backend.sample()).counters["pcie_replays"] == 3
    tree.write(f"{folder}/pcie_replay_count", "N/A\n")
    clock.advance(10)
    assert "pcie_replays" not in only(backend.sample()).counters


def test_a_unique_id_of_zeros_is_none(tree: DrmTree, clock: SteppedNs) -> None:
    folder = radeon(tree)
    tree.write(f"{folder}/unique_id", "0000000000000000\n")
    assert only(opened(tree, clock).sample()).uuid == ""


def test_a_device_that_cannot_be_looked_at_costs_no_other(
    tree: DrmTree, clock: SteppedNs, monkeypatch: pytest.MonkeyPatch
) -> None:
    mi300x_eight(tree)
    refresh = AmdCard.refresh
    seen: list[AmdCard] = []

    def failing(card: AmdCard) -> None:
        seen.append(card)
        if len(seen) == 2:
            raise ValueError("nobody expected this")
        refresh(card)

    monkeypatch.setattr(AmdCard, "refresh", failing)
    backend = opened(tree, clock)
    sample = backend.sample()
    assert (sample.seen, sample.readings[1].error) == (7, "ValueError: nobody expected this")
    clock.advance(31)
    backend.sample()
    assert backend.sample().seen == 8


def test_a_table_of_a_newer_driver_is_said_and_costs_only_itself(tree: DrmTree, clock: SteppedNs) -> None:
    folder = radeon(tree)
    tree.write(f"{folder}/gpu_metrics", b"\x08\x00\x01\x09" + bytes(100))
    sample = opened(tree, clock).sample()
    assert only(sample).values["gpu_device_utilization"] == 7
    ((_, sentence),) = sample.notices
    assert "gpu_metrics of version 1.9 is not known, and amdsmi is not installed" in sentence


def test_without_a_card_the_backend_says_so(tree: DrmTree, clock: SteppedNs) -> None:
    with pytest.raises(SourceUnavailable, match="no AMD GPU with its driver"):
        opened(tree, clock)
    tree.pci("0000:00:03.0", 0x1002, 0x74A1, 0x120000)
    with pytest.raises(SourceUnavailable, match="load the amdgpu driver"):
        opened(tree, clock)


def test_a_card_that_was_given_to_a_virtual_machine_is_none_of_ours(tree: DrmTree, clock: SteppedNs) -> None:
    radeon(tree)
    tree.pci("0000:00:09.0", 0x1002, 0x74A1, 0x120000, "vfio-pci")
    assert opened(tree, clock).sample().expected == 1


def test_descriptors_are_closed_at_the_end(tree: DrmTree, clock: SteppedNs) -> None:
    mi300x_eight(tree)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    backend = opened(tree, clock)
    backend.sample()
    assert len(os.listdir("/proc/self/fd")) > before + 8 * 8
    backend.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_every_key_is_of_the_catalogue(tree: DrmTree, clock: SteppedNs) -> None:
    mi300x_eight(tree)
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
    kfd_host(tree)
    mi300x(tree, 0, 0x0C)
    kfd_node(tree, 1, 500, 0x0C00, render=128, xgmi=[], vram=192 * GIB)
    kfd_process(tree, 77, {500: GIB})
    roots = (tree.root / "sys/devices/pci0000:00/0000:00:00.1", tree.root / "sys/class/kfd")
    files = sorted(path for root in roots for path in root.rglob("*") if path.is_file() and "drm" not in path.parts)
    spoiled = files[file % len(files)]
    spoiled.write_bytes(content)
    try:
        if spoiled.name == "vendor":
            return  # without its maker's number it is no AMD GPU any more
        backend = opened(tree, clock)
        backend.sample()
        clock.advance(1)
        assert only(backend.sample()).is_up
        backend.close()
    finally:
        spoiled.unlink()


def test_it_holds_no_profiling_hardware(tree: DrmTree, clock: SteppedNs) -> None:
    radeon(tree)
    backend = opened(tree, clock)
    assert not backend.pause_profiling()
    assert not backend.resume_profiling()
