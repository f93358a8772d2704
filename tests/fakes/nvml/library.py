"""Builds a libnvidia-ml.so.1 without a driver, and tells it what to say."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

_SOURCES = Path(__file__).parent
_NAME = "libnvidia-ml.so.1"


def build(folder: Path, without: Iterable[str] = ()) -> Path:
    """Compile the library into `folder`; a driver that lacks the functions `without` is a library that does not export them."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / _NAME
    arguments = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{_NAME}", "-o", str(library)]
    hidden = "".join(f" {name};" for name in without)
    if hidden:
        exports = folder / "exports.map"
        exports.write_text("{ global: *; local:" + hidden + " };\n")
        arguments.append(f"-Wl,--version-script={exports}")
    sources = [str(_SOURCES / name) for name in ("script.c", "devices.c", "library.c", "lists.c")]
    subprocess.run([compiler(), *arguments, *sources], check=True)
    return library


def abi() -> str:
    """What print_abi.c prints, compiled in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/print_abi"
        subprocess.run([compiler(), "-Wall", "-Werror", "-o", program, str(_SOURCES / "print_abi.c")], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def compiler() -> str:
    """The C compiler. Fails the test when there is none: `apt-get install gcc libc6-dev`."""
    found = shutil.which("gcc") or shutil.which("cc")
    assert found, "no C compiler: apt-get install gcc libc6-dev"
    return found


class NvmlScript:
    """What the library says, from now on (see script.h for the keys)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, str] = {}
        self._write()

    def set(self, values: Mapping[str, object]) -> None:
        """Change or add values; None takes one out."""
        for key, value in values.items():
            if value is None:
                self._lines.pop(key, None)
            else:
                self._lines[key] = str(value)
        self._write()

    def _write(self) -> None:
        # A new file each time: the library looks at the inode and the time of the last change.
        fresh = self.path.with_suffix(".new")
        lines = "".join(f"{key} {value}\n" for key, value in self._lines.items())
        fresh.write_bytes(lines.encode("utf-8", "surrogateescape"))  # what a library says may be any bytes
        fresh.rename(self.path)


def environment(library: Path, script: NvmlScript) -> dict[str, str]:
    """For a process that is to find the library."""
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_SCRIPT": str(script.path)}
