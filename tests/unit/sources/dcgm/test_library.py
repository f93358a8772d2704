"""Which libdcgm is taken, how its version is known, and what is said when there is none that fits."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.dcgm import library as dcgm_library
from dynolog.sources.dcgm.connection import connect
from fakes.dcgm.library import MAJORS, DcgmScript, Rig, build


@pytest.mark.parametrize("major", MAJORS)
def test_the_library_itself_says_its_version(
    dcgm_libraries: Mapping[int, Path], dcgm_script: DcgmScript, tmp_path: Path, major: int
) -> None:
    """B14: not the name of the file: here each lies behind the default name."""
    place = tmp_path / "libdcgm.so"
    place.symlink_to(dcgm_libraries[major])
    found = dcgm_library.load(str(place), (), ())
    assert (found.major, found.path) == (major, str(place))
    assert found.version.startswith(f"{major}.")


def test_versions_beside_the_given_path_are_tried_newest_first(
    dcgm_libraries: Mapping[int, Path], dcgm_script: DcgmScript, tmp_path: Path
) -> None:
    """B14: only libdcgm.so.3 and .2 are there; the flag says libdcgm.so."""
    for major in (2, 3):
        shutil.copy(dcgm_libraries[major], tmp_path / f"libdcgm.so.{major}")
    assert dcgm_library.load(str(tmp_path / "libdcgm.so"), (), ()).major == 3


def test_usual_folders_are_looked_through(
    dcgm_libraries: Mapping[int, Path], dcgm_script: DcgmScript, tmp_path: Path
) -> None:
    shutil.copy(dcgm_libraries[4], tmp_path / "libdcgm.so.4")
    found = dcgm_library.load("/nonexistent/libdcgm.so", ("/nonexistent", str(tmp_path)), ())
    assert found.path == str(tmp_path / "libdcgm.so.4")


def test_a_place_that_is_a_link_to_another_is_tried_once(tmp_path: Path) -> None:
    (tmp_path / "libdcgm.so.4").write_bytes(b"")
    (tmp_path / "libdcgm.so").symlink_to("libdcgm.so.4")
    places = list(dcgm_library.candidates(str(tmp_path / "libdcgm.so"), (str(tmp_path),), ()))
    assert places[0] == str(tmp_path / "libdcgm.so")
    assert sum("/" in place for place in places) == 1


def test_no_library_is_said_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"neither at .*install the package.*--dcgm_lib_path"):
        dcgm_library.load(str(tmp_path / "libdcgm.so"), (str(tmp_path),), ())


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "libdcgm.so").write_bytes(b"garbage")
    with pytest.raises(SourceUnavailable, match="cannot be loaded"):
        dcgm_library.load(str(tmp_path / "libdcgm.so"), (), ())


def test_a_damaged_library_does_not_hide_a_good_one(
    dcgm_libraries: Mapping[int, Path], dcgm_script: DcgmScript, tmp_path: Path
) -> None:
    (tmp_path / "libdcgm.so").write_bytes(b"garbage")
    shutil.copy(dcgm_libraries[4], tmp_path / "libdcgm.so.4")
    assert dcgm_library.load(str(tmp_path / "libdcgm.so"), (), ()).major == 4


@pytest.mark.parametrize("version", ["1.8.0", "5.0.1", "17.2.9"])
def test_a_version_that_is_not_known_is_refused_politely(rig: Rig, version: str) -> None:
    """B14."""
    rig.script.say(f"version {version}")
    with pytest.raises(
        SourceUnavailable, match=rf"is DCGM {version}, and this version knows 2, 3 and 4: install DCGM 4"
    ):
        dcgm_library.load(str(rig.library), (), ())


def test_a_version_that_cannot_be_told_is_refused_politely(rig: Rig) -> None:
    """B14: a library that does not take the structure (DCGM 1), or answers nonsense."""
    rig.script.say("fail dcgmVersionInfo -12 0")
    with pytest.raises(SourceUnavailable, match=r"does not say its version: version mismatch \(-12\): install DCGM"):
        dcgm_library.load(str(rig.library), (), ())
    rig.script.take_back("fail")
    rig.script.say("version unknown")
    with pytest.raises(SourceUnavailable, match="does not say its version"):
        dcgm_library.load(str(rig.library), (), ())


def test_a_host_engine_of_another_major_is_refused_politely(rig: Rig) -> None:
    """B14."""
    other = 4 if rig.library.name[-1] != "4" else 3
    rig.script.say(f"engineversion {other}.1.0")
    with pytest.raises(
        SourceUnavailable, match=rf"is DCGM {other}\.1\.0, and .* --dcgm_lib_path at libdcgm.so.{other}"
    ):
        rig.backend(address="localhost")
    rig.script.take_back("engineversion")
    rig.script.say("fail dcgmConnect_v2 -12 0")
    rig.engine_answers = True
    with pytest.raises(SourceUnavailable, match="library and host engine are of different versions"):
        rig.backend(address="auto")


def test_an_engine_that_does_not_start_is_said_with_the_remedy(rig: Rig) -> None:
    rig.script.say("fail dcgmStartEmbedded -25 0")
    with pytest.raises(SourceUnavailable, match="install or load the driver"):
        rig.backend()
    rig.script.say("fail dcgmInit -7 0")
    with pytest.raises(SourceUnavailable, match="could not be initialised"):
        rig.backend()


def test_a_function_that_is_missing_is_named(tmp_path: Path, dcgm_script: DcgmScript) -> None:
    """B14: required ones refuse the library, others cost what they do."""
    broken = build(tmp_path / "broken", 4, without=["dcgmWatchFields"])
    with pytest.raises(SourceUnavailable, match="lacks the function dcgmWatchFields"):
        dcgm_library.load(str(broken), (), ())
    optional = ["dcgmGetValuesSince_v2", "dcgmGetGpuInstanceHierarchy", "dcgmProfPause", "dcgmHostengineVersionInfo"]
    rig = Rig(build(tmp_path / "old", 4, without=optional), dcgm_script)
    backend = rig.backend(address="localhost")
    sample = backend.sample()
    assert sample.seen == 8
    assert not backend.pause_profiling()
    backend.close()


def test_a_session_ends_with_its_library_shut_down(rig: Rig) -> None:
    loaded = dcgm_library.load(str(rig.library), (), ())
    connect(loaded, "embedded", lambda: False).close()
    assert len(rig.script.calls("dcgmShutdown")) == 1
    rig.script.say("fail dcgmStartEmbedded -3 0")
    with pytest.raises(SourceUnavailable):
        connect(loaded, "", lambda: False)
    assert len(rig.script.calls("dcgmShutdown")) == 2
