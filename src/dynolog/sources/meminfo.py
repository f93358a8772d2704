"""Memory of the host by use (`/proc/meminfo`, proc_meminfo(5))."""

from collections.abc import Iterable

from dynolog.model.errors import SourceUnavailable
from dynolog.sources import named_numbers
from dynolog.sources.host_files import HostFiles, unavailable


def parse(data: bytes, names: Iterable[str]) -> dict[str, int]:
    """The fields `names` that are there, each name with its colon (`MemTotal:`); in kB, the HugePages ones in pages. Never raises."""
    return named_numbers.parse(data.replace(b" kB", b""), names)


class MeminfoReader:
    """Reads `/proc/meminfo` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles, names: Iterable[str]) -> None:
        self._file = host.file("proc/meminfo")
        self._names = tuple(names)

    def read(self) -> dict[str, int]:
        """One reading of the fields asked for."""
        try:
            fields = parse(self._file.read(), self._names)
        except OSError as error:
            raise unavailable("/proc/meminfo", error) from error
        if not fields:
            raise SourceUnavailable("/proc/meminfo", "no field that is known")
        return fields
