"""ROCm's own Python package `amdsmi`, for the two things that the kernel's files cannot give.

1. The marketing name of a card whose board has no name in its memory (most but server boards).
2. The `gpu_metrics` table of a driver that is newer than the layouts known here.

Everything else that it offers it reads from the same files. It belongs to the ROCm of the machine, so it is no dependency of ours.
"""

import importlib
from types import ModuleType

# Where the package keeps names other than ours, or none at all, the value is missing.
_NUMBERS = {
    "temperature_hotspot": "hotspot_celsius",
    "temperature_mem": "memory_celsius",
    "average_gfx_activity": "gfx_activity_pct",
    "average_umc_activity": "memory_activity_pct",
    "energy_accumulator": "energy",
    "pcie_replay_count_acc": "pcie_replays",
    "current_uclk": "memory_clock_mhz",
    "accumulation_counter": "cycles",
    "prochot_residency_acc": "prochot_cycles",
    "ppt_residency_acc": "power_cycles",
    "socket_thm_residency_acc": "thermal_cycles",
    "vr_thm_residency_acc": "vr_thermal_cycles",
    "hbm_thm_residency_acc": "hbm_thermal_cycles",
}
_ROWS = {
    "xgmi_read_data_acc": "xgmi_read_kb",
    "xgmi_write_data_acc": "xgmi_write_kb",
    "current_gfxclks": "gfx_clocks_mhz",
}
_POWERS = ("current_socket_power", "curr_socket_power", "average_socket_power")
Numbers = dict[str, int]
Rows = dict[str, tuple[int | None, ...]]


class AmdSmi:
    """The package, fenced: whatever it raises, the files are enough. `why_not` is why it cannot be used, "" when it can."""

    def __init__(self) -> None:
        self.why_not = ""
        self.version = ""
        self._module: ModuleType | None = None
        self._handles: dict[str, object] = {}

    def open(self) -> None:
        """Import and start it. Never raises."""
        try:
            module = importlib.import_module("amdsmi")
            module.amdsmi_init()
            self._module = module
            self.version = _version(module)
            self.find()
        except ImportError:
            self.why_not = "amdsmi is not installed (it comes with ROCm)"
        except Exception as error:  # noqa: BLE001 - a vendor's library: KeyError for a missing libamd_smi.so has been seen
            self._module = None
            self.why_not = f"amdsmi cannot be used: {type(error).__name__}: {error}"

    def find(self) -> None:
        """Look for devices again; by PCI address. Never raises."""
        if self._module is None:
            return
        try:
            handles = self._module.amdsmi_get_processor_handles()
            self._handles = {str(self._module.amdsmi_get_gpu_device_bdf(handle)).lower(): handle for handle in handles}
        except Exception as error:  # noqa: BLE001 - see open
            self._handles = {}
            self.why_not = f"amdsmi finds no device: {type(error).__name__}: {error}"

    def name(self, pci_address: str) -> str:
        """The marketing name, "" when it has none. Never raises."""
        facts = self._ask("amdsmi_get_gpu_asic_info", pci_address)
        name = facts.get("market_name")
        return name if isinstance(name, str) and name != "N/A" else ""

    def metrics(self, pci_address: str) -> tuple[Numbers, Rows]:
        """Numbers and rows under the names of `MetricsTable`; what it says is N/A is missing. Never raises."""
        facts = self._ask("amdsmi_get_gpu_metrics_info", pci_address)
        numbers = {
            ours: value for theirs, ours in _NUMBERS.items() if (value := _integer(facts.get(theirs))) is not None
        }
        power = next((value for theirs in _POWERS if (value := _integer(facts.get(theirs))) is not None), None)
        if power is not None:
            numbers["power_watts"] = power
        rows: Rows = {}
        for theirs, ours in _ROWS.items():
            row = facts.get(theirs)
            if isinstance(row, list | tuple):
                rows[ours] = tuple(map(_integer, row))
        return numbers, rows

    def close(self) -> None:
        """Let go of it. Never raises."""
        module, self._module = self._module, None
        self._handles = {}
        if module is not None:
            try:
                module.amdsmi_shut_down()
            except Exception as error:  # noqa: BLE001 - see open
                self.why_not = f"amdsmi did not stop: {type(error).__name__}: {error}"

    def _ask(self, function: str, pci_address: str) -> dict[str, object]:
        handle = self._handles.get(pci_address)
        if self._module is None or handle is None:
            return {}
        try:
            facts = getattr(self._module, function)(handle)
        except Exception as error:  # noqa: BLE001 - see open
            self.why_not = f"{function}: {type(error).__name__}: {error}"
            return {}
        return facts if isinstance(facts, dict) else {}


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _version(module: ModuleType) -> str:
    facts = module.amdsmi_get_lib_version()
    parts = (facts.get("major"), facts.get("minor"), facts.get("release"))
    return "amdsmi " + ".".join(str(part) for part in parts if part is not None)
