"""The named lines of /proc/interrupts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles
from dynolog.sources.interrupts import InterruptCounts, InterruptsParser, InterruptsReader, count_line
from fakes.collector_context import HostTree

HEADER = b"           CPU0       CPU1       \n"
DEVICES = (
    b" 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n200:  7 8 PCI-MSIX-0000:00:05.0   0-edge      x\n"
)
NAMED = b"""NMI:          3          4   Non-maskable interrupts
LOC:      20670      21285   Local timer interrupts
ERR:          9
MIS:          0
PIN:          0          0   Posted-interrupt notification event
"""


def parse(data: bytes, parser: InterruptsParser | None = None) -> InterruptCounts:
    return (parser or InterruptsParser()).parse(data, len(data))


def test_named_lines_are_summed_and_numbered_ones_skipped() -> None:
    counts = parse(HEADER + DEVICES + NAMED)
    assert counts.classes == {"nmi": 7, "loc": 41955, "err": 9, "mis": 0, "pin": 0}
    assert counts.header == HEADER[:-1]


def test_numbered_lines_are_not_looked_at() -> None:
    """They may be anything; on 256 CPUs they are most of 1.7 MB."""
    assert parse(HEADER + b" 1: garbage : \n 2: x\n" + NAMED).classes["nmi"] == 7


def test_a_line_that_changes_back_is_summed_again() -> None:
    parser = InterruptsParser()
    for count in (5, 6, 5):
        assert parse(HEADER + b"NMI: %d 1 text\n" % count, parser).classes == {"nmi": count + 1}


@pytest.mark.parametrize("bad", [b"LOC: 5\n", b"LOC: x 5 text\n", b"LOC:\n", b"LOC 5 5 text\n", b"::\n", b"\n"])
def test_a_malformed_line_costs_only_itself(bad: bytes) -> None:
    assert parse(HEADER + b"NMI: 1 2 a\n" + bad + b"TLB: 3 4 b\n").classes == {"nmi": 3, "tlb": 7}


def test_arm_numbers_its_classes_and_the_text_tells_them_apart() -> None:
    assert count_line(b"IPI0:       10       20       Rescheduling interrupts", 2) == ("res", 30)
    assert count_line(b"IPI1:       1       2       Function call interrupts", 2) == ("cal", 3)
    assert count_line(b"IPI2:       1       2       CPU stop interrupts", 2) is None


def test_what_is_left_in_the_buffer_of_a_longer_reading_is_not_read(host_tree: HostTree) -> None:
    reader = InterruptsReader(HostFiles(str(host_tree.root)))
    host_tree.write("proc/interrupts", HEADER + DEVICES * 500 + NAMED)
    assert reader.read().classes["loc"] == 41955
    host_tree.write("proc/interrupts", HEADER + b"NMI: 1 1 text\n")
    assert reader.read().classes == {"nmi": 2}


def test_no_header_is_unavailable(host_tree: HostTree) -> None:
    host_tree.write("proc/interrupts", NAMED)
    with pytest.raises(SourceUnavailable, match="no header"):
        InterruptsReader(HostFiles(str(host_tree.root))).read()


PIECES = st.sampled_from(
    [b"CPU0", b"CPU1", b" ", b"\n", b":", b"LOC:", b"IPI1:", b"12", b"7:", b"text", b"\xff", b"ERR:"]
)


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=40).map(b"".join))
def test_any_bytes_parse_or_raise_valueerror(data: bytes) -> None:
    try:
        counts = parse(data)
    except ValueError:
        return
    assert all(isinstance(count, int) for count in counts.classes.values())
