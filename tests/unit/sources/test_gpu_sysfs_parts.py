"""What the backends of AMD and Intel share: links, names, files that stay open, growth."""

import errno
import gc
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources import pci_ids
from dynolog.sources.growth import Growth
from dynolog.sources.host_files import HostFiles
from dynolog.sources.open_attribute import OpenAttributes, refusal
from dynolog.sources.pcie_link import generation, lanes, link_folder
from fakes.drm_tree import DrmTree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5 GT/s PCIe", 1),
        ("5.0 GT/s PCIe", 2),
        ("8.0 GT/s PCIe", 3),
        ("16.0 GT/s PCIe", 4),
        ("32.0 GT/s PCIe", 5),
        ("64.0 GT/s PCIe", 6),
        ("8 GT/s", 3),
        ("Unknown", None),
        ("Unknown speed", None),
        ("nan GT/s", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_the_generation_of_a_link(text: str | None, expected: int | None) -> None:
    assert generation(text) == expected


def test_the_width_of_a_device_that_fell_off_the_bus_is_missing() -> None:
    assert [lanes(text) for text in ("16\n", "1", "0", "63", "255", "1" * 5000, "Unknown", "²", "", None)] == [
        16, 1, None, None, None, None, None, None, None, None
    ]  # fmt: skip


@given(st.text(max_size=20))
def test_any_text_of_a_link_is_a_number_or_nothing(text: str) -> None:
    assert generation(text) in (None, 1, 2, 3, 4, 5, 6)
    assert lanes(text) is None or 1 <= (lanes(text) or 0) <= 32


def test_a_switch_of_another_maker_is_not_the_boards(tmp_path: Path) -> None:
    """A server's switch between the slot and the processor: the device's own link is the one to the slot."""
    tree = DrmTree(tmp_path)
    tree.bridge("0000:00:01.0", 0x8086)
    tree.bridge("0000:00:01.0/0000:01:00.0", 0x10B5)
    tree.bridge("0000:00:01.0/0000:01:00.0/0000:02:00.0", 0x10B5)
    folder = tree.pci("0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", 0x1002, 0x74A1, 0x120000)
    assert link_folder(HostFiles(str(tmp_path)), folder) == folder


def test_a_root_port_of_the_same_maker_is_not_the_boards_switch(tmp_path: Path) -> None:
    tree = DrmTree(tmp_path)
    tree.bridge("0000:00:01.0", 0x8086)
    tree.bridge("0000:00:01.0/0000:01:00.0", 0x8086)
    folder = tree.pci("0000:00:01.0/0000:01:00.0/0000:02:00.0", 0x8086, 0x56C0, 0x038000)
    assert link_folder(HostFiles(str(tmp_path)), folder) == folder


LIST = (
    b"# head\n1002  AMD\n\t73df  Navi 22\n\t\t1002 0e36  A board\n\tzzzz  no number\n\n"
    b"\t744c  Navi 31 \xff\n1003  ULSI\n\t73df  Not AMD's\n"
)


def test_names_are_those_of_the_maker() -> None:
    assert pci_ids.parse(LIST, 0x1002, {0x73DF, 0x744C, 0x1111}) == {0x73DF: "Navi 22", 0x744C: "Navi 31 �"}
    assert pci_ids.parse(LIST, 0x8086, {0x73DF}) == {}
    # The first line of a list may be a maker's.
    assert pci_ids.parse(b"1002  AMD\n\t0001  One", 0x1002, {1}) == {1: "One"}
    assert pci_ids.name_or_ids({}, "AMD", 0x1002, 0x73DF) == "AMD 1002:73df"


@given(st.binary(max_size=200))
def test_any_list_of_names_is_read_without_error(text: bytes) -> None:
    pci_ids.parse(text, 0x1002, {0x73DF})
    pci_ids.parse(b"1002  AMD\n" + text, 0x1002, {0x73DF})


def test_growth_a_second_needs_two_readings_time_and_a_counter_that_goes_up() -> None:
    growth = Growth()
    assert growth.per_second("x", 100, 1_000_000_000) is None
    assert growth.per_second("x", 150, 3_000_000_000) == 25
    assert growth.per_second("x", 160, 3_000_000_000) is None
    assert growth.per_second("x", 5, 4_000_000_000) is None
    assert growth.per_second("x", 6, 5_000_000_000) == 1
    growth.forget()
    assert growth.per_second("x", 7, 6_000_000_000) is None


def test_an_attribute_is_read_anew_and_says_why_it_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "busy"
    attribute = OpenAttributes(8).at(str(path))
    assert (attribute.read(), attribute.error) == (None, errno.ENOENT)
    path.write_text("7\n")
    assert (attribute.integer(), attribute.error) == (7, 0)
    path.write_text("N/A\n")
    assert (attribute.integer(), attribute.error) == (None, 0)
    assert refusal([attribute]) == ""
    assert refusal([]) == ""
    attribute.close()


def test_beyond_their_share_of_descriptors_files_are_opened_for_each_read(tmp_path: Path) -> None:
    pool = OpenAttributes(2)
    attributes = []
    for number in range(4):
        (tmp_path / str(number)).write_text(f"{number}\n")
        attributes.append(pool.at(str(tmp_path / str(number))))
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        assert [attribute.integer() for attribute in attributes] == [0, 1, 2, 3]
        assert len(os.listdir("/proc/self/fd")) == before + 2
    for attribute in attributes:
        attribute.close()
    assert (len(os.listdir("/proc/self/fd")), pool.left) == (before, 2)
