"""Parsing of /proc/net/dev."""

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.net_dev import parse

HEADER = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
)


def line(name: str, rx: str = "1 2 3 4", tx: str = "5 6 7 8", colon: str = ": ") -> bytes:
    return f"{name:>6}{colon}{rx} 0 0 0 0 {tx} 0 0 0 0\n".encode()


def test_the_columns_are_bytes_packets_errors_drops_both_ways() -> None:
    assert parse(HEADER + line("eth0")) == {"eth0": (1, 2, 3, 4, 5, 6, 7, 8)}


def test_the_name_ends_at_the_last_colon() -> None:
    """D07: an alias with a colon in its name, and a number right after the colon."""
    data = (
        HEADER
        + line("ibr10:30", "0 0 0 0")
        + line("eth0", "4046496815 27661328 0 0", colon=":")
        + line("a:b", colon=":")
    )
    assert parse(data) == {
        "ibr10:30": (0, 0, 0, 0, 5, 6, 7, 8),
        "eth0": (4046496815, 27661328, 0, 0, 5, 6, 7, 8),
        "a:b": (1, 2, 3, 4, 5, 6, 7, 8),
    }


def test_a_malformed_line_costs_only_itself() -> None:
    """Torn, too few columns, text for a number, below 0, no name, a name of 16 characters or with a space in it."""
    bad = (
        b"eth1: 1 2 3\n"
        + line("eth2", "1 x 3 4")
        + line("eth3", "1 -2 3 4")
        + line("")
        + line("a" * 16)
        + line("eth 4")
        + b"eth5 1 2 3 4\n\n\x00\xff\n"
    )
    assert parse(HEADER + bad + line("a" * 15)) == {"a" * 15: (1, 2, 3, 4, 5, 6, 7, 8)}


def test_only_names_that_begin_as_asked() -> None:
    data = HEADER + line("lo") + line("eth0") + line("enp1s0") + line("veth12")
    assert list(parse(data, (b"eth", b"enp"))) == ["eth0", "enp1s0"]


def test_a_name_that_is_not_utf8_is_still_a_text_of_its_own() -> None:
    names = list(parse(b"\xff0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n\xfe0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n"))
    assert names == ["\\xff0", "\\xfe0"]


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    for counters in parse(data).values():
        assert len(counters) == 8
        assert min(counters) >= 0


@given(st.lists(st.integers(0, 2**64 - 1), min_size=16, max_size=20), st.binary(max_size=60))
def test_a_good_line_survives_whatever_stands_around_it(numbers: list[int], noise: bytes) -> None:
    data = noise + b"\n  eth9: " + b" ".join(b"%d" % number for number in numbers) + b"\n" + noise
    assert parse(data)["eth9"] == (*numbers[:4], *numbers[8:12])
