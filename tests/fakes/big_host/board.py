"""Sensors, energy counters and PCIe devices of the big host."""

from pathlib import Path

from fakes.big_host.files import write, write_once

PACKAGES = 2
CORE_SENSORS = 64
PCI_DEVICES = 48
PACKAGE_WATTS, DRAM_WATTS = 250, 40
ENERGY_RANGE_UJ = 262_143_328_850
CORRECTABLE_ERRORS = 2  # on the first device in a step


def build_board(root: Path, step: int) -> None:
    """Write or rewrite the files of the board as they are at `step`; temperatures rise by 1 °C a step."""
    for package in range(PACKAGES):
        hwmon = f"sys/class/hwmon/hwmon{package}"
        write_once(root, f"{hwmon}/name", "coretemp\n")
        if not (root / hwmon / "device").is_symlink():
            (root / hwmon / "device").symlink_to(f"../../../devices/platform/coretemp.{package}")
        for sensor in range(1, CORE_SENSORS + 2):
            label = f"Package id {package}" if sensor == 1 else f"Core {sensor - 2}"
            write_once(root, f"{hwmon}/temp{sensor}_label", label + "\n")
            write(root, f"{hwmon}/temp{sensor}_input", f"{40_000 + 1000 * step}\n")
        _build_zone(root, f"intel-rapl:{package}", f"package-{package}", PACKAGE_WATTS, step)
        _build_zone(root, f"intel-rapl:{package}:0", "dram", DRAM_WATTS, step)
    for device in range(PCI_DEVICES):
        folder = f"sys/bus/pci/devices/0000:{device:02x}:00.0"
        errors = CORRECTABLE_ERRORS * step if device == 0 else 0
        write(root, f"{folder}/aer_dev_correctable", f"RxErr 0\nBadTLP {errors}\nBadDLLP 0\nTOTAL_ERR_COR {errors}\n")
        write(root, f"{folder}/aer_dev_nonfatal", "Undefined 0\nDLP 0\nTOTAL_ERR_NONFATAL 0\n")
        write(root, f"{folder}/aer_dev_fatal", "Undefined 0\nDLP 0\nTOTAL_ERR_FATAL 0\n")


def _build_zone(root: Path, zone: str, name: str, watts: int, step: int) -> None:
    write_once(root, f"sys/class/powercap/{zone}/name", name + "\n")
    write_once(root, f"sys/class/powercap/{zone}/max_energy_range_uj", f"{ENERGY_RANGE_UJ}\n")
    # The counter starts again between the first and the second step.
    energy = (ENERGY_RANGE_UJ - watts * 1_500_000 + watts * 1_000_000 * step) % ENERGY_RANGE_UJ
    write(root, f"sys/class/powercap/{zone}/energy_uj", f"{energy}\n")
