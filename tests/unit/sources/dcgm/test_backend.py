"""What a healthy DCGM becomes: names, units, labels, instances, windows; the same with each major."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import ProfilingState
from dynolog.model.gpu_metrics import GPU_METRICS
from dynolog.model.metric import Catalogue, Kind
from dynolog.sources.dcgm import fields
from dynolog.sources.dcgm.backend import DcgmBackend
from dynolog.sources.dcgm.field_names import number_of
from dynolog.sources.gpu_backend import GpuBackend, GpuOptions
from fakes.dcgm.library import Rig, notices, of

# Names, units and ids of the public Dynolog, against what the fake engine says.
_ORIGINAL = {
    "gpu_frequency_mhz": 1980,
    "gpu_power_draw": 412.5,
    "gpu_memory_utilization": 43,
    "graphics_engine_active_ratio": 0.91,
    "sm_active_ratio": 0.82,
    "sm_occupancy": 0.33,
    "tensorcore_active": 0.44,
    "hbm_mem_bw_util": 0.55,
    "fp64_active": 0.06,
    "fp32_active": 0.07,
    "fp16_active": 0.08,
    "pcie_tx_bytes": 1_000_009,
    "pcie_rx_bytes": 1_000_010,
    "nvlink_tx_bytes": 1_000_011,
    "nvlink_rx_bytes": 1_000_012,
    "dcgm_error": 0,
}


def test_default_fields_have_the_names_and_values_of_the_original(rig: Rig) -> None:
    """Every default field of every GPU, and its labels."""
    sample = rig.backend().sample()
    assert (sample.expected, sample.seen, sample.blank_values) == (8, 8, 0)
    assert (sample.driver_version, sample.library_version[0]) == ("550.54.15", rig.library.name[-1])
    assert sample.profiling is ProfilingState.ON
    assert sample.notices == ()
    assert [reading.device for reading in sample.readings] == [str(gpu) for gpu in range(8)]
    for gpu in range(8):
        reading = of(sample, gpu)
        assert {key: reading.values.get(key) for key in _ORIGINAL} == _ORIGINAL
        assert reading.uuid == f"GPU-{gpu:08x}-0000-0000-0000-000000000000"
        assert (reading.name, reading.minor, reading.is_up) == ("FAKE H100 80GB", gpu, True)
        assert reading.pci_bus_id == f"00000000:{gpu + 1:02X}:00.0"


def test_health_comes_whatever_is_asked_for_and_in_the_units_of_the_catalogue(rig: Rig) -> None:
    reading = of(rig.backend("203").sample(), 0)
    assert reading.counters == {
        "pcie_replays": 3,
        "ecc_corrected_errors": 7,
        "ecc_uncorrected_errors": 1,
        "nvlink_crc_errors.0": 11 + 22,
        "nvlink_crc_errors.6": 1 + 1,
        "nvlink_replays.all": 6,
        "nvlink_recoveries.all": 8,
        "gpu_energy_joules": 5000.0,
        "gpu_throttle_ms.power": 2500.0,
        **{
            f"gpu_throttle_ms.{word}": 0.0
            for word in (
                *("thermal", "sync_boost", "board_limit", "low_utilization"),
                *("reliability", "app_clocks", "base_clocks"),
            )
        },
    }
    expected = {
        "gpu_device_utilization": 97,
        "gpu_memory_total_bytes": 81559 << 20,
        "gpu_memory_free_bytes": 60000 << 20,
        "gpu_memory_used_bytes": 21000 << 20,
        "gpu_memory_reserved_bytes": 559 << 20,
        "gpu_frequency_max_mhz": 1980,
        "gpu_memory_frequency_mhz": 2619,
        "gpu_memory_frequency_max_mhz": 2619,
        "gpu_temperature_celsius": 55,
        "gpu_memory_temperature_celsius": 60,
        "gpu_temperature_slowdown_celsius": 90,
        "gpu_power_limit": 650.0,
        "gpu_power_limit_max": 700.0,
        "pcie_link_generation": 4,
        "pcie_link_generation_max": 5,
        "pcie_link_width": 8,
        "pcie_link_width_max": 16,
        "retired_pages": 2 + 3,
        "remapped_rows_uncorrected": 4,
        "remapped_rows_corrected": 5,
        "row_remap_failure": 0,
        "row_remap_pending": 1,
        "ecc_corrected_errors_lifetime": 70,
        "ecc_uncorrected_errors_lifetime": 10,
        "gpu_clock_event_reasons": 0,
    }
    assert {key: reading.values.get(key) for key in expected} == expected
    assert "sm_active_ratio" not in reading.values
    assert not rig.script.calls("dcgmProfWatchFields")
    assert all("profiling=0" in call for call in rig.script.calls("dcgmWatchFields"))


def test_every_key_is_in_the_catalogue(rig: Rig) -> None:
    rig.script.say("xid 0 1700000005000000 31", "value 0 112 12")
    backend = rig.backend("314", "pstate", "53")
    sample = rig.next_sample(backend)
    catalogue = Catalogue((*GPU_METRICS, *sample.declared))
    reading = of(sample, 0)
    assert [key for key in (*reading.values, *reading.counters) if catalogue.resolve(key) is None] == []


def test_bits_become_words(rig: Rig) -> None:
    """Power cap (4) and hardware slowdown (8); idle (1) holds nothing back."""
    rig.script.say("value 0 112 13")
    values = of(rig.backend("203").sample(), 0).values
    words = {key.partition(".")[2]: value for key, value in values.items() if key.startswith("gpu_throttle_active.")}
    assert values["gpu_clock_event_reasons"] == 13
    assert {word for word, value in words.items() if value} == {"sw_power_cap", "hw_slowdown"}
    assert len(words) == 8


def test_any_field_is_described_by_dcgm_itself(rig: Rig) -> None:
    """By number, by tag, by the header's name; a structure or an unknown field is refused in words and costs only itself."""
    sample = rig.backend(
        "pstate", "314", "DCGM_FI_DEV_POWER_MGMT_LIMIT", "53", "62", "no_such", "65000", "99999"
    ).sample()
    reading = of(sample, 0)
    assert reading.values["dcgm_pstate"] == 0
    assert reading.values["dcgm_power_management_limit"] == 700.0
    assert reading.values["dcgm_serial_number"] == "1650522000000"
    assert reading.counters["dcgm_ecc_sbe_volatile_l1"] == 2
    declared = {metric.name: (metric.kind, metric.unit) for metric in sample.declared}
    assert declared == {
        "dcgm_pstate": (Kind.GAUGE, "1"),
        "dcgm_ecc_sbe_volatile_l1": (Kind.DELTA, "1"),
        "dcgm_power_management_limit": (Kind.GAUGE, "W"),
        "dcgm_serial_number": (Kind.LABEL, ""),
    }
    said = notices(sample)
    assert {key.removeprefix("dcgm_field_") for key in said} == {"62", "no_such", "65000", "99999"}
    assert "structure" in said["dcgm_field_62"]


def test_names_of_the_header() -> None:
    assert number_of("DCGM_FI_DEV_GPU_UTIL") == "203"
    assert number_of("dcgm_fi_prof_sm_active") == "1002"
    assert number_of("DCGM_FI_PROF_NVLINK_L17_RX_BYTES") == "1075"
    assert number_of("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS") == number_of("DCGM_FI_DEV_CLOCKS_EVENT_REASONS") == "112"
    assert [number_of(name) for name in ("gpu_utilization", "203", "DCGM_FI_NONSENSE")] == [
        *("gpu_utilization", "203", "DCGM_FI_NONSENSE")
    ]


def test_ids_of_links_and_counters_do_not_overlap() -> None:
    links = [field for field in fields.KNOWN.values() if field.key.startswith("nvlink_crc_errors.")]
    assert len(links) == 2 * 18 + 2
    assert {field.key.partition(".")[2] for field in links} == {*map(str, range(18)), "all"}
    assert not set(fields.FAST) & set(fields.SLOW)
    assert not any(fields.is_profiling(number) for number in (*fields.FAST, *fields.SLOW))


def test_slow_fields_are_read_seldom_and_kept_between(rig: Rig) -> None:
    backend = rig.backend("203", interval_s=1.0)
    assert of(backend.sample(), 0).values["retired_pages"] == 5
    rig.script.say("value * 390 100")
    assert of(rig.next_sample(backend, 1.0), 0).values["retired_pages"] == 5
    assert of(rig.next_sample(backend, 30.0), 0).values["retired_pages"] == 103


def test_a_sum_of_which_a_part_is_blank_is_not_given(rig: Rig) -> None:
    rig.script.say("value 0 391 blank", "value 1 391 not_supported")
    sample = rig.backend("203").sample()
    assert "retired_pages" not in of(sample, 0).values
    assert of(sample, 1).values["retired_pages"] == 2
    assert of(sample, 2).values["retired_pages"] == 5


def test_watches_have_the_interval_of_the_reads(rig: Rig) -> None:
    """B12: the window is ours: the period of every watch is that of its reads, and no sample count cuts it short."""
    rig.backend(interval_s=7.0).sample()
    calls = rig.script.calls("dcgmWatchFields") + rig.script.calls("dcgmProfWatchFields")
    assert len(calls) == 4
    assert {call.split("period=")[1].split()[0] for call in calls} == {"7000000", "30000000"}
    assert all("samples=0" in call for call in calls)


@pytest.mark.parametrize("interval_s", [1.0, 10.0, 60.0])
def test_a_profiling_value_is_of_the_last_interval_however_long_the_device_was_idle(
    rig: Rig, interval_s: float
) -> None:
    """B12: an hour of load after 17 idle hours is 0.959 in every interval of that hour, not 0.117."""
    backend = rig.backend(interval_s=interval_s)
    start_us = rig.script.now_us + 17 * 3600 * 1_000_000
    rig.script.say(f"busy * {start_us} {start_us + 3600 * 1_000_000} 0.959", "value * 203 0")
    assert of(rig.next_sample(backend, interval_s), 0).values["sm_active_ratio"] == 0.0
    rig.advance(17 * 3600)
    assert of(rig.next_sample(backend, 1800), 0).values["sm_active_ratio"] == pytest.approx(0.959)
    again = rig.backend(interval_s=interval_s)
    assert of(rig.next_sample(again, interval_s), 0).values["sm_active_ratio"] == pytest.approx(0.959)


def test_values_move_with_time_and_age_is_told(rig: Rig) -> None:
    rig.script.say(f"start {rig.script.now_us}", "series 3 155 10000000 100 200 300", "age 5 155 4000000")
    backend = rig.backend()
    seen = [of(backend.sample(), 3).values["gpu_power_draw"]]
    seen += [of(rig.next_sample(backend), 3).values["gpu_power_draw"] for _ in range(3)]
    assert seen == [100.0, 200.0, 300.0, 300.0]
    assert backend.sample().age_s == pytest.approx(4.0)


def test_mig_gives_a_record_for_each_gpu_and_instance(rig: Rig) -> None:
    """B11: 8 GPUs with two slices each are 16 instances; ids on each; no utilisation of a divided GPU."""
    for gpu in range(8):
        for part in range(2):
            entity = gpu * 2 + part
            rig.script.say(f"gi {gpu} {entity} {7 + part}", f"ci {entity} {100 + entity} 0")
    rig.script.say("value gi:5 1002 0.125", "value gi:5 252 4000", "value gi:4 1002 0.5")
    sample = rig.backend().sample()
    instances = [reading for reading in sample.readings if reading.gpu_instance_id is not None]
    assert len(sample.readings) == 8 + 16
    assert len({reading.identity for reading in sample.readings}) == 24
    assert (sample.expected, sample.seen) == (8, 8)
    instance = of(sample, 2, (8, 0))
    assert instance.values["sm_active_ratio"] == 0.125
    assert instance.values["gpu_memory_used_bytes"] == 4000 << 20
    assert instance.uuid == of(sample, 2).uuid
    for reading in (*instances, of(sample, 2)):
        assert "gpu_device_utilization" not in reading.values
        assert "gpu_memory_utilization" not in reading.values
    assert "sm_active_ratio" in of(sample, 2).values


def test_several_compute_instances_in_one_gpu_instance_have_records_of_their_own(rig: Rig) -> None:
    rig.script.say("gpus 1", "gi 0 1 3", "ci 1 10 0", "ci 1 11 1", "value ci:11 1002 0.75")
    sample = rig.backend().sample()
    assert [(one.gpu_instance_id, one.compute_instance_id) for one in sample.readings] == [
        *((None, None), (3, None), (3, 0), (3, 1))
    ]
    assert of(sample, 0, (3, 1)).values["sm_active_ratio"] == 0.75


def test_an_instance_made_later_is_seen(rig: Rig) -> None:
    backend = rig.backend()
    assert len(backend.sample().readings) == 8
    rig.script.say("gi 1 1 3")
    assert len(rig.next_sample(backend, 31).readings) == 9


def test_mig_switched_on_without_instances_has_no_utilisation(rig: Rig) -> None:
    """B11."""
    rig.script.say("value 0 67 1")
    sample = rig.backend().sample()
    assert "gpu_device_utilization" not in of(sample, 0).values
    assert of(sample, 1).values["gpu_device_utilization"] == 97


def test_engines_are_reached_as_the_address_says(rig: Rig) -> None:
    rig.backend("203", address="").sample()
    assert rig.script.calls("dcgmStartEmbedded") == ["1"]
    rig.backend("203", address="gpu-7:5556").sample()
    rig.backend("203", address="/run/dcgm.sock").sample()
    rig.engine_answers = True
    rig.backend("203", address="auto").sample()
    assert rig.script.calls("dcgmConnect_v2") == [
        "gpu-7:5556 unix=0 timeout=3000",
        "/run/dcgm.sock unix=1 timeout=3000",
        "localhost:5555 unix=0 timeout=3000",
    ]


def test_a_backend_is_what_the_daemon_expects() -> None:
    backend: GpuBackend = DcgmBackend(GpuOptions(backend="dcgm"))
    assert not backend.pause_profiling()
    assert not backend.resume_profiling()
    backend.close()
    with pytest.raises(SourceUnavailable, match="not open"):
        backend.sample()


@given(st.integers(0, (1 << 64) - 1))
def test_any_pattern_of_reasons_has_all_words(bits: int) -> None:
    words = fields.active_reasons(bits)
    assert len(words) == 8
    assert sum(words.values()) == (bits & 0x1FE).bit_count()
