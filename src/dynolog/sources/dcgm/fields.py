"""The fields of DCGM that this product knows (`dcgm_fields.h`), and under which names of the catalogue they go."""

from enum import Enum

import msgspec

from dynolog.model.metric import Kind

NAME, UUID, MINOR, PCI_BUS_ID, MIG_MODE, DRIVER_VERSION = 50, 54, 55, 57, 67, 1
CLOCK_REASONS, XID, GPU_UTILIZATION, COPY_UTILIZATION = 112, 230, 203, 204
GRAPHICS_ACTIVE, SM_ACTIVE = 1001, 1002
MEMORY = (250, 251, 252, 253)
_FIRST_PROFILING, _LAST_PROFILING = 1001, 1099
_MIB = 1 << 20
_LINKS = 18


class Role(Enum):
    """Where a value goes."""

    VALUE = 0  # ready for a record
    COUNTER = 1  # grows since the driver started; the reader makes deltas
    PROPERTY = 2  # what the device is; not a metric
    REASONS = 3  # a bit for each reason


class Field(msgspec.Struct, frozen=True):
    """A field: its key in a record, and what its raw value is multiplied by. Several fields with one key are added up."""

    id: int
    key: str
    role: Role = Role.VALUE
    factor: float = 1
    total_of: str = ""  # the sum of all links: only where the links themselves are not told


def is_profiling(field_id: int) -> bool:
    """Whether a field needs the profiling hardware, which only one user can hold."""
    return _FIRST_PROFILING <= field_id <= _LAST_PROFILING


_VALUES = {
    100: "gpu_frequency_mhz",
    101: "gpu_memory_frequency_mhz",
    113: "gpu_frequency_max_mhz",
    114: "gpu_memory_frequency_max_mhz",
    140: "gpu_memory_temperature_celsius",
    150: "gpu_temperature_celsius",
    155: "gpu_power_draw",
    158: "gpu_temperature_slowdown_celsius",
    162: "gpu_power_limit_max",
    164: "gpu_power_limit",
    191: "gpu_fan_speed",
    GPU_UTILIZATION: "gpu_device_utilization",
    COPY_UTILIZATION: "gpu_memory_utilization",
    206: "gpu_encoder_utilization",
    207: "gpu_decoder_utilization",
    235: "pcie_link_generation_max",
    236: "pcie_link_width_max",
    237: "pcie_link_generation",
    238: "pcie_link_width",
    312: "ecc_corrected_errors_lifetime",
    313: "ecc_uncorrected_errors_lifetime",
    390: "retired_pages",  # after single-bit errors
    391: "retired_pages",  # after double-bit errors
    393: "remapped_rows_uncorrected",
    394: "remapped_rows_corrected",
    395: "row_remap_failure",
    396: "row_remap_pending",
    1001: "graphics_engine_active_ratio",
    1002: "sm_active_ratio",
    1003: "sm_occupancy",
    1004: "tensorcore_active",
    1005: "hbm_mem_bw_util",
    1006: "fp64_active",
    1007: "fp32_active",
    1008: "fp16_active",
    1009: "pcie_tx_bytes",
    1010: "pcie_rx_bytes",
    1011: "nvlink_tx_bytes",
    1012: "nvlink_rx_bytes",
}
_MEMORY_KEYS = ("total", "free", "used", "reserved")
# Names as NVML's policies have them; nanoseconds.
_VIOLATIONS = {
    240: "power",
    241: "thermal",
    242: "sync_boost",
    243: "board_limit",
    244: "low_utilization",
    245: "reliability",
    246: "app_clocks",
    247: "base_clocks",
}
_COUNTERS = {202: "pcie_replays", 310: "ecc_corrected_errors", 311: "ecc_uncorrected_errors"}
# Ids of links 0-5, 6-11, 12-14, 15-17, and of the total; two kinds of CRC error make one metric.
_LINK_IDS = (
    ((400, 451, 406, 481), 409, "nvlink_crc_errors"),
    ((410, 457, 416, 484), 419, "nvlink_crc_errors"),
    ((420, 463, 426, 487), 429, "nvlink_replays"),
    ((430, 469, 436, 491), 439, "nvlink_recoveries"),
)
_LINK_BLOCKS = ((0, 6), (6, 12), (12, 15), (15, 18))
TOTAL = "all"


def _link_fields() -> list[Field]:
    fields = []
    for starts, total, key in _LINK_IDS:
        for start, (first, end) in zip(starts, _LINK_BLOCKS, strict=True):
            fields += [Field(start + link - first, f"{key}.{link}", Role.COUNTER) for link in range(first, end)]
        fields.append(Field(total, f"{key}.{TOTAL}", Role.COUNTER, total_of=key))
    return fields


_LINK_FIELDS = _link_fields()
OF_LINKS = frozenset(field.id for field in _LINK_FIELDS)
KNOWN: dict[int, Field] = {
    field.id: field
    for field in (
        *(Field(number, key) for number, key in _VALUES.items()),
        *(Field(250 + index, f"gpu_memory_{key}_bytes", factor=_MIB) for index, key in enumerate(_MEMORY_KEYS)),
        *(Field(number, key, Role.COUNTER) for number, key in _COUNTERS.items()),
        *(Field(number, f"gpu_throttle_ms.{key}", Role.COUNTER, 1e-6) for number, key in _VIOLATIONS.items()),
        *_LINK_FIELDS,
        Field(156, "gpu_energy_joules", Role.COUNTER, 1e-3),
        Field(CLOCK_REASONS, "gpu_clock_event_reasons", Role.REASONS),
        *(Field(number, "", Role.PROPERTY) for number in (NAME, UUID, MINOR, PCI_BUS_ID, MIG_MODE, DRIVER_VERSION)),
        Field(XID, "xid_errors", Role.PROPERTY),  # events, read with their times
    )
}

# Watched whatever --dcgm_fields says, where the device has them: none of them needs the profiling hardware.
FAST = (CLOCK_REASONS, 150, 156, GPU_UTILIZATION, *_VIOLATIONS, 251, 252)
SLOW = (
    *(NAME, UUID, MINOR, PCI_BUS_ID, MIG_MODE, DRIVER_VERSION),
    *(101, 113, 114, 140, 158, 162, 164, 202, 235, 236, 237, 238, 250, 253, 310, 311, 312, 313, 390, 391),
    *(393, 394, 395, 396),
    *(field.id for field in _LINK_FIELDS),
)
# What an instance of a divided GPU has of its own; beside these only profiling fields.
OF_INSTANCES = MEMORY

# DCGM_CLOCKS_EVENT_REASON_*, without the bit that says only that nothing runs.
_REASONS = {
    0x2: "app_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}


def active_reasons(bits: int) -> dict[str, int]:
    """`gpu_throttle_active.REASON` as 1 or 0 for each reason."""
    return {f"gpu_throttle_active.{word}": int(bool(bits & bit)) for bit, word in _REASONS.items()}


# Beside the fields above: those whose values only grow, by their description in the header.
_GROWING = (range(310, 346), range(400, 440), range(451, 475), range(481, 494), range(1200, 1215), (497, 498, 499))
_UNITS = {"C": "Cel", "W": "W", "mJ": "mJ", "MB": "MiBy", "MHz": "MHz", "KB": "kBy", "%": "%", "us": "us", "ns": "ns"}


def kind_of(field_id: int) -> Kind:
    """How an otherwise unknown field of numbers behaves: DCGM does not say, so it is a gauge unless the header tells that it counts."""
    return Kind.DELTA if any(field_id in numbers for numbers in _GROWING) else Kind.GAUGE


def unit_of(unit: str) -> str:
    """DCGM's unit (four characters at most) as UCUM; `1` when it has none."""
    text = unit.strip()
    return _UNITS.get(text, f"{{{text}}}" if text.isalnum() else "1")
