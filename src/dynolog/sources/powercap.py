"""Energy counters of processors and memory (`/sys/class/powercap/intel-rapl*`, Documentation/power/powercap/powercap.rst)."""

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_integer
from dynolog.sources.host_files import HostFiles, KernelFile, unavailable

_FOLDER = "sys/class/powercap"


class Energy(msgspec.Struct, frozen=True):
    """A counter in µJ, and the value after which it starts from 0 again (0: not known)."""

    energy_uj: int
    range_uj: int


class Zone(msgspec.Struct, frozen=True):
    """A counter that is kept open."""

    file: KernelFile
    range_uj: int


def find_zones(host: HostFiles) -> dict[str, Zone]:
    """Zones by name: `package-0`, `package-0/dram`, `psys`. `intel-rapl-mmio` repeats the same counters, so it is left out."""
    zones: dict[str, Zone] = {}
    for directory in host.list(_FOLDER):
        folder = f"{_FOLDER}/{directory}"
        if not directory.startswith("intel-rapl:") or not (name := host.read_text(f"{folder}/name")):
            continue
        parent = directory.rpartition(":")[0]
        if parent.count(":"):
            name = f"{host.read_text(f'{_FOLDER}/{parent}/name') or parent}/{name}"
        name = name.replace(" ", "_")
        if name in zones:
            name = f"{name}_{directory.partition(':')[2]}"
        zones[name] = Zone(
            host.file(f"{folder}/energy_uj"), read_integer(host.path(f"{folder}/max_energy_range_uj")) or 0
        )
    return zones


class PowercapReader:
    """Reads all zones again and again. Raises SourceUnavailable when there is none, or none may be read."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._zones: dict[str, Zone] = {}

    def read(self) -> dict[str, Energy]:
        """Energy by zone; a zone that cannot be read is left out."""
        if not self._zones:
            self._zones = find_zones(self._host)
        energies: dict[str, Energy] = {}
        refused: OSError | None = None
        for name, zone in self._zones.items():
            try:
                energies[name] = Energy(int(zone.file.read()), zone.range_uj)
            except OSError as error:
                refused = error
            except ValueError:
                continue
        if not energies:
            self._zones = {}
            if isinstance(refused, PermissionError):
                raise SourceUnavailable(
                    "RAPL energy",
                    "only root may read it since it can leak secrets",
                    "run the daemon as root, or let its user read /sys/class/powercap/intel-rapl*/energy_uj",
                )
            if refused:
                raise unavailable("RAPL energy", refused)
            raise SourceUnavailable("/" + _FOLDER, "no energy counter")
        return energies
