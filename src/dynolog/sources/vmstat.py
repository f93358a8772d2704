"""Counters of the memory management since boot (`/proc/vmstat`, proc_vmstat(5))."""

from collections.abc import Iterable

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import named_numbers
from dynolog.sources.host_files import HostFiles, unavailable


class VmstatReader:
    """Reads `/proc/vmstat` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles, names: Iterable[str]) -> None:
        self._file = host.file("proc/vmstat")
        self._names = tuple(names)

    def read(self) -> dict[str, int]:
        """One reading of the fields asked for; a field that this kernel lacks is left out."""
        try:
            fields = named_numbers.parse(self._file.read(), self._names)
        except OSError as error:
            raise unavailable("/proc/vmstat", error) from error
        if not fields:
            raise SourceUnavailable("/proc/vmstat", "no field that is known")
        return fields
