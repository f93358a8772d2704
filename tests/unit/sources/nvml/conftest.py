"""A library that stands in for the driver's, built once, and processes that load it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fakes.nvml.backend_process import BackendProcess
from fakes.nvml.library import NvmlScript, build, environment

Start = Callable[..., BackendProcess]


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def start(nvml_library: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a process with the backend, not yet opened; with `without`, on a driver that lacks these functions."""
    with ExitStack() as stack:

        def begin(
            values: dict[str, object], without: Iterable[str] = (), root_dir: str = "/nonexistent"
        ) -> BackendProcess:
            script = NvmlScript(tmp_path / "script")
            script.set(values)
            library = build(tmp_path / "lacking", without) if without else nvml_library
            return stack.enter_context(BackendProcess(environment(library, script), script, root_dir))

        yield begin


@pytest.fixture
def opened(start: Start) -> Start:
    """Starts a process with the backend and opens it."""

    def begin(values: dict[str, object], without: Iterable[str] = (), root_dir: str = "/nonexistent") -> BackendProcess:
        process = start(values, without, root_dir)
        process.open()
        return process

    return begin
