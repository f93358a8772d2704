"""The binary table of amdgpu's firmware, and its text files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.amdgpu.attribute_texts import BlockErrors, ClockLevels, block_errors, clock_levels, retired_pages
from dynolog.sources.amdgpu.gpu_metrics import MetricsTable, UnknownRevision, parse
from dynolog.sources.amdgpu.metrics_layout import LAYOUTS
from dynolog.sources.amdgpu.throttling import ThrottleTime, active
from fakes.amdgpu_tables import REVISIONS, table

# The kernel's names of what we read, where the first revision has them. Values differ in every byte, so a wrong offset shows.
OF_THE_FIRST = {
    "temperature_hotspot": ("hotspot_celsius", 0x0102),
    "temperature_mem": ("memory_celsius", 0x0304),
    "average_gfx_activity": ("gfx_activity_pct", 0x0506),
    "average_umc_activity": ("memory_activity_pct", 0x0708),
    "average_socket_power": ("power_watts", 0x090A),
}
OF_V1_1 = {
    **OF_THE_FIRST,
    "energy_accumulator": ("energy", 0x1112131415161718),
    "current_gfxclk": ("gfx_clock_mhz", 0x2122),
    "current_uclk": ("memory_clock_mhz", 0x2324),
}
OF_SERVERS = {
    "temperature_hotspot": ("hotspot_celsius", 0x0102),
    "temperature_mem": ("memory_celsius", 0x0304),
    "curr_socket_power": ("power_watts", 0x0506),
    "average_gfx_activity": ("gfx_activity_pct", 0x0708),
    "average_umc_activity": ("memory_activity_pct", 0x090A),
    "energy_accumulator": ("energy", 0x1112131415161718),
    "pcie_replay_count_acc": ("pcie_replays", 0x2122232425262728),
    "current_uclk": ("memory_clock_mhz", 0x3132),
}
OF_V1_6 = {
    **OF_SERVERS,
    "accumulation_counter": ("cycles", 0x41424344),
    "prochot_residency_acc": ("prochot_cycles", 0x45464748),
    "ppt_residency_acc": ("power_cycles", 0x494A4B4C),
    "socket_thm_residency_acc": ("thermal_cycles", 0x4D4E4F50),
    "vr_thm_residency_acc": ("vr_thermal_cycles", 0x51525354),
    "hbm_thm_residency_acc": ("hbm_thermal_cycles", 0x55565758),
    "num_partition": ("partitions", 2),
}
THROTTLE = {"indep_throttle_status": ("throttle_bits", 0x6162636465666768)}
NUMBERS = {
    (1, 0): OF_THE_FIRST,
    (1, 1): OF_V1_1,
    (1, 2): OF_V1_1,
    (1, 3): {**OF_V1_1, **THROTTLE},
    (1, 4): OF_SERVERS,
    (1, 5): OF_SERVERS,
    (1, 6): OF_V1_6,
    (1, 7): OF_V1_6,
    (1, 8): OF_V1_6,
    (2, 2): THROTTLE,
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_number_is_read_where_the_c_compiler_puts_it(revision: tuple[int, int]) -> None:
    known = NUMBERS[revision]
    made = table(revision, {theirs: value for theirs, (_, value) in known.items()})
    assert len(made) == LAYOUTS[revision].size
    assert parse(made).numbers == dict(known.values())


@pytest.mark.parametrize("revision", [(1, 4), (1, 5), (1, 6), (1, 7), (1, 8)])
def test_links_and_dies_are_rows_with_blanks_as_none(revision: tuple[int, int]) -> None:
    made = table(
        revision,
        {"xgmi_read_data_acc": [5, 6], "xgmi_write_data_acc": [7], "current_gfxclk": [2100, 2000], "num_partition": 2}
        if revision >= (1, 6)
        else {"xgmi_read_data_acc": [5, 6], "xgmi_write_data_acc": [7], "current_gfxclk": [2100, 2000]},
        {0: [10, 20, 60], 1: [100]} if revision >= (1, 6) else {},
    )
    found = parse(made)
    assert found.rows["xgmi_read_kb"] == (5, 6, None, None, None, None, None, None)
    assert found.rows["xgmi_write_kb"] == (7, None, None, None, None, None, None, None)
    assert found.rows["gfx_clocks_mhz"] == (2100, 2000, None, None, None, None, None, None)
    assert found.partition_busy_pct == ((30.0, 100.0) if revision >= (1, 6) else ())


def test_the_state_of_xgmi_links_is_there_from_v1_7_on() -> None:
    assert parse(table((1, 7), {"xgmi_link_status": [1, 0, 2]})).rows["xgmi_link_status"][:4] == (1, 0, 2, None)
    assert "xgmi_link_status" not in parse(table((1, 6), {})).rows


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_blank_table_has_no_number(revision: tuple[int, int]) -> None:
    """B02 of another maker: all bits set is no sample."""
    found = parse(table(revision, {}))
    assert found.numbers == {}
    assert all(value is None for row in found.rows.values() for value in row)


def test_a_table_of_a_newer_driver_is_named() -> None:
    with pytest.raises(UnknownRevision, match=r"gpu_metrics of version 1\.9 is not known") as caught:
        parse(b"\x08\x00\x01\x09" + bytes(60))
    assert caught.value.revision == (1, 9)


@pytest.mark.parametrize("cut", [0, 3, 4, 119])
def test_a_cut_table_gives_nothing(cut: int) -> None:
    with pytest.raises(ValueError, match=r"cut|bytes"):
        parse(table((1, 3), {"temperature_hotspot": 50})[:cut])


def test_a_table_that_says_a_smaller_size_than_its_revision_has_gives_nothing() -> None:
    made = bytearray(table((1, 3), {}))
    made[0:2] = (96).to_bytes(2, "little")
    with pytest.raises(ValueError, match="96 bytes, not 120"):
        parse(bytes(made))


@given(st.binary(max_size=64), st.sampled_from([*REVISIONS, (2, 1), (1, 9), (7, 7)]), st.binary(max_size=4000))
def test_any_bytes_parse_or_raise_valueerror(start: bytes, revision: tuple[int, int], rest: bytes) -> None:
    for data in (start, (4000).to_bytes(2, "little") + bytes(revision) + rest):
        try:
            found = parse(data)
        except ValueError:
            continue
        assert all(0 <= value < 1 << 64 for value in found.numbers.values())
        assert all(share is None or 0 <= share <= 100 for share in found.partition_busy_pct)


def test_levels_of_a_clock() -> None:
    assert clock_levels(b"0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n") == ClockLevels(800, 1700)
    assert clock_levels(b"S: 19Mhz *\n0: 615Mhz \n1: 888Mhz \n2: 1000Mhz \n") == ClockLevels(19, 1000)
    assert clock_levels(b"0: 500Mhz\n") == ClockLevels(None, 500)
    assert clock_levels(b"") == ClockLevels()
    # A line that is no level costs only itself.
    assert clock_levels(b"garbage *\n1: 800Mhz *\n: 9Mhz *\n") == ClockLevels(800, 800)


def test_errors_of_a_block() -> None:
    assert block_errors(b"ue: 1\nce: 14\n") == BlockErrors(corrected=14, uncorrected=1)
    assert block_errors(b"ue: 1\nce: 14\nde: 3\n") == BlockErrors(corrected=14, uncorrected=1)
    assert block_errors(b"ce: 14\n") == BlockErrors(corrected=14)
    assert block_errors(b"Query currently inaccessible\n") == BlockErrors()
    assert block_errors(b"ue: -1\nce: x\n") == BlockErrors()


def test_only_pages_that_are_out_of_use_count() -> None:
    assert retired_pages(b"0x00000a01 : 0x00001000 : R\n0x00000a02 : 0x00001000 : P\n0x0a03 : 0x1000 : R\n") == 2
    assert retired_pages(b"\n") == 0


@given(st.binary(max_size=200))
def test_any_text_file_is_read_without_error(data: bytes) -> None:
    levels = clock_levels(data)
    assert (levels.max_mhz or 0) >= (levels.current_mhz or 0)
    block_errors(data)
    assert retired_pages(data) >= 0


def test_throttle_bits_are_told_by_kind_of_reason() -> None:
    values = active(1 << 2 | 1 << 34)
    assert values["gpu_clock_event_reasons"] == 1 << 2 | 1 << 34
    held = {key.partition(".")[2] for key, value in values.items() if key.startswith("gpu_throttle_active") and value}
    assert held == {"power", "hbm_thermal"}
    assert active(0)["gpu_throttle_active.power"] == 0
    assert active(1 << 46)["gpu_throttle_active.prochot"] == 1


def _cycles(cycles: int, power: int, thermal: int) -> MetricsTable:
    return parse(
        table((1, 6), {"accumulation_counter": cycles, "ppt_residency_acc": power, "socket_thm_residency_acc": thermal})
    )


def test_throttle_time_is_the_share_of_cycles_of_the_time_between_tables() -> None:
    time = ThrottleTime()
    assert time.add(_cycles(1000, 10, 0), 0) == {"gpu_throttle_ms.power": 0, "gpu_throttle_ms.thermal": 0}
    # 250 of 1000 cycles in 2 s.
    assert time.add(_cycles(2000, 260, 0), 2_000_000_000) == {
        "gpu_throttle_ms.power": 500,
        "gpu_throttle_ms.thermal": 0,
    }
    # The counters of 32 bits wrap: from 2^32 - 100 to 300 is 400 cycles, a quarter of them thermal.
    time.forget()
    time.add(_cycles((1 << 32) - 100, 260, 50), 4_000_000_000)
    assert time.add(_cycles(300, 260, 150), 5_000_000_000) == {
        "gpu_throttle_ms.power": 500,
        "gpu_throttle_ms.thermal": 250,
    }


def test_a_firmware_that_started_anew_adds_no_throttle_time() -> None:
    time = ThrottleTime()
    time.add(_cycles(5000, 4000, 0), 0)
    assert time.add(_cycles(100, 10, 0), 1_000_000_000)["gpu_throttle_ms.power"] == 0
