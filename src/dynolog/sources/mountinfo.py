"""What is mounted where (`/proc/PID/mountinfo`, proc_pid_mountinfo(5))."""

import os
import re

import msgspec

from dynolog.sources.host_files import HostFiles, unavailable

_ESCAPE = re.compile(rb"\\([0-7]{3})")
# ext4 after an error, since Linux 6.15: it refuses to write, and is called neither read-only by mount(8) nor by statvfs(3).
_READ_ONLY = frozenset((b"ro", b"emergency_ro"))


class Mount(msgspec.Struct, frozen=True):
    """One mount: its id and that of the mount it lies on, device number (os.makedev), mount point, type, what is mounted.

    `read_only` when this mount or the file system itself is, also one that went so after an error.
    """

    number: int
    parent: int
    device: int
    point: str
    kind: str
    source: str
    read_only: bool = False


def unescape(field: bytes) -> str:
    r"""A field of the file as text: space, tab, newline and backslash stand there as `\040`, `\011`, `\012`, `\134`.

    Bytes that are not UTF-8 become surrogates, as os.fsdecode gives them, so that the path still opens.
    """
    if b"\\" in field:
        field = _ESCAPE.sub(lambda match: bytes((int(match[1], 8) & 0xFF,)), field)
    return os.fsdecode(field)


def parse(data: bytes) -> list[Mount]:
    """All mounts in the order of mounting; a line that does not parse is left out. Never raises."""
    mounts: list[Mount] = []
    for line in data.split(b"\n"):
        # The optional fields before the lone hyphen vary in number.
        fields = line.split(b" ")
        try:
            separator = fields.index(b"-", 6)
            major, minor = map(int, fields[2].split(b":"))
            number, parent = int(fields[0]), int(fields[1])
            kind, source = fields[separator + 1 : separator + 3]
            device = os.makedev(major, minor)
            # Of this mount, and of the file system (none in some containers' made-up files).
            options = b",".join((fields[5], *fields[separator + 3 : separator + 4])).split(b",")
        except (ValueError, OverflowError):
            continue
        if fields[4].startswith(b"/") and kind:
            read_only = not _READ_ONLY.isdisjoint(options)
            point, kind_text, source_text = map(unescape, (fields[4], kind, source))
            mounts.append(Mount(number, parent, device, point, kind_text, source_text, read_only))
    return mounts


class MountReader:
    """Reads the mounts of the host again and again. Raises SourceUnavailable when it cannot.

    Below another root these are the mounts of process 1 where it is seen, because "self" there is this process in its container.
    """

    def __init__(self, host: HostFiles) -> None:
        self._files = [host.file("proc/self/mountinfo")]
        if host.root != "/":
            self._files.insert(0, host.file("proc/1/mountinfo"))
        self._data = b""
        self._mounts: list[Mount] = []

    def read(self) -> list[Mount]:
        """The mounts; the same list again while nothing changed."""
        data = self._read()
        if data != self._data:
            self._data = data
            self._mounts = parse(data)
        return self._mounts

    def _read(self) -> bytes:
        for file in self._files[:-1]:
            try:
                return file.read()
            except OSError:
                continue  # no such process below this root
        try:
            return self._files[-1].read()
        except OSError as error:
            raise unavailable("/proc/self/mountinfo", error) from error
