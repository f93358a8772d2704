"""Frames from any pieces of any bytes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.rpc.framing import LENGTH, MAX_REQUEST_BYTES, FrameReader, FrameRefused, frame


@given(
    body=st.binary(min_size=1, max_size=300),
    cuts=st.lists(st.integers(0, 310), max_size=8),
    extra=st.binary(max_size=9),
)
def test_a_frame_is_read_whatever_pieces_it_comes_in(body: bytes, cuts: list[int], extra: bytes) -> None:
    data = frame(body) + extra
    reader = FrameReader()
    places = [0, *sorted(cut for cut in cuts if cut < len(body) + LENGTH.size), len(data)]
    results = [reader.feed(data[start:end]) for start, end in itertools.pairwise(places) if start < end]
    assert results[-1] == body
    assert set(results[:-1]) <= {None}
    assert reader.extra_bytes == len(extra)
    assert reader.held_bytes == 0


@pytest.mark.parametrize("length", [0, -1, -(2**31), 2**31 - 1, MAX_REQUEST_BYTES + 1])
def test_a_bad_length_is_refused_from_the_header_alone(length: int) -> None:
    """A19: nothing is kept, whatever follows."""
    reader = FrameReader()
    assert reader.feed(LENGTH.pack(length)[:3]) is None
    with pytest.raises(FrameRefused) as caught:
        reader.feed(LENGTH.pack(length)[3:])
    assert caught.value.length == length
    assert reader.held_bytes == 0


def test_the_largest_request_is_read() -> None:
    reader = FrameReader()
    data = frame(b"x" * MAX_REQUEST_BYTES)
    assert reader.feed(data[:70000]) is None
    assert reader.held_bytes == 70000
    assert reader.feed(data[70000:]) == b"x" * MAX_REQUEST_BYTES


@given(pieces=st.lists(st.binary(max_size=64), max_size=20))
def test_any_bytes_give_a_body_a_refusal_or_wait(pieces: list[bytes]) -> None:
    reader = FrameReader(limit_bytes=100)
    for piece in pieces:
        try:
            body = reader.feed(piece)
        except FrameRefused:
            return
        if body is not None:
            assert 1 <= len(body) <= 100
            return
        assert reader.held_bytes < 104
