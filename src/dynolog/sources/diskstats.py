"""I/O of every block device since boot (`/proc/diskstats`, Documentation/admin-guide/iostats)."""

import os
import re
from collections.abc import Mapping

import msgspec

from dynolog.sources.host_files import HostFiles, unavailable

# Columns after the name, without the number of requests in flight, which is no counter. The discards arrived with 4.18, the flushes
# with 5.5. A sector is 512 bytes here whatever the device's own.
COLUMNS = (
    *("reads", "read_merges", "read_sectors", "read_ms", "writes", "write_merges", "write_sectors", "write_ms"),
    *("busy_ms", "queue_ms", "discards", "discard_merges", "discard_sectors", "discard_ms", "flushes", "flush_ms"),
)
SECTOR_BYTES = 512
_IN_FLIGHT = 8

# How partitions are called, for kernels and trees without /sys/block.
_PARTITION = re.compile(r"(?:[hsv]d|xvd)[a-z]+\d+|.*\dp\d+")
# One path of a multipath NVMe namespace: its I/O is counted at nvmeXnY again.
_NVME_PATH = re.compile(r"nvme\d+c\d+n\d+")


class Disk(msgspec.Struct, frozen=True, gc=False):
    """One device: its number ("8 0"), counters in the order of COLUMNS (10, 14 or 16 of them), requests in flight (None: unknown)."""

    number: bytes
    counters: tuple[int, ...]
    in_flight: int | None


def parse(data: bytes, names: Mapping[bytes, str | None]) -> dict[str, Disk]:
    """Disks by the name that `names` gives for the file's; devices for which it gives None are left out, as are lines that do not parse."""
    disks: dict[str, Disk] = {}
    for line in data.split(b"\n"):
        head = line.split(None, 3)
        if len(head) < 4 or (name := names[head[2]]) is None:
            continue
        fields = head[3].split()
        # Partitions before 2.6.25 had four columns here; what lies between the known formats, and beyond them, is ignored.
        count = 17 if len(fields) >= 17 else 15 if len(fields) >= 15 else 11
        try:
            columns = list(map(int, fields[:count]))
        except ValueError:
            continue
        if len(columns) < 11 or min(columns) < 0:
            continue
        in_flight = columns.pop(_IN_FLIGHT)
        # Some drivers count one request too few, which the kernel prints as an unsigned number.
        disks[name] = Disk(head[0] + b" " + head[1], tuple(columns), in_flight if in_flight < 1 << 31 else None)
    return disks


class DiskNames(dict[bytes, str | None]):
    """Name as the file has it → name to show, or None for a device that is not wanted; decided once for each name."""

    def __init__(self, host: HostFiles, partitions: bool, exclude_prefixes: tuple[str, ...]) -> None:
        super().__init__()
        self.choice = (partitions, exclude_prefixes)
        self._host = host
        self._partitions = partitions
        self._exclude_prefixes = exclude_prefixes

    def __missing__(self, raw: bytes) -> str | None:
        name = raw.decode("utf-8", "backslashreplace")
        if name.startswith(self._exclude_prefixes):
            shown, known = None, True
        else:
            whole, known = self._is_whole(name)
            shown = name if whole or self._partitions else None
        # A device that is being unplugged is in no directory any more: that says nothing about the next one of its name.
        if known and len(self) < 8192:
            self[raw] = shown
        return shown

    def _is_whole(self, name: str) -> tuple[bool, bool]:
        if _NVME_PATH.fullmatch(name):
            return False, True
        directory = name.replace("/", "!")  # cciss/c0d0 is cciss!c0d0 in sysfs
        if os.path.exists(self._host.path(f"sys/block/{directory}")):
            return True, True
        if os.path.exists(self._host.path(f"sys/class/block/{directory}/partition")):
            return False, True
        return not _PARTITION.fullmatch(name), False


class DiskStatsReader:
    """Reads `/proc/diskstats` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host
        self._file = host.file("proc/diskstats")
        self._names = DiskNames(host, False, ())

    def read(self, partitions: bool = False, exclude_prefixes: tuple[str, ...] = ()) -> dict[str, Disk]:
        """One reading of whole disks, of partitions too if asked, without names that start with one of `exclude_prefixes`."""
        if self._names.choice != (partitions, exclude_prefixes):
            self._names = DiskNames(self._host, partitions, exclude_prefixes)
        try:
            data = self._file.read()
        except OSError as error:
            raise unavailable("/proc/diskstats", error) from error
        return parse(data, self._names)
