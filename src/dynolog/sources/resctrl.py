"""Memory traffic and cache use as Resource Control counts them (`/sys/fs/resctrl`, Documentation/filesystems/resctrl.rst)."""

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.attribute import read_integer
from dynolog.sources.host_files import HostFiles

_ROOT = "sys/fs/resctrl"
_DOMAIN = "mon_L3_"
_NO_GROUPS = frozenset({"info", "mon_data", "mon_groups"})


class DomainUse(msgspec.Struct, frozen=True):
    """Counts of one group in one L3 cache: bytes moved from and to memory since the group was made, those of the own node's memory
    among them, and bytes in the cache. None where the hardware has lost count or does not count.
    """

    moved_bytes: int | None
    local_bytes: int | None
    occupied_bytes: int | None


class ResctrlReader:
    """Reads all groups again and again. Raises SourceUnavailable where resctrl is not mounted or monitors nothing."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host

    def read(self) -> dict[tuple[str, int], DomainUse]:
        """Uses by control group ("" is the default one) and number of the L3 cache. A group counts its monitoring groups too."""
        uses: dict[tuple[str, int], DomainUse] = {}
        names = self._host.list(_ROOT)
        for group in ("", *(name for name in names if name not in _NO_GROUPS)):
            data = f"{_ROOT}/{group}/mon_data" if group else f"{_ROOT}/mon_data"
            for domain in self._host.list(data):
                number = domain.removeprefix(_DOMAIN)
                if domain.startswith(_DOMAIN) and number.isdecimal():
                    uses[group, int(number)] = self._use(f"{data}/{domain}")
        if not uses:
            if not names:
                raise SourceUnavailable(
                    "/" + _ROOT,
                    "not mounted",
                    "where the processor has it: mount -t resctrl resctrl /sys/fs/resctrl",
                )
            raise SourceUnavailable("/" + _ROOT, "this processor monitors neither memory traffic nor cache use")
        return uses

    def _use(self, folder: str) -> DomainUse:
        path = self._host.path(folder)
        return DomainUse(
            read_integer(f"{path}/mbm_total_bytes"),
            read_integer(f"{path}/mbm_local_bytes"),
            read_integer(f"{path}/llc_occupancy"),
        )
