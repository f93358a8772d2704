"""Where the fields of the amdgpu `gpu_metrics` tables stand (drivers/gpu/drm/amd/include/kgd_pp_interface.h of Linux 6.18).

The revisions do not extend one another, so each has its own offsets; they follow from natural alignment. Only fields that this product
uses are listed. Format codes are those of `struct`: H, I, Q are 16, 32 and 64 bits.
"""

import msgspec


class Field(msgspec.Struct, frozen=True):
    """One number, or `count` of them in a row."""

    offset: int
    code: str
    count: int = 1


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """One revision. `partition_offset` and `partition_bytes` say where the blocks of partitions are, 0 where there are none."""

    size: int
    fields: dict[str, Field]
    partition_offset: int = 0
    partition_bytes: int = 0


PARTITIONS = 8
# In each block: how busy each compute die of the partition is, in percent.
PARTITION_BUSY = Field(0, "I", 8)


def _first(shift: int) -> dict[str, Field]:
    """Fields of v1.0 (shift 12: the clock counter comes first) to v1.3 up to the power."""
    return {
        "hotspot_celsius": Field(6 + shift, "H"),
        "memory_celsius": Field(8 + shift, "H"),
        "gfx_activity_pct": Field(16 + shift, "H"),
        "memory_activity_pct": Field(18 + shift, "H"),
        "power_watts": Field(22 + shift, "H"),
    }


_V1_1 = {**_first(0), "energy": Field(24, "Q"), "gfx_clock_mhz": Field(54, "H"), "memory_clock_mhz": Field(58, "H")}
_SERVER = {
    "hotspot_celsius": Field(4, "H"),
    "memory_celsius": Field(6, "H"),
    "power_watts": Field(10, "H"),
    "gfx_activity_pct": Field(12, "H"),
    "memory_activity_pct": Field(14, "H"),
}


def _server(energy: int, replays: int, xgmi: int, clocks: int, memory_clock: int) -> dict[str, Field]:
    """Fields of v1.4 and later, the tables of server chips."""
    return {
        **_SERVER,
        "energy": Field(energy, "Q"),
        "pcie_replays": Field(replays, "Q"),
        "xgmi_read_kb": Field(xgmi, "Q", 8),
        "xgmi_write_kb": Field(xgmi + 64, "Q", 8),
        "gfx_clocks_mhz": Field(clocks, "H", 8),
        "memory_clock_mhz": Field(memory_clock, "H"),
    }


def _residencies(start: int) -> dict[str, Field]:
    """Counts of firmware cycles, and of those in which each limit held the clocks back."""
    names = ("cycles", "prochot_cycles", "power_cycles", "thermal_cycles", "vr_thermal_cycles", "hbm_thermal_cycles")
    return {name: Field(start + 4 * place, "I") for place, name in enumerate(names)}


_V1_7 = {
    **_server(energy=24, replays=112, xgmi=136, clocks=296, memory_clock=336),
    **_residencies(40),
    "xgmi_link_status": Field(264, "H", 8),
    "partitions": Field(338, "H"),
}
_APU_THROTTLE = {"throttle_bits": Field(120, "Q")}

LAYOUTS: dict[tuple[int, int], Layout] = {
    (1, 0): Layout(size=80, fields=_first(12)),
    (1, 1): Layout(size=96, fields=_V1_1),
    (1, 2): Layout(size=104, fields=_V1_1),
    (1, 3): Layout(size=120, fields={**_V1_1, "throttle_bits": Field(112, "Q")}),
    (1, 4): Layout(size=288, fields=_server(energy=24, replays=88, xgmi=104, clocks=240, memory_clock=280)),
    (1, 5): Layout(size=360, fields=_server(energy=88, replays=152, xgmi=176, clocks=312, memory_clock=352)),
    (1, 6): Layout(
        size=1664,
        fields={
            **_server(energy=16, replays=104, xgmi=128, clocks=264, memory_clock=304),
            **_residencies(32),
            "partitions": Field(306, "H"),
        },
        partition_offset=312,
        partition_bytes=168,
    ),
    (1, 7): Layout(size=2208, fields=_V1_7, partition_offset=344, partition_bytes=232),
    (1, 8): Layout(size=3872, fields=_V1_7, partition_offset=344, partition_bytes=440),
    # Processors with graphics; their other fields have files of their own.
    (2, 2): Layout(size=128, fields=_APU_THROTTLE),
    (2, 3): Layout(size=152, fields=_APU_THROTTLE),
    (2, 4): Layout(size=168, fields=_APU_THROTTLE),
}
# Without a field that this product uses, so nothing is missed.
EMPTY_REVISIONS = frozenset({(2, 0), (2, 1), (3, 0)})
