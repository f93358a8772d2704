"""Which PyTorch a process has loaded, by its memory map (proc_pid_maps(5)) and the files of that installation below its own root."""

import os
import re

import msgspec

from dynolog.sources.beneath import open_beneath, open_root

# The package's own module first: a distribution may keep the libraries elsewhere.
_MARKS = (b"/torch/_C.", b"/libtorch.so", b"/libtorch_cpu.so", b"/libtorch_python.so", b"/libtorch_global_deps.so")
_VERSION = re.compile(rb"^__version__\s*(?::[^=\n]*)?=\s*['\"]([^'\"\n]{1,100})['\"]", re.MULTILINE)
_CUDA = re.compile(rb"^(cuda|hip|xpu)\s*(?::[^=\n]*)?=\s*['\"]([^'\"\n]{1,40})['\"]", re.MULTILINE)
_METADATA_VERSION = re.compile(rb"^Version:\s*(\S{1,100})", re.MULTILINE)
_DISTRIBUTION = re.compile(r"^torch-([0-9][^-/]{0,99})\.dist-info$")
_NUMBERS = re.compile(r"(\d{1,6})\.(\d{1,6})")
_CHUNK_BYTES = 1 << 16
_LONGEST_FILE_BYTES = 1 << 16


class TorchLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A PyTorch that is mapped: its package directory as the process sees it, and its version ("" when that cannot be read).

    `device` is `cuda 12.4`, `hip 6.1`, or "" for a build without accelerators or where that cannot be read.
    """

    directory: str
    version: str = ""
    device: str = ""

    @property
    def release(self) -> tuple[int, int] | None:
        """Major and minor number; None when unknown."""
        found = _NUMBERS.match(self.version)
        return (int(found[1]), int(found[2])) if found else None


def find_torch(map_text: bytes) -> str:
    """The directory of the torch package whose module or library stands in a text of `/proc/PID/maps`; "" when none does."""
    for mark in _MARKS:
        place = map_text.find(mark)
        if place < 0:
            continue
        line = map_text.rfind(b"\n", 0, place) + 1
        path = os.fsdecode(map_text[map_text.find(b"/", line) : place])
        if mark == _MARKS[0]:
            return f"{path}/torch"
        return path.removesuffix("/lib").removesuffix("/lib64")
    return ""


def mapped_torch(proc: str, pid: int) -> str:
    """The same for a process, read only as far as needed. Takes its mmap lock, so it can block. Raises OSError."""
    rest = b""
    with open(f"{proc}/{pid}/maps", "rb", buffering=0) as file:
        while piece := file.read(_CHUNK_BYTES):
            lines, _, tail = (rest + piece).rpartition(b"\n")
            if found := find_torch(lines):
                return found
            rest = tail
    return find_torch(rest)


def read_torch(proc: str, pid: int, directory: str) -> TorchLibrary:
    """The version in `torch/version.py`, else in the metadata beside it, as the process sees these files.

    Never raises: what cannot be read (another user's, deleted) stays "".
    """
    try:
        root = open_root(pid, proc)
    except OSError:
        return TorchLibrary(directory=directory)
    try:
        text = _content(root, f"{directory}/version.py")
        version, device = parse_version_module(text)
        return TorchLibrary(
            directory=directory, version=version or _distribution_version(root, directory), device=device
        )
    finally:
        os.close(root)


def parse_version_module(text: bytes) -> tuple[str, str]:
    """Version and device of `torch/version.py`; "" for what is not there."""
    version, device = _VERSION.search(text), _CUDA.search(text)
    return (
        version[1].decode("utf-8", "replace") if version else "",
        f"{device[1].decode()} {device[2].decode('utf-8', 'replace')}" if device else "",
    )


def parse_metadata(text: bytes) -> str:
    """The version in a distribution's `METADATA`; "" when there is none."""
    found = _METADATA_VERSION.search(text)
    return found[1].decode("utf-8", "replace") if found else ""


def _distribution_version(root: int, directory: str) -> str:
    parent = os.path.dirname(directory)
    try:
        fd = open_beneath(root, parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return ""
    try:
        names = [name for name in os.listdir(fd) if _DISTRIBUTION.match(name)]
    finally:
        os.close(fd)
    if len(names) != 1:  # of several, nothing says which one is loaded
        return ""
    return parse_metadata(_content(root, f"{parent}/{names[0]}/METADATA")) or names[0][6:-10]


def _content(root: int, path: str) -> bytes:
    try:
        fd = open_beneath(root, path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, _LONGEST_FILE_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)
