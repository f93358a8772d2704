"""What the library says, and what becomes of it: each value against a number worked out by hand."""

from collections.abc import Callable

import pytest

from dynolog.model.gpu import ProfilingState
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Catalogue
from fakes.nvml.backend_process import BackendProcess

Start = Callable[..., BackendProcess]
MIB = 1 << 20
GIB = 1 << 30

SAID: dict[str, object] = {
    "gpu.*.utilization": 87,
    "gpu.*.memory_utilization": 41,
    "gpu.*.encoder": 3,
    "gpu.*.decoder": 4,
    "gpu.*.clock.1": 1755,
    "gpu.*.clock.2": 2619,
    "gpu.*.max_clock.1": 1980,
    "gpu.*.max_clock.2": 2620,
    "gpu.*.reasons": 4,
    "gpu.*.violation.0": 2_500_000,
    "gpu.*.violation.11": 7_000_000,
    "gpu.*.field.186": 421_500,
    "gpu.*.power_usage": 399_000,
    "gpu.*.power_limit": 650_000,
    "gpu.*.power_limit_max": 700_000,
    "gpu.*.field.83": 123_456_789,
    "gpu.*.temperature.0": 66,
    "gpu.*.field.82": 78,
    "gpu.*.threshold.1": 89,
    "gpu.*.fan": 35,
    "gpu.*.memory_total": 80 * GIB,
    "gpu.*.memory_reserved": GIB,
    "gpu.*.memory_used": 30 * GIB,
    "gpu.*.pcie_generation": 4,
    "gpu.*.pcie_generation_max": 5,
    "gpu.*.pcie_width": 8,
    "gpu.*.pcie_width_max": 16,
    "gpu.*.field.94": 11,
    "gpu.*.field.3": 21,
    "gpu.*.field.4": 1,
    "gpu.*.field.5": 300,
    "gpu.*.field.6": 2,
    "gpu.*.field.29": 5,
    "gpu.*.field.30": 2,
    "gpu.*.field.142": 8,
    "gpu.*.field.143": 1,
    "gpu.*.field.144": 1,
    "gpu.*.field.145": 0,
    "gpu.*.field.165": 1,
    "gpu.*.field.163": 70,
    "gpu.*.field.161": 71,
    "gpu.*.field.162": 72,
    "gpu.*.field.165.1": 0,
    "gpu.*.field.163.1": 80,
    "gpu.*.field.161.1": 81,
    "gpu.*.field.162.1": 82,
    "gpu.*.compute": f"4242:{3 * GIB}",
    "gpu.*.gpm.1": 90,
    "gpu.*.gpm.2": 75.5,
    "gpu.*.gpm.3": 31.25,
    "gpu.*.gpm.5": 62,
    "gpu.*.gpm.10": 44,
    "gpu.*.gpm.11": 1,
    "gpu.*.gpm.12": 2,
    "gpu.*.gpm.13": 3,
    "gpu.*.gpm.20": 100,
    "gpu.*.gpm.21": 200,
    "gpu.*.gpm.60": 300,
    "gpu.*.gpm.61": 400,
}
GAUGES = {
    "gpu_device_utilization": 87,
    "gpu_memory_utilization": 41,
    "gpu_encoder_utilization": 3,
    "gpu_decoder_utilization": 4,
    "gpu_frequency_mhz": 1755,
    "gpu_memory_frequency_mhz": 2619,
    "gpu_frequency_max_mhz": 1980,
    "gpu_memory_frequency_max_mhz": 2620,
    "gpu_clock_event_reasons": 4,
    "gpu_power_draw": 421.5,
    "gpu_power_limit": 650,
    "gpu_power_limit_max": 700,
    "gpu_temperature_celsius": 66,
    "gpu_memory_temperature_celsius": 78,
    "gpu_temperature_slowdown_celsius": 89,
    "gpu_fan_speed": 35,
    "gpu_memory_total_bytes": 80 * GIB,
    "gpu_memory_reserved_bytes": GIB,
    "gpu_memory_used_bytes": 30 * GIB,
    "gpu_memory_free_bytes": 49 * GIB,
    "pcie_link_generation": 4,
    "pcie_link_generation_max": 5,
    "pcie_link_width": 8,
    "pcie_link_width_max": 16,
    "ecc_corrected_errors_lifetime": 300,
    "ecc_uncorrected_errors_lifetime": 2,
    "retired_pages": 7,
    "remapped_rows_corrected": 8,
    "remapped_rows_uncorrected": 1,
    "row_remap_pending": 1,
    "row_remap_failure": 0,
    "nvlink_is_up.0": 1,
    "nvlink_is_up.1": 0,
    "gpu_processes": 1,
}
ACTIVITY = {
    "graphics_engine_active_ratio": 0.9,
    "sm_active_ratio": 0.755,
    "sm_occupancy": 0.3125,
    "tensorcore_active": 0.62,
    "hbm_mem_bw_util": 0.44,
    "fp64_active": 0.01,
    "fp32_active": 0.02,
    "fp16_active": 0.03,
    "pcie_tx_bytes": 100 * MIB,
    "pcie_rx_bytes": 200 * MIB,
    "nvlink_rx_bytes": 300 * MIB,
    "nvlink_tx_bytes": 400 * MIB,
}
COUNTERS = {
    "gpu_throttle_ms.power": 2.5,
    "gpu_throttle_ms.base_clocks": 7,
    "gpu_throttle_ms.thermal": 0,
    "gpu_throttle_ms.sync_boost": 0,
    "gpu_throttle_ms.board_limit": 0,
    "gpu_throttle_ms.low_utilization": 0,
    "gpu_throttle_ms.reliability": 0,
    "gpu_throttle_ms.app_clocks": 0,
    "gpu_energy_joules": 123_456.789,
    "pcie_replays": 11,
    "ecc_corrected_errors": 21,
    "ecc_uncorrected_errors": 1,
    "nvlink_crc_errors.0": 70,
    "nvlink_replays.0": 71,
    "nvlink_recoveries.0": 72,
    "nvlink_crc_errors.1": 80,
    "nvlink_replays.1": 81,
    "nvlink_recoveries.1": 82,
}


def test_every_value_of_a_healthy_device(opened: Start) -> None:
    """All 64 of them, and no others; the means of GPM need two rounds."""
    backend = opened(SAID)
    first = backend.readings(0)["5"]
    assert first.values == pytest.approx(GAUGES)
    second = backend.sample(10)
    reading = second.readings[5]
    assert reading.values == pytest.approx(GAUGES | ACTIVITY)
    assert reading.counters == pytest.approx(COUNTERS)
    assert (reading.device, reading.uuid) == ("5", "GPU-00000000-0000-0000-0000-000000000005")
    assert (reading.name, reading.minor, reading.pci_bus_id) == ("NVIDIA H100 80GB HBM3", 5, "0000:15:00.0")
    assert [process.pid for process in reading.processes] == [4242]
    assert (second.expected, second.seen, second.profiling) == (8, 8, ProfilingState.ON)
    assert (second.driver_version, second.library_version) == ("550.90.07", "12.550.90.07")
    assert second.notices == ()
    assert backend.calls("nvmlDeviceGetPcieThroughput") == 0


def test_every_key_is_of_the_catalogue() -> None:
    """C06: names are the catalogue's, never what a driver of tomorrow calls a field; one that nothing declares reaches no exporter."""
    catalogue = Catalogue(GPU_METRICS)
    for key in (*GAUGES, *ACTIVITY, *COUNTERS, "xid_errors.31", "xid_last_seen_timestamp.31"):
        assert catalogue.resolve(key) is not None, key


def test_a_name_that_is_no_text_is_left_out(opened: Start) -> None:
    """Bytes that are not UTF-8, as a broken ROM gives them, cost the name."""
    sample = opened({"count": 2, "gpu.0.name": "NVIDIA \udcff\udcfe"}).sample(0)
    assert [reading.name for reading in sample.readings] == ["", "NVIDIA H100 80GB HBM3"]
    assert sample.seen == 2


def test_values_follow_the_device(opened: Start) -> None:
    """What changes is read anew each round, from the device that it is about."""
    backend = opened({})
    backend.sample(0)
    backend.script.set({"gpu.2.utilization": 55, "gpu.2.field.186": 100_000, "gpu.2.energy": 9000})
    readings = backend.readings(1)
    assert readings["2"].values["gpu_device_utilization"] == 55
    assert readings["2"].values["gpu_power_draw"] == 300  # the field was not there: asked again after five minutes
    assert readings["2"].counters["gpu_energy_joules"] == 9
    assert readings["1"].values["gpu_device_utilization"] == 0
    assert backend.readings(301)["2"].values["gpu_power_draw"] == 100


def test_limits_are_read_seldom(opened: Start) -> None:
    """What hardly changes costs no call each round, and is in every record."""
    backend = opened({"count": 1})
    backend.sample(0)
    backend.script.set({"gpu.0.power_limit": 400_000})
    for now_s in (10, 20, 299):
        assert backend.readings(now_s)["0"].values["gpu_power_limit"] == 700
    assert backend.calls("nvmlDeviceGetEnforcedPowerLimit") == 1
    assert backend.readings(300)["0"].values["gpu_power_limit"] == 400


def test_errors_are_read_every_ten_seconds(opened: Start) -> None:
    backend = opened({"count": 1, "gpu.0.field.3": 5})
    backend.sample(0)
    backend.script.set({"gpu.0.field.3": 9})
    assert backend.readings(9)["0"].counters["ecc_corrected_errors"] == 5
    assert backend.readings(10)["0"].counters["ecc_corrected_errors"] == 9


@pytest.mark.parametrize("sentinel", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF])
def test_not_available_is_no_value(opened: Start, sentinel: int) -> None:
    """C04: what nvidia-smi prints as N/A is missing, whatever it is about, and neither 4294967295 nor 0."""
    narrow = 0xFFFFFFFF
    wide = {"energy", "field.83", "reasons", "violation.0", "memory_total", "memory_used", "memory_reserved", "field.3"}
    names = {key.removeprefix("gpu.*.") for key in SAID} - {"compute", "fan"}
    names = {name for name in names if not name.startswith(("gpm", "field.16"))}
    said = {f"gpu.*.{name}": sentinel if name in wide or name.startswith("field") else narrow for name in names}
    backend = opened({"count": 1, **said, "gpu.*.memory_free": sentinel, "gpu.*.fan": 40})
    reading = backend.readings(0)["0"]
    assert reading.is_up
    links = {f"nvlink_is_up.{link}": 1 for link in range(18)}
    assert reading.values == {"gpu_fan_speed": 40, "gpu_processes": 0} | links
    assert set(reading.counters) == {
        f"gpu_throttle_ms.{reason}"
        for reason in ("thermal", "sync_boost", "board_limit", "low_utilization", "reliability", "app_clocks")
    }
    assert backend.sample(1).blank_values > 20


def test_unknown_error_of_one_value_costs_that_value(opened: Start) -> None:
    """C04: [Unknown Error] in one column; the value is back with the next round in which it is known."""
    backend = opened({"count": 1, "gpu.0.utilization": 50, "gpu.0.temperature.0": "!999"})
    reading = backend.readings(0)["0"]
    assert reading.is_up
    assert "gpu_temperature_celsius" not in reading.values
    assert reading.values["gpu_device_utilization"] == 50
    backend.script.set({"gpu.0.temperature.0": 61})
    assert backend.readings(1)["0"].values["gpu_temperature_celsius"] == 61


def test_what_a_device_does_not_have_is_not_asked_again_for_five_minutes(opened: Start) -> None:
    """C13: a card without a fan, without ECC, without encoder: each missing by itself."""
    backend = opened({"count": 1, "gpu.0.fan": "!3", "gpu.0.encoder": "!3"})
    for now_s in range(3):
        values = backend.readings(now_s)["0"].values
        assert not {"gpu_fan_speed", "gpu_encoder_utilization", "ecc_corrected_errors_lifetime"} & set(values)
        assert "gpu_decoder_utilization" in values
    assert backend.calls("nvmlDeviceGetFanSpeed") == 1
    backend.sample(300)
    assert backend.calls("nvmlDeviceGetFanSpeed") == 2


def test_power_is_the_average_where_there_is_no_instant_value(opened: Start) -> None:
    """C05: by several names; before Hopper's drivers only the averaged one."""
    backend = opened({"count": 2, "gpu.0.field.186": 421_500, "gpu.*.power_usage": 399_000})
    readings = backend.readings(0)
    assert (readings["0"].values["gpu_power_draw"], readings["1"].values["gpu_power_draw"]) == (421.5, 399)


def test_used_memory_is_without_what_the_driver_keeps(opened: Start) -> None:
    """C11: an idle device has used 0, and 912 MiB are reserved; also with a driver whose `used` includes them."""
    total, reserved = 80 * GIB, 912 * MIB
    backend = opened({"count": 2, "gpu.*.memory_reserved": reserved, "gpu.*.memory_used": 0})
    backend.script.set({"gpu.1.memory_used": reserved, "gpu.1.memory_free": total - reserved})
    for reading in backend.readings(0).values():
        assert reading.values["gpu_memory_used_bytes"] == 0
        assert reading.values["gpu_memory_reserved_bytes"] == reserved
        assert reading.values["gpu_memory_free_bytes"] == total - reserved


def test_old_memory_call_is_said_to_include_what_is_reserved(opened: Start) -> None:
    """C11: only version 1 is there: its `used` is given, and once said what is in it."""
    backend = opened(
        {"count": 1, "gpu.*.memory_reserved": 912 * MIB, "gpu.*.memory_used": 0},
        without=["nvmlDeviceGetMemoryInfo_v2"],
    )
    values = backend.readings(0)["0"].values
    assert values["gpu_memory_used_bytes"] == 912 * MIB
    assert "gpu_memory_reserved_bytes" not in values
    (notice,) = backend.sample(1).notices
    assert "gpu_memory_used_bytes includes what the driver keeps" in notice[1]


def test_links_before_hopper_are_read_by_their_own_ids(opened: Start) -> None:
    """CRC errors of flits and of data are one metric; links 0-5 and 6-11 have their ids apart."""
    said = {"field.32": 1, "field.39": 10, "field.46": 100, "field.53": 1000, "field.97": 2, "field.103": 20}
    backend = opened(
        {
            "count": 1,
            **{f"gpu.0.{name}": value for name, value in said.items()},
            "gpu.0.field.109": 200,
            "gpu.0.link_state.1": 0,
            "gpu.0.links": 8,
        }
    )
    reading = backend.readings(0)["0"]
    counters = {key: value for key, value in reading.counters.items() if key.startswith("nvlink")}
    assert counters == {
        "nvlink_crc_errors.0": 11,
        "nvlink_replays.0": 100,
        "nvlink_recoveries.0": 1000,
        "nvlink_crc_errors.7": 22,
        "nvlink_replays.7": 200,
    }
    up = {key: value for key, value in reading.values.items() if key.startswith("nvlink_is_up")}
    assert up == {f"nvlink_is_up.{link}": int(link != 1) for link in range(8)}


def test_a_sum_that_lacks_a_part_is_no_value(opened: Start) -> None:
    """A falling sum would be a reset, and the part's return would be errors that never were."""
    said: dict[str, object] = {"gpu.0.field.32": 1, "gpu.0.field.39": 10}
    backend = opened({"count": 1, **said})
    assert backend.readings(0)["0"].counters["nvlink_crc_errors.0"] == 11
    backend.script.set({"gpu.0.field.39": "!999"})
    assert "nvlink_crc_errors.0" not in backend.readings(10)["0"].counters
    backend.script.set(said)
    assert backend.readings(20)["0"].counters["nvlink_crc_errors.0"] == 11


def test_persistence_mode_that_is_off_is_said(opened: Start) -> None:
    """C14: each reading then wakes the driver up."""
    backend = opened({"count": 3, "gpu.1.persistence": 0})
    (notice,) = backend.sample(0).notices
    assert notice[0] == "nvml_persistence"
    assert "off on GPU 1:" in notice[1]
    assert "nvidia-smi -pm 1" in notice[1]


def test_one_session_serves_all_readings(opened: Start) -> None:
    """C14: NVML is initialised once, and nothing is asked twice within half a second."""
    backend = opened({"count": 1})
    for now_s in range(20):
        backend.sample(now_s)
    assert backend.calls("nvmlInitWithFlags") == 1
    asked = backend.calls("nvmlDeviceGetUtilizationRates")
    repeated = backend.sample(19.4)
    assert repeated.age_s == pytest.approx(0.4)
    assert backend.calls("nvmlDeviceGetUtilizationRates") == asked == 20


def test_nothing_holds_the_profiling_hardware(opened: Start) -> None:
    """GPM takes no lock: there is nothing to pause, and it goes on."""
    backend = opened(SAID)
    backend.sample(0)
    assert backend.ask("pause").number == 0
    assert backend.readings(1)["0"].values["sm_active_ratio"] == 0.755
    assert backend.ask("resume").number == 0
