"""Memory errors found by the memory controllers (`/sys/devices/system/edac/mc/`, Documentation/admin-guide/RAS)."""

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_integer
from dynolog.sources.host_files import HostFiles

_FOLDER = "sys/devices/system/edac/mc"


class MemoryErrors(msgspec.Struct, frozen=True):
    """Errors of one controller since its driver was loaded: corrected, and not correctable. None: not readable."""

    correctable: int | None
    uncorrectable: int | None


class EdacReader:
    """Reads all controllers again and again. Raises SourceUnavailable when there is none."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host

    def read(self) -> dict[str, MemoryErrors]:
        """Controllers by name (`mc0`)."""
        folder = self._host.path(_FOLDER)
        errors = {
            name: MemoryErrors(read_integer(f"{folder}/{name}/ce_count"), read_integer(f"{folder}/{name}/ue_count"))
            for name in self._host.list(_FOLDER)
            if name.startswith("mc") and name[2:].isdecimal()
        }
        if not errors:
            raise SourceUnavailable("/" + _FOLDER, "no memory controller reports errors")
        return errors
