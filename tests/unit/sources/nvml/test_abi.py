"""The library that stands in for the driver's has the layouts that nvidia-ml-py has."""

import ctypes

import pynvml

from dynolog.sources.nvml.field_values import _LAYOUT
from dynolog.sources.nvml.gpm import _METRICS
from dynolog.sources.nvml.memory import _VERSION_2
from fakes.nvml.library import abi

# What C calls it -> what nvidia-ml-py calls it.
STRUCTURES = {
    "nvmlUtilization_t": pynvml.c_nvmlUtilization_t,
    "nvmlMemory_t": pynvml.c_nvmlMemory_t,
    "nvmlMemory_v2_t": pynvml.c_nvmlMemory_v2_t,
    "nvmlProcessInfo_v2_t": pynvml.c_nvmlProcessInfo_v2_t,
    "nvmlPciInfo_t": pynvml.nvmlPciInfo_t,
    "nvmlViolationTime_t": pynvml.c_nvmlViolationTime_t,
    "nvmlFieldValue_t": pynvml.c_nvmlFieldValue_t,
    "nvmlEventData_t": pynvml.c_nvmlEventData_t,
    "nvmlGpmMetric_t": pynvml.c_nvmlGpmMetric_t,
    "nvmlGpmMetricsGet_t": pynvml.c_nvmlGpmMetricsGet_t,
    "nvmlGpmSupport_t": pynvml.c_nvmlGpmSupport_t,
}


def test_layouts_of_c_and_of_the_binding_are_the_same() -> None:
    """Every size and offset that a C compiler finds is the one that nvidia-ml-py uses."""
    seen = set()
    for line in abi().splitlines():
        name, *numbers = line.split()
        structure, _, member = name.partition(".")
        binding = STRUCTURES[structure]
        seen.add(structure)
        if member:
            field = getattr(binding, member)
            assert field.offset == int(numbers[0]), name
            # The array of metrics has another length in each branch of the driver.
            assert numbers[1] == "-" or field.size == int(numbers[1]), name
        else:
            assert ctypes.sizeof(binding) == int(numbers[0]), name
    assert seen == set(STRUCTURES)


def test_version_of_memory_is_size_and_number() -> None:
    """C11: the version is the size of the structure with 2 in the highest byte, not 2."""
    assert _VERSION_2 == ctypes.sizeof(pynvml.c_nvmlMemory_v2_t) | 2 << 24 == pynvml.nvmlMemory_v2


def test_own_layout_of_field_values_is_the_bindings() -> None:
    assert _LAYOUT.size == ctypes.sizeof(pynvml.c_nvmlFieldValue_t)
    value = pynvml.c_nvmlFieldValue_t(1, 2, 3, 4, 5, 6)
    assert _LAYOUT.unpack(bytes(value))[:6] == (1, 2, 3, 4, 5, 6)


def test_numbers_are_those_of_the_binding() -> None:
    """The ids that are written in the code as numbers."""
    names = ("GRAPHICS_UTIL", "SM_UTIL", "SM_OCCUPANCY", "ANY_TENSOR_UTIL", "DRAM_BW_UTIL", "FP64_UTIL", "FP32_UTIL")
    more = ("FP16_UTIL", "PCIE_TX_PER_SEC", "PCIE_RX_PER_SEC", "NVLINK_TOTAL_RX_PER_SEC", "NVLINK_TOTAL_TX_PER_SEC")
    assert tuple(getattr(pynvml, f"NVML_GPM_METRIC_{name}") for name in (*names, *more)) == _METRICS
    for number, name in FIELDS.items():
        assert getattr(pynvml, f"NVML_FI_DEV_{name}") == number
    assert pynvml.nvmlEventTypeXidCriticalError == 8


FIELDS = {
    3: "ECC_SBE_VOL_TOTAL",
    4: "ECC_DBE_VOL_TOTAL",
    5: "ECC_SBE_AGG_TOTAL",
    6: "ECC_DBE_AGG_TOTAL",
    29: "RETIRED_SBE",
    30: "RETIRED_DBE",
    32: "NVLINK_CRC_FLIT_ERROR_COUNT_L0",
    96: "NVLINK_CRC_FLIT_ERROR_COUNT_L6",
    39: "NVLINK_CRC_DATA_ERROR_COUNT_L0",
    102: "NVLINK_CRC_DATA_ERROR_COUNT_L6",
    46: "NVLINK_REPLAY_ERROR_COUNT_L0",
    108: "NVLINK_REPLAY_ERROR_COUNT_L6",
    53: "NVLINK_RECOVERY_ERROR_COUNT_L0",
    114: "NVLINK_RECOVERY_ERROR_COUNT_L6",
    82: "MEMORY_TEMP",
    83: "TOTAL_ENERGY_CONSUMPTION",
    94: "PCIE_REPLAY_COUNTER",
    138: "NVLINK_THROUGHPUT_DATA_TX",
    139: "NVLINK_THROUGHPUT_DATA_RX",
    142: "REMAPPED_COR",
    143: "REMAPPED_UNC",
    144: "REMAPPED_PENDING",
    145: "REMAPPED_FAILURE",
    161: "NVLINK_ERROR_DL_REPLAY",
    162: "NVLINK_ERROR_DL_RECOVERY",
    163: "NVLINK_ERROR_DL_CRC",
    165: "NVLINK_GET_STATE",
    186: "POWER_INSTANT",
    197: "PCIE_COUNT_TX_BYTES",
    198: "PCIE_COUNT_RX_BYTES",
}
