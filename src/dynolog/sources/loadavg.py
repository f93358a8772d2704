"""Load averages and thread counts (`/proc/loadavg`, proc_loadavg(5))."""

import math

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, unavailable


class LoadAverage(msgspec.Struct, frozen=True):
    """One reading: threads that ran or waited for a CPU or a disk, averaged over 1, 5 and 15 minutes; threads now."""

    over_1m: float
    over_5m: float
    over_15m: float
    threads_runnable: int
    threads_total: int


def parse(data: bytes) -> LoadAverage:
    """Parse the file. Raises ValueError when it is not five fields of which the fourth is `runnable/total`."""
    columns = data.split()
    if len(columns) < 4:
        raise ValueError("fewer than four columns")
    averages = (float(columns[0]), float(columns[1]), float(columns[2]))
    runnable, _, total = columns[3].partition(b"/")
    if not all(map(math.isfinite, averages)):
        raise ValueError("a load that is not a number")
    return LoadAverage(*averages, int(runnable), int(total))


class LoadAverageReader:
    """Reads `/proc/loadavg` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles) -> None:
        self._file = host.file("proc/loadavg")

    def read(self) -> LoadAverage:
        """One reading."""
        try:
            return parse(self._file.read())
        except OSError as error:
            raise unavailable("/proc/loadavg", error) from error
        except ValueError as error:
            raise SourceUnavailable("/proc/loadavg", str(error)) from error
