"""Which PyTorch a process has mapped, and its version."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.torch_library import (
    TorchLibrary,
    find_torch,
    mapped_torch,
    parse_metadata,
    parse_version_module,
    read_torch,
)

LINE = b"7f21a0000000-7f21a0001000 r-xp 00000000 fd:01 131                        "
SITE = b"/opt/my env/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        (SITE + b"/torch/lib/libtorch_cpu.so", SITE + b"/torch"),
        (SITE + b"/torch/_C.cpython-311-x86_64-linux-gnu.so", SITE + b"/torch"),
        (SITE + b"/torch/lib/libtorch_python.so (deleted)", SITE + b"/torch"),
        (b"/opt/libtorch/lib/libtorch.so", b"/opt/libtorch"),
        (b"/usr/lib/x86_64-linux-gnu/libtorch.so.2.1", b"/usr/lib/x86_64-linux-gnu"),
        (SITE + b"/torchvision/_C.so", b""),
        (SITE + b"/numpy/core/_multiarray.so", b""),
        (b"", b""),
    ],
)
def test_the_package_is_found_by_its_mapped_files(path: bytes, directory: bytes) -> None:
    assert find_torch(b"55d0-55d1 r--p 00000000 fd:01 9 /usr/bin/python3.11\n" + LINE + path + b"\n") == os.fsdecode(
        directory
    )


def test_the_packages_own_module_wins_over_a_library_elsewhere() -> None:
    lines = (
        LINE
        + b"/usr/lib/x86_64-linux-gnu/libtorch.so.2.1\n"
        + LINE
        + b"/usr/lib/python3/dist-packages/torch/_C.cpython-311.so\n"
    )
    assert find_torch(lines) == "/usr/lib/python3/dist-packages/torch"


@given(st.binary())
def test_no_map_breaks_the_search(text: bytes) -> None:
    assert isinstance(find_torch(text), str)
    parse_version_module(text)
    parse_metadata(text)


@pytest.mark.parametrize("before", [0, 700, 65_500, 70_000])
def test_a_line_that_lies_across_two_reads_is_found(tmp_path: Path, before: int) -> None:
    (tmp_path / "7").mkdir()
    other = LINE + b"/usr/lib/libc.so.6\n"
    text = other * (before // len(other)) + LINE + SITE + b"/torch/lib/libtorch_cpu.so\n" + other * 10
    (tmp_path / "7/maps").write_bytes(text)
    assert mapped_torch(str(tmp_path), 7) == os.fsdecode(SITE + b"/torch")


def test_without_torch_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/maps").write_bytes((LINE + b"/usr/lib/libc.so.6\n") * 2000)
    assert mapped_torch(str(tmp_path), 7) == ""
    with pytest.raises(FileNotFoundError):
        mapped_torch(str(tmp_path), 8)


@pytest.mark.parametrize(
    ("text", "version", "device"),
    [
        (b"__version__ = '2.13.0+cpu'\ndebug = False\ncuda: Optional[str] = None\n", "2.13.0+cpu", ""),
        (b"__version__ = '2.4.1+cu124'\ncuda = '12.4'\nhip = None\n", "2.4.1+cu124", "cuda 12.4"),
        (
            b"__version__: str = \"2.5.0\"\ncuda: Optional[str] = None\nhip: Optional[str] = '6.1.40091'\n",
            "2.5.0",
            "hip 6.1.40091",
        ),
        (b"__version__ = '1.13.1'\n", "1.13.1", ""),
        (b"x__version__ = '9'\n", "", ""),
    ],
)
def test_the_version_module_is_read(text: bytes, version: str, device: str) -> None:
    assert parse_version_module(text) == (version, device)


@pytest.mark.parametrize(
    ("version", "release"), [("2.13.0+cpu", (2, 13)), ("1.13.1", (1, 13)), ("2.0a0", (2, 0)), ("", None), ("git", None)]
)
def test_major_and_minor_are_numbers(version: str, release: tuple[int, int] | None) -> None:
    assert TorchLibrary(directory="/t", version=version).release == release


def installation(root: Path, **files: str) -> None:
    (root / "proc/7").mkdir(parents=True)
    (root / "proc/7/root").symlink_to(root)
    (root / "site/torch").mkdir(parents=True)
    for name, text in files.items():
        path = root / "site" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_files_are_those_that_the_process_sees(tmp_path: Path) -> None:
    """The path is below the root of the process, not of the one that looks."""
    installation(tmp_path)
    (tmp_path / "site/torch/version.py").write_text("__version__ = '2.4.0'\ncuda = '12.1'\n")
    found = read_torch(str(tmp_path / "proc"), 7, "/site/torch")
    assert found == TorchLibrary(directory="/site/torch", version="2.4.0", device="cuda 12.1")


def test_without_a_version_module_the_metadata_counts(tmp_path: Path) -> None:
    installation(tmp_path)
    (tmp_path / "site/torch-2.1.2+cu118.dist-info").mkdir()
    assert read_torch(str(tmp_path / "proc"), 7, "/site/torch").version == "2.1.2+cu118"
    (tmp_path / "site/torch-2.1.2+cu118.dist-info/METADATA").write_text("Name: torch\nVersion: 2.1.2\n")
    assert read_torch(str(tmp_path / "proc"), 7, "/site/torch").version == "2.1.2"
    (tmp_path / "site/torch-2.0.0.dist-info").mkdir()
    assert read_torch(str(tmp_path / "proc"), 7, "/site/torch").version == "", "of two, none is known to be the one"


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    installation(tmp_path)
    assert read_torch(str(tmp_path / "proc"), 7, "/site/torch") == TorchLibrary(directory="/site/torch")
    assert read_torch(str(tmp_path / "proc"), 8, "/site/torch") == TorchLibrary(directory="/site/torch")
    assert read_torch(str(tmp_path / "proc"), 7, "/elsewhere/torch") == TorchLibrary(directory="/elsewhere/torch")
