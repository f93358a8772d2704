"""Initial RAM file systems: directories as `newc` cpio archives (the kernel's early-userspace/buffer-format.rst)."""

import gzip
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MAGIC = "070701"
_TRAILER = "TRAILER!!!"


def write_archive(root: Path, archive: Path) -> None:
    """Everything below `root`, owned by root, as a gzipped archive."""
    with gzip.open(archive, "wb", compresslevel=1) as out:
        for number, path in enumerate(_walk(root), start=1):
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                data = os.readlink(path).encode()
            else:
                data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            out.write(_entry(number, path.relative_to(root).as_posix(), status.st_mode, data))
        # The kernel needs a console before /dev is mounted: character device 5,1.
        out.write(_entry(0x7FFFFFFF, "dev/console", stat.S_IFCHR | 0o600, b"", device=(5, 1)))
        out.write(_entry(0, _TRAILER, 0, b""))


def _walk(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if "__pycache__" not in path.parts:
            yield path


def _entry(number: int, name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> bytes:
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0)
    header = (_MAGIC + "".join(f"{field:08x}" for field in fields)).encode() + encoded
    return _padded(header) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
