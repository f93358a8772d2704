"""A fake libdcgm of each major, built once, and a rig on it for each test."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fakes.dcgm.library import MAJORS, DcgmScript, Rig, build


@pytest.fixture(scope="session")
def dcgm_libraries(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Path]:
    """The libraries by major."""
    return {major: build(tmp_path_factory.mktemp(f"dcgm{major}"), major) for major in MAJORS}


@pytest.fixture
def dcgm_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DcgmScript:
    """What the libraries of this process play."""
    script = DcgmScript(tmp_path)
    for name, value in script.environment().items():
        monkeypatch.setenv(name, value)
    script.write()
    return script


@pytest.fixture(params=MAJORS, ids=lambda major: f"dcgm{major}")
def rig(
    request: pytest.FixtureRequest, dcgm_libraries: Mapping[int, Path], dcgm_script: DcgmScript, tmp_path: Path
) -> Iterator[Rig]:
    """A rig for each major."""
    made = Rig(dcgm_libraries[request.param], dcgm_script, str(tmp_path / "root"))
    yield made
    made.close()
