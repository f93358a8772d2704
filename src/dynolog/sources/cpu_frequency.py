"""Clock frequency of each CPU: `scaling_cur_freq` of cpufreq (Documentation/admin-guide/pm/cpufreq.rst), else `/proc/cpuinfo`."""

import math

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_integer
from dynolog.sources.cpu_ids import cpu_ids
from dynolog.sources.host_files import HostFiles, unavailable

_CPUS = "sys/devices/system/cpu"


def parse_cpuinfo(data: bytes) -> dict[int, float]:
    """MHz by CPU id from the lines `processor` and `cpu MHz`; a CPU whose lines do not parse is left out. Never raises."""
    frequencies: dict[int, float] = {}
    at = data.find(b"cpu MHz")
    start = 0
    while at >= 0:
        end = data.find(b"\n", at)
        processor = data.rfind(b"processor\t", start, at)
        try:
            cpu = int(data[processor : data.find(b"\n", processor)].partition(b":")[2]) if processor >= 0 else -1
            mhz = float(data[at : end if end >= 0 else len(data)].partition(b":")[2])
        except ValueError:
            cpu, mhz = -1, 0.0
        if cpu >= 0 and math.isfinite(mhz) and mhz > 0:
            frequencies[cpu] = mhz
        start = at + 1
        at = data.find(b"cpu MHz", start)
    return frequencies


class CpuFrequencyReader:
    """Reads the frequencies again and again. Raises SourceUnavailable when no CPU says its own."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._cpuinfo = host.file("proc/cpuinfo")

    def read(self) -> dict[int, float]:
        """MHz by CPU id; CPUs that are offline or do not say are left out."""
        folder = self._host.path(_CPUS)
        frequencies: dict[int, float] = {}
        for cpu in cpu_ids(self._host):
            khz = read_integer(f"{folder}/cpu{cpu}/cpufreq/scaling_cur_freq")
            if khz is not None and khz > 0:
                frequencies[cpu] = khz / 1000
            elif not frequencies:
                break  # no cpufreq driver: it is there for all CPUs or for none
        if not frequencies:
            frequencies = self._from_cpuinfo()
        if not frequencies:
            raise SourceUnavailable("cpu frequency", "neither cpufreq nor /proc/cpuinfo gives it")
        return frequencies

    def _from_cpuinfo(self) -> dict[int, float]:
        try:
            return parse_cpuinfo(self._cpuinfo.read())
        except OSError as error:
            raise unavailable("/proc/cpuinfo", error) from error
