"""How often CPUs were slowed down by heat (`cpu*/thermal_throttle/`, Documentation/ABI sysfs-devices-system-cpu; Intel only)."""

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_integer
from dynolog.sources.cpu_ids import cpu_ids
from dynolog.sources.host_files import HostFiles


class ThrottleCounts(msgspec.Struct, frozen=True):
    """Events since boot of each core and each package, by the id of the CPU that speaks for it.

    CPUs do not agree to the last event, so counts can be compared only when the same CPU speaks.
    """

    cores: dict[int, int]
    packages: dict[int, int]


class ThermalThrottleReader:
    """Reads the counts again and again. Raises SourceUnavailable when no CPU has them.

    All threads of a core count the core's events, and all CPUs of a package the package's, so one CPU speaks for each.
    """

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._folder = host.path("sys/devices/system/cpu")
        self._cores: dict[int, str] = {}
        self._packages: dict[int, str] = {}
        self._online: tuple[int, ...] | None = None

    def read(self) -> ThrottleCounts:
        """One reading; a CPU whose file has gone is left out."""
        online = cpu_ids(self._host)
        if online != self._online:
            self._choose_speakers(online)
            self._online = online
        counts = ThrottleCounts(_read_all(self._cores), _read_all(self._packages))
        if not counts.cores and not counts.packages:
            raise SourceUnavailable("/sys/devices/system/cpu", "no CPU here counts throttling by heat")
        return counts

    def _choose_speakers(self, online: tuple[int, ...]) -> None:
        self._cores, self._packages = {}, {}
        cores: set[tuple[int, int]] = set()
        packages: set[int] = set()
        for cpu in online:
            folder = f"{self._folder}/cpu{cpu}"
            package = read_integer(f"{folder}/topology/physical_package_id")
            if read_integer(f"{folder}/thermal_throttle/core_throttle_count") is None:
                if not self._cores:
                    return  # the first CPU has none, so none has
                continue
            core = (package or 0, read_integer(f"{folder}/topology/core_id") or 0)
            if core not in cores:
                cores.add(core)
                self._cores[cpu] = f"{folder}/thermal_throttle/core_throttle_count"
            if package is not None and package not in packages:
                packages.add(package)
                self._packages[cpu] = f"{folder}/thermal_throttle/package_throttle_count"


def _read_all(paths: dict[int, str]) -> dict[int, int]:
    return {key: count for key, path in paths.items() if (count := read_integer(path)) is not None}
