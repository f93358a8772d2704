"""Pressure stall information (`/proc/pressure/*`, Documentation/accounting/psi.rst)."""

import math

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, unavailable
from dynolog.sources.optional_file import OptionalFile

RESOURCES = ("cpu", "memory", "io", "irq")


class Stall(msgspec.Struct, frozen=True):
    """One line: the share of the last 10 s in percent, and all time since boot in µs, that tasks stood still."""

    avg10_pct: float
    total_us: int


def parse(data: bytes) -> dict[str, Stall]:
    """Lines by their first word, `some` and `full`; a line that does not parse is left out. Never raises."""
    stalls: dict[str, Stall] = {}
    for line in data.splitlines():
        extent, _, rest = line.partition(b" ")
        if extent not in (b"some", b"full"):
            continue
        fields = dict(field.partition(b"=")[::2] for field in rest.split())
        try:
            stall = Stall(float(fields[b"avg10"]), int(fields[b"total"]))
        except (KeyError, ValueError):
            continue
        if math.isfinite(stall.avg10_pct):
            stalls[extent.decode()] = stall
    return stalls


class PressureReader:
    """Reads the files again and again; each is optional (`irq` came with Linux 6.1).

    Raises SourceUnavailable when none can be read: with PSI switched off they can be opened and answer EOPNOTSUPP.
    """

    def __init__(self, host: HostFiles) -> None:
        self.files = {resource: OptionalFile(host, f"proc/pressure/{resource}") for resource in RESOURCES}

    def read(self) -> dict[str, dict[str, Stall]]:
        """Lines by resource; resources that this kernel does not measure are left out."""
        stalls = {resource: parse(data) for resource, file in self.files.items() if (data := file.read()) is not None}
        if not any(stalls.values()):
            for file in self.files.values():
                file.retry()
            if error := self.files["cpu"].error:
                raise unavailable("/proc/pressure", error)
            raise SourceUnavailable("/proc/pressure", "no line that is known")
        return stalls
