"""The segment format: whatever happens to a file, every entry that is whole comes back, in order, and none is invented."""

from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool_segment import (
    HEADER_BYTES,
    Place,
    decode_entry,
    encode_entry,
    scan,
    state_of_sent,
)

MARKER = b"\x00marker\xff"
payloads = st.builds(
    Payload,
    # Bodies that hold the marker or parts of it are the hard ones.
    body=st.one_of(st.binary(max_size=60), st.sampled_from([MARKER[:7], b"", b"\x00" * 40, MARKER[4:]])),
    records=st.integers(0, 2**32 - 1),
    content_type=st.sampled_from(["", "application/x-protobuf", "té"]),
    kind=st.sampled_from(["", "/v1/metrics"]),
    gzipped=st.booleans(),
)
segments = st.lists(payloads, min_size=1, max_size=6)


def segment_of(entries: list[Payload]) -> tuple[bytes, list[int]]:
    """A file, and where each entry starts."""
    data, starts = b"", []
    for number, payload in enumerate(entries):
        starts.append(len(data))
        data += encode_entry(payload, MARKER, number)
    return data, starts


def back(data: bytes) -> list[Payload]:
    found = [
        decode_entry(data[place.offset : place.offset + place.size], MARKER) for place in scan(data, MARKER).places
    ]
    assert None not in found
    return [payload for payload in found if payload is not None]


def is_part_of(some: list[Payload], all_of_them: list[Payload]) -> bool:
    """Whether the one comes from the other by leaving some out."""
    rest = iter(all_of_them)
    return all(payload in rest for payload in some)


@given(segments)
def test_entries_come_back_as_they_were(entries: list[Payload]) -> None:
    data, _ = segment_of(entries)
    assert back(data) == entries
    assert scan(data, MARKER).damaged_records == 0


@given(segments, st.data())
def test_any_flipped_bits_cost_only_their_own_entry(entries: list[Payload], draw: st.DataObject) -> None:
    data, starts = segment_of(entries)
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = bytearray(data)
    damaged[at] ^= draw.draw(st.integers(1, 255))
    hit = max(index for index, start in enumerate(starts) if start <= at)
    rest = entries[:hit] + entries[hit + 1 :]
    if at == starts[hit] + HEADER_BYTES - 1:
        # The state: the payload itself is whole, and whether it counts as sent is what most of the bits say.
        assert back(bytes(damaged)) in (entries, rest)
    else:
        assert back(bytes(damaged)) == rest
        assert scan(bytes(damaged), MARKER).damaged_records >= min(entries[hit].records, 1)


@given(segments, st.data())
def test_a_cut_end_costs_only_what_was_cut(entries: list[Payload], draw: st.DataObject) -> None:
    data, starts = segment_of(entries)
    end = draw.draw(st.integers(0, len(data)))
    whole = [payload for payload, after in zip(entries, [*starts[1:], len(data)], strict=True) if after <= end]
    assert back(data[:end]) == whole


@given(segments, st.data())
def test_bytes_missing_or_strange_bytes_inside_cost_only_the_entries_they_touch(
    entries: list[Payload], draw: st.DataObject
) -> None:
    data, starts = segment_of(entries)
    first = draw.draw(st.integers(0, len(data)))
    last = draw.draw(st.integers(first, len(data)))
    damaged = data[:first] + draw.draw(st.binary(max_size=40)) + data[last:]
    spans = zip(entries, starts, [*starts[1:], len(data)], strict=True)
    untouched = [payload for payload, start, end in spans if end <= first or start >= last]
    found = back(damaged)
    assert is_part_of(untouched, found)
    assert is_part_of(found, entries)


@given(segments, st.integers(0, 7))
def test_an_entry_marked_as_sent_does_not_come_back_even_with_a_flipped_bit(entries: list[Payload], bit: int) -> None:
    data = bytearray(segment_of(entries)[0])
    place = scan(bytes(data), MARKER).places[0]
    offset, state = state_of_sent(place)
    data[offset : offset + 1] = state
    data[offset] ^= 1 << bit
    assert back(bytes(data)) == entries[1:]


@given(segments)
def test_a_block_that_stands_twice_is_taken_once(entries: list[Payload]) -> None:
    data, _ = segment_of(entries)
    assert back(data + data) == entries


@given(st.binary(max_size=300))
def test_noise_holds_nothing(noise: bytes) -> None:
    assert scan(noise, MARKER).places == []
    assert scan(MARKER + noise, MARKER).places == []


def test_the_size_of_an_entry_is_told() -> None:
    data, _ = segment_of([Payload(body=b"abc", records=7, kind="k", content_type="t")])
    assert scan(data, MARKER).places == [Place(0, HEADER_BYTES + 5, 7)]
    assert len(data) == HEADER_BYTES + 5
