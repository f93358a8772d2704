"""Builds a libdcgm without GPUs, tells it what to say, and makes backends on it whose clocks the test sets."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from dynolog.model.gpu import GpuReading, GpuSample
from dynolog.sources.dcgm.backend import DcgmBackend
from dynolog.sources.gpu_backend import GpuOptions

_SOURCES = Path(__file__).parent
MAJORS = (2, 3, 4)
DEFAULT_FIELDS = tuple(map(str, (50, 54, 100, 155, 204, *range(1001, 1013))))
START_S = 1_700_000_000


def compiler() -> str:
    """The C compiler. Fails the test when there is none."""
    found = shutil.which("gcc") or shutil.which("cc")
    assert found, "no C compiler: apt-get install gcc libc6-dev"
    return found


def build(folder: Path, major: int, without: Iterable[str] = ()) -> Path:
    """Compile a library of that major into `folder`; one `without` functions does not export them."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"libdcgm.so.{major}"
    library = folder / name
    arguments = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
    arguments += [f"-DDCGM_MAJOR={major}", f"-Wl,-soname,{name}", "-o", str(library)]
    hidden = "".join(f" {function};" for function in without)
    exports = folder / "exports.map"
    exports.write_text("{ global: dcgm*; DcgmField*; local:" + hidden + " *; };\n")
    if hidden:
        exports.write_text("{ global: *; local:" + hidden + " };\n")
    arguments.append(f"-Wl,--version-script={exports}")
    sources = [str(_SOURCES / source) for source in ("script.c", "engine.c", "library.c")]
    subprocess.run([compiler(), *arguments, *sources], check=True)
    return library


def abi(folder: Path, major: int) -> dict[str, int]:
    """What a C compiler makes of dcgm_abi.h."""
    program = folder / f"print_abi{major}"
    subprocess.run(
        [compiler(), "-Wall", "-Werror", f"-DDCGM_MAJOR={major}", "-o", str(program), str(_SOURCES / "print_abi.c")],
        check=True,
    )
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


class DcgmScript:
    """What the library says, from now on: lines as script.h describes them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "script"
        self.log_path = folder / "calls"
        self._lines: list[str] = []
        self.now_us = START_S * 1_000_000
        self.is_on_real_clock = False

    def say(self, *lines: str) -> None:
        """Add lines."""
        self._lines += lines
        self.write()

    def take_back(self, beginning: str) -> None:
        """Remove the lines that begin so."""
        self._lines = [line for line in self._lines if not line.startswith(beginning)]
        self.write()

    def write(self) -> None:
        """Put the script where the library reads it."""
        fresh = self.path.with_suffix(".new")
        clock = [] if self.is_on_real_clock else [f"now {self.now_us}"]
        fresh.write_text("\n".join([*clock, *self._lines]) + "\n")
        fresh.rename(self.path)

    def environment(self) -> dict[str, str]:
        """For a process that is to play it."""
        return {"FAKE_DCGM_SCRIPT": str(self.path), "FAKE_DCGM_LOG": str(self.log_path)}

    def calls(self, function: str) -> list[str]:
        """The arguments of each call of a function that is logged."""
        text = self.log_path.read_text() if self.log_path.exists() else ""
        return [line.removeprefix(function).strip() for line in text.splitlines() if line.split()[0] == function]


class Rig:
    """A backend on a fake library, with the engine's clock and ours in one hand."""

    def __init__(self, library: Path, script: DcgmScript, root_dir: str = "/nonexistent") -> None:
        self.library = library
        self.script = script
        self._root_dir = root_dir
        self.engine_answers = False
        self.backends: list[DcgmBackend] = []
        script.write()

    def backend(
        self, *fields: str, interval_s: float = 10.0, address: str = "auto", opened: bool = True
    ) -> DcgmBackend:
        """A backend; without `fields` with the default ones."""
        options = GpuOptions(
            backend="dcgm",
            interval_s=interval_s,
            root_dir=self._root_dir,
            dcgm_lib_path=str(self.library),
            dcgm_fields=fields or DEFAULT_FIELDS,
            dcgm_standalone_address=address,
        )
        backend = DcgmBackend(
            options,
            clock=lambda: self.script.now_us / 1e6,
            wall_us=lambda: self.script.now_us,
            probe=lambda: self.engine_answers,
        )
        self.backends.append(backend)
        if opened:
            backend.open()
        return backend

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.script.now_us += round(seconds * 1e6)
        self.script.write()

    def next_sample(self, backend: DcgmBackend, seconds: float = 10.0) -> GpuSample:
        """The sample of one interval later."""
        self.advance(seconds)
        return backend.sample()

    def close(self) -> None:
        """Close all backends."""
        for backend in self.backends:
            backend.close()


def of(sample: GpuSample, gpu: int, instance: tuple[int, int | None] | None = None) -> GpuReading:
    """The reading of a GPU, or of one of its instances."""
    wanted = instance or (None, None)
    for reading in sample.readings:
        if reading.device == str(gpu) and (reading.gpu_instance_id, reading.compute_instance_id) == wanted:
            return reading
    raise AssertionError(f"no reading of GPU {gpu} {instance or ''} in {[one.identity for one in sample.readings]}")


def notices(sample: GpuSample) -> Mapping[str, str]:
    """What was said, by key."""
    return dict(sample.notices)
