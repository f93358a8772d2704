"""Why a GPU's clock is held down, whoever made it, in the bits of NVML (nvmlClocksEventReasons), which traces have."""

from collections.abc import Mapping

_ACTIVE = "gpu_throttle_active."
_POWER_CAP, _HARDWARE, _HEAT = 0x04, 0x08, 0x40
_NVIDIA = frozenset({"nvml", "dcgm"})
# By the names that amdgpu's bits have here, and the files of xe and i915 (reason_pl1, throttle_reason_thermal). What is in none of them,
# such as `prochot`, peak current (`pl4`) and voltage regulators that are at their limit (`vr_tdc`), is the hardware's own protection.
_BITS = {
    **dict.fromkeys(("power", "pl1", "pl2", "psys_pl1", "psys_pl2"), _POWER_CAP),
    **dict.fromkeys(("thermal", "hbm_thermal", "vr_thermal", "liquid_thermal"), _HEAT),
    **dict.fromkeys(("vr_thermalert", "ratl", "soc_thermal", "soc_avg_thermal", "mem_thermal"), _HEAT),
}


def throttle_bits(backend: str, values: Mapping[str, int | float | str]) -> int | None:
    """Of the values of a device that this backend read; None when they do not tell."""
    bits = values.get("gpu_clock_event_reasons")
    active = [(key.removeprefix(_ACTIVE), value) for key, value in values.items() if key.startswith(_ACTIVE)]
    if backend in _NVIDIA or not active:
        # Of a backend from elsewhere that names no reasons, the bits are taken for NVML's: they have no other meaning.
        return bits if isinstance(bits, int) else None
    found = 0
    for reason, value in active:
        if value:
            found |= _BITS.get(reason, _HARDWARE)
    return found
