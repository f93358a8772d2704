"""The plain values of a whole GPU: which NVML function gives which metric, in which unit."""

from typing import Any

from dynolog.sources.nvml.values import Gathered, Probe

_SM_CLOCK, _MEMORY_CLOCK = 1, 2  # nvmlClockType_t
_GPU_SENSOR = 0  # nvmlTemperatureSensors_t
_SLOWDOWN = 1  # nvmlTemperatureThresholds_t
_MW_PER_W = 1000
_MJ_PER_J = 1000
_NS_PER_MS = 1_000_000

# nvmlPerfPolicyType_t: why the clocks were held back. The last two sum up all reasons, against two kinds of reference clock.
POLICIES = {
    0: "power",
    1: "thermal",
    2: "sync_boost",
    3: "board_limit",
    4: "low_utilization",
    5: "reliability",
    10: "app_clocks",
    11: "base_clocks",
}


def _utilization(nvml: Any, handle: Any, gathered: Gathered) -> None:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    gathered.put("gpu_device_utilization", rates.gpu)
    gathered.put("gpu_memory_utilization", rates.memory)


def _encoder(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_encoder_utilization", nvml.nvmlDeviceGetEncoderUtilization(handle)[0])


def _decoder(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_decoder_utilization", nvml.nvmlDeviceGetDecoderUtilization(handle)[0])


def _clocks(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_frequency_mhz", nvml.nvmlDeviceGetClockInfo(handle, _SM_CLOCK))
    gathered.put("gpu_memory_frequency_mhz", nvml.nvmlDeviceGetClockInfo(handle, _MEMORY_CLOCK))


def _event_reasons(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_clock_event_reasons", nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))


def _throttle_reasons(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_clock_event_reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _power(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_power_draw", nvml.nvmlDeviceGetPowerUsage(handle), _MW_PER_W)


def _energy(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.count("gpu_energy_joules", nvml.nvmlDeviceGetTotalEnergyConsumption(handle), _MJ_PER_J)


def _temperature(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_temperature_celsius", nvml.nvmlDeviceGetTemperature(handle, _GPU_SENSOR))


def _fan(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_fan_speed", nvml.nvmlDeviceGetFanSpeed(handle))


def _pcie_now(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("pcie_link_generation", nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))
    gathered.put("pcie_link_width", nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))


def _violation(policy: int, reason: str) -> Probe:
    key = f"gpu_throttle_ms.{reason}"

    def read(nvml: Any, handle: Any, gathered: Gathered) -> None:
        gathered.count(key, nvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime, _NS_PER_MS)

    # A device may have some of the policies, so each is known by itself.
    return Probe(f"nvmlDeviceGetViolationStatus({reason})", f"throttling by {reason}", read)


EVENT_REASONS = Probe("nvmlDeviceGetCurrentClocksEventReasons", "", _event_reasons)
# The same under the name that drivers before branch 535 have.
THROTTLE_REASONS = Probe("nvmlDeviceGetCurrentClocksThrottleReasons", "why the clocks are held back", _throttle_reasons)
POWER = Probe("nvmlDeviceGetPowerUsage", "power", _power)
ENERGY = Probe("nvmlDeviceGetTotalEnergyConsumption", "energy", _energy)
EACH_ROUND = (
    Probe("nvmlDeviceGetUtilizationRates", "utilisation", _utilization),
    Probe("nvmlDeviceGetEncoderUtilization", "encoder utilisation", _encoder),
    Probe("nvmlDeviceGetDecoderUtilization", "decoder utilisation", _decoder),
    Probe("nvmlDeviceGetClockInfo", "clocks", _clocks),
    Probe("nvmlDeviceGetTemperature", "temperature", _temperature),
    Probe("nvmlDeviceGetFanSpeed", "fan speed", _fan),
    Probe("nvmlDeviceGetCurrPcieLinkGeneration", "PCIe link", _pcie_now),
    *(_violation(policy, reason) for policy, reason in POLICIES.items()),
)


def _max_clocks(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_frequency_max_mhz", nvml.nvmlDeviceGetMaxClockInfo(handle, _SM_CLOCK))
    gathered.put("gpu_memory_frequency_max_mhz", nvml.nvmlDeviceGetMaxClockInfo(handle, _MEMORY_CLOCK))


def _limit(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_power_limit", nvml.nvmlDeviceGetEnforcedPowerLimit(handle), _MW_PER_W)


def _limit_max(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_power_limit_max", nvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1], _MW_PER_W)


def _slowdown(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("gpu_temperature_slowdown_celsius", nvml.nvmlDeviceGetTemperatureThreshold(handle, _SLOWDOWN))


def _pcie_max(nvml: Any, handle: Any, gathered: Gathered) -> None:
    gathered.put("pcie_link_generation_max", nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))
    gathered.put("pcie_link_width_max", nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))


SELDOM = (
    Probe("nvmlDeviceGetMaxClockInfo", "highest clocks", _max_clocks),
    Probe("nvmlDeviceGetEnforcedPowerLimit", "power limit", _limit),
    Probe("nvmlDeviceGetPowerManagementLimitConstraints", "highest power limit", _limit_max),
    Probe("nvmlDeviceGetTemperatureThreshold", "slowdown temperature", _slowdown),
    Probe("nvmlDeviceGetMaxPcieLinkGeneration", "highest PCIe link", _pcie_max),
)
