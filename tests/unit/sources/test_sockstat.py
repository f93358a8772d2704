"""Parsing of /proc/net/sockstat."""

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.sockstat import parse


def test_pairs_of_name_and_number() -> None:
    data = b"sockets: used 19\nTCP: inuse 3 orphan 0 tw 1 alloc 3 mem 617\nFRAG: inuse 0 memory 0\n"
    counts = parse(data)
    assert counts[b"sockets", b"used"] == 19
    assert counts[b"TCP", b"mem"] == 617
    assert len(counts) == 8


def test_what_does_not_parse_costs_only_itself() -> None:
    assert parse(b"TCP: inuse x tw 4 mem -3 alloc\nnonsense\n: \n") == {(b"TCP", b"tw"): 4}


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    assert all(value >= 0 for value in parse(data).values())
