"""Files of lines `name number`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.meminfo import parse as parse_meminfo
from dynolog.sources.named_numbers import parse
from dynolog.sources.numa import parse_meminfo as parse_node_meminfo


def test_only_the_names_asked_for_and_there() -> None:
    assert parse(b"pgfault 12\npgmajfault 3\nother 4\n", ("pgfault", "oom_kill")) == {"pgfault": 12}


@pytest.mark.parametrize("bad", [b"lonely\n", b"three 1 2\n", b"text abc\n", b"\n", b"float 1.5\n"])
def test_a_malformed_line_costs_only_itself(bad: bytes) -> None:
    assert parse(b"first 1\n" + bad + b"last 2\n", ("first", "last", "text", "float", "three", "lonely")) == {
        "first": 1,
        "last": 2,
    }


def test_meminfo_fields_with_and_without_a_unit() -> None:
    data = b"MemTotal:       24684096 kB\nActive(anon):   1588 kB\nHugePages_Total:       7\n"
    assert parse_meminfo(data, ("MemTotal:", "HugePages_Total:", "MemFree:")) == {
        "MemTotal:": 24684096,
        "HugePages_Total:": 7,
    }


def test_node_meminfo() -> None:
    data = b"Node 3 MemTotal:        4024536 kB\nNode 3 MemFree:         x kB\nNode 3 MemUsed:          804860 kB\n"
    assert parse_node_meminfo(data) == {"MemTotal": 4024536, "MemUsed": 804860}


PIECES = st.sampled_from([b"a", b"b", b" ", b"\n", b"1", b"-", b" kB", b":", b"Node 0 MemTotal:", b"\xff", b"\x85"])


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=40).map(b"".join))
def test_any_bytes_parse(data: bytes) -> None:
    parse(data, ("a", "b", "1"))
    parse_meminfo(data, ("a:", "b:"))
    parse_node_meminfo(data)


@given(st.dictionaries(st.from_regex(r"[a-z_0-9]{1,20}", fullmatch=True), st.integers(0, 2**64 - 1)))
def test_what_is_written_is_read_back(numbers: dict[str, int]) -> None:
    data = "".join(f"{name} {number}\n" for name, number in numbers.items()).encode()
    assert parse(data, numbers) == numbers
