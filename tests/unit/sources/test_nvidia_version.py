"""Versions of NVIDIA's driver and libraries, by their files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.nvidia_version import driver_version, find_library, library_version, parse_driver_version
from fakes.proc_tree import ProcTree

CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc 12\n"
)
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (root@h)  Thu 2025\n"


@pytest.mark.parametrize(
    ("text", "version"), [(CLOSED, "550.54.15"), (OPEN, "570.124.06"), ("", ""), ("NVRM version: x", "")]
)
def test_both_kinds_of_driver_say_their_version(text: str, version: str) -> None:
    assert parse_driver_version(text) == version


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    parse_driver_version(text)


def test_a_driver_that_is_not_loaded_is_told_from_one_that_does_not_say(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    assert driver_version(tree.host) is None
    tree.write("proc/driver/nvidia/version", "?")
    assert driver_version(tree.host) == ""
    tree.write("proc/driver/nvidia/version", CLOSED)
    assert driver_version(tree.host) == "550.54.15"


def test_a_library_is_found_and_tells_its_version_by_its_link(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    assert find_library(tree.host, "libnvidia-ml.so.1") == ""
    tree.write("usr/lib64/libnvidia-ml.so.550.90.07", "")
    (tmp_path / "usr/lib64/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.550.90.07")
    found = find_library(tree.host, "libnvidia-ml.so.1")
    assert found == str(tmp_path / "usr/lib64/libnvidia-ml.so.1")
    assert library_version(found) == "550.90.07"


def test_libdcgm_has_any_number(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    tree.write("usr/lib/x86_64-linux-gnu/libdcgm.so.4", "")
    assert find_library(tree.host, "libdcgm.so").endswith("/libdcgm.so.4")
    assert library_version(find_library(tree.host, "libdcgm.so")) == ""
