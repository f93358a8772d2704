"""`gpu_metrics` tables of amdgpu as the kernel makes them: field after field as in its header, laid out by the C rules of ctypes."""

import ctypes
from collections.abc import Mapping
from typing import Any

_U16, _U32, _U64 = ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
Fields = list[tuple[str, type]]


def _row(kind: Any, count: int) -> type:
    """An array type."""
    row: type = kind * count
    return row


def _fields(text: str) -> Fields:
    """`2:name` is a uint16_t; `8:name*8` an array of uint64_t."""
    kinds = {"1": ctypes.c_uint8, "2": _U16, "4": _U32, "8": _U64}
    found: Fields = []
    for word in text.split():
        size, _, rest = word.partition(":")
        name, star, count = rest.partition("*")
        kind = kinds[size]
        found.append((name, _row(kind, int(count)) if star else kind))
    return found


_HEADER = "2:structure_size 1:format_revision 1:content_revision "
_TEMPERATURES = (
    "2:temperature_edge 2:temperature_hotspot 2:temperature_mem 2:temperature_vrgfx 2:temperature_vrsoc 2:temperature_vrmem "
    "2:average_gfx_activity 2:average_umc_activity 2:average_mm_activity 2:average_socket_power "
)
_CLOCKS = (
    "2:average_gfxclk 2:average_socclk 2:average_uclk 2:average_vclk0 2:average_dclk0 2:average_vclk1 2:average_dclk1 "
    "2:current_gfxclk 2:current_socclk 2:current_uclk 2:current_vclk0 2:current_dclk0 2:current_vclk1 2:current_dclk1 "
    "4:throttle_status 2:current_fan_speed "
)
_V1_1 = (
    _HEADER
    + _TEMPERATURES
    + "8:energy_accumulator 8:system_clock_counter "
    + _CLOCKS
    + "2:pcie_link_width 2:pcie_link_speed "
    "2:padding 4:gfx_activity_acc 4:mem_activity_acc 2:temperature_hbm*4 "
)
_SERVER = (
    _HEADER + "2:temperature_hotspot 2:temperature_mem 2:temperature_vrsoc 2:curr_socket_power "
    "2:average_gfx_activity 2:average_umc_activity "
)
_LINKS = (
    "4:gfxclk_lock_status 2:pcie_link_width 2:pcie_link_speed 2:xgmi_link_width 2:xgmi_link_speed 4:gfx_activity_acc "
    "4:mem_activity_acc 8:pcie_bandwidth_acc 8:pcie_bandwidth_inst 8:pcie_l0_to_recov_count_acc 8:pcie_replay_count_acc "
    "8:pcie_replay_rover_count_acc "
)
_NAKS = "4:pcie_nak_sent_count_acc 4:pcie_nak_rcvd_count_acc "
_XGMI = "8:xgmi_read_data_acc*8 8:xgmi_write_data_acc*8 "
_CURRENT = (
    "8:firmware_timestamp 2:current_gfxclk*8 2:current_socclk*4 2:current_vclk0*4 2:current_dclk0*4 2:current_uclk "
)
_RESIDENCIES = (
    "4:accumulation_counter 4:prochot_residency_acc 4:ppt_residency_acc 4:socket_thm_residency_acc 4:vr_thm_residency_acc "
    "4:hbm_thm_residency_acc "
)
_APU = (
    _HEADER + "2:temperature_gfx 2:temperature_soc 2:temperature_core*8 2:temperature_l3*2 2:average_gfx_activity "
    "2:average_mm_activity 8:system_clock_counter 2:average_socket_power 2:average_cpu_power 2:average_soc_power "
    "2:average_gfx_power 2:average_core_power*8 2:average_clocks*6 2:current_clocks*6 2:current_coreclk*8 2:current_l3clk*2 "
    "4:throttle_status 2:fan_pwm 2:padding*3 8:indep_throttle_status "
)
_ENERGY = "8:energy_accumulator 8:system_clock_counter "
_TEXTS = {
    (1, 0): _HEADER + "8:system_clock_counter " + _TEMPERATURES + "4:energy_accumulator " + _CLOCKS + "1:width 1:speed",
    (1, 1): _V1_1,
    (1, 2): _V1_1 + "8:firmware_timestamp",
    (1, 3): _V1_1 + "8:firmware_timestamp 2:voltages*3 2:padding1 8:indep_throttle_status",
    (1, 4): _SERVER + "2:vcn_activity*4 " + _ENERGY + "4:throttle_status " + _LINKS + _XGMI + _CURRENT + "2:padding",
    (1, 5): _SERVER + "2:vcn_activity*4 2:jpeg_activity*32 " + _ENERGY + "4:throttle_status " + _LINKS + _NAKS + _XGMI
    + _CURRENT + "2:padding",
    (1, 6): _SERVER + _ENERGY + _RESIDENCIES + _LINKS + _NAKS + _XGMI + _CURRENT + "2:num_partition",
    (1, 7): _SERVER + "8:mem_max_bandwidth " + _ENERGY + _RESIDENCIES + _LINKS + _NAKS + _XGMI
    + "2:xgmi_link_status*8 2:padding " + _CURRENT + "2:num_partition",
    (2, 2): _APU,
}  # fmt: skip
_TEXTS[1, 8] = _TEXTS[1, 7]
_PARTITION_TEXTS = {
    (1, 6): "4:gfx_busy_inst*8 2:jpeg_busy*32 2:vcn_busy*4 8:gfx_busy_acc*8",
    (1, 7): "4:gfx_busy_inst*8 2:jpeg_busy*32 2:vcn_busy*4 8:gfx_busy_acc*8 8:gfx_below_host_limit_acc*8",
    (1, 8): "4:gfx_busy_inst*8 2:jpeg_busy*40 2:vcn_busy*4 8:gfx_busy_acc*8 8:ppt*8 8:thm*8 8:low*8 8:total*8",
}
REVISIONS = tuple(_TEXTS)


def _structure(revision: tuple[int, int]) -> type[ctypes.Structure]:
    fields = _fields(_TEXTS[revision])
    if revision in _PARTITION_TEXTS:
        partition: type[ctypes.Structure] = type(
            "partition", (ctypes.Structure,), {"_fields_": _fields(_PARTITION_TEXTS[revision])}
        )
        fields += [("xcp_stats", _row(partition, 8)), ("pcie_lc_perf_other_end_recovery", _U32)]
    return type("table", (ctypes.Structure,), {"_fields_": fields})


_STRUCTURES = {revision: _structure(revision) for revision in _TEXTS}


def table(
    revision: tuple[int, int],
    values: Mapping[str, int | list[int]],
    partitions: Mapping[int, list[int]] = {},
) -> bytes:
    """A table in which every field but `values` is blank. `partitions` gives how busy the dies of each partition are."""
    made = _STRUCTURES[revision]()
    size = ctypes.sizeof(made)
    ctypes.memset(ctypes.byref(made), 0xFF, size)
    header = {"structure_size": size, "format_revision": revision[0], "content_revision": revision[1]}
    for name, value in {**header, **values}.items():
        if isinstance(value, list):
            row = getattr(made, name)
            for place, number in enumerate(value):
                row[place] = number
        else:
            setattr(made, name, value)
    for place, dies in partitions.items():
        for die, busy_pct in enumerate(dies):
            made.xcp_stats[place].gfx_busy_inst[die] = busy_pct
    return bytes(made)
