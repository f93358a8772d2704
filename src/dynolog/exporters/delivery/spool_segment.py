"""The format of a spool's segment file: entries, each with its own checksums.

An entry is a header of 34 bytes and its data (kind, content type and body of a payload). Little-endian:

    marker 8 | number u32 | data bytes u32 | records u32 | kind bytes u16 | type bytes u16 | flags u8 | data CRC u32 |
    header CRC u32 | state u8

The marker is drawn at random for each segment and stands in the file's name, so that after a damaged entry the next one is found by
looking for it, and nothing in a payload is taken for one. Numbers count up. The state is outside of the checksum, because it is the one
byte that is written again when the entry was sent; it is read by the majority of its bits.
"""

import struct
import zlib
from collections.abc import Iterator

import msgspec

from dynolog.exporters.delivery.payload import Payload

MARKER_BYTES = 8
_FIELDS = struct.Struct("<8sIIIHHBI")
_CRC = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CRC.size + 1
_STATE_OFFSET = HEADER_BYTES - 1
_GZIPPED = 1
_UNSENT, _SENT = b"\x00", b"\xff"
_MAJORITY = 4


class Place(msgspec.Struct, frozen=True):
    """Where a whole entry stands in its segment, and how many records it holds."""

    offset: int
    size: int
    records: int


class Scan(msgspec.Struct):
    """What a look through a segment found: unsent entries in order, and how many records were in entries that are damaged.

    Where even the header is lost an entry counts as one record. `next_number` is free.
    """

    places: list[Place]
    damaged_records: int = 0
    next_number: int = 0


def encode_entry(payload: Payload, marker: bytes, number: int) -> bytes:
    """One entry, not sent yet."""
    kind, content_type = payload.kind.encode(), payload.content_type.encode()
    data = b"".join((kind, content_type, payload.body))
    fields = _FIELDS.pack(
        marker,
        number,
        len(data),
        payload.records,
        len(kind),
        len(content_type),
        _GZIPPED if payload.gzipped else 0,
        zlib.crc32(data),
    )
    return b"".join((fields, _CRC.pack(zlib.crc32(fields)), _UNSENT, data))


def state_of_sent(place: Place) -> tuple[int, bytes]:
    """What to write where, once an entry was sent."""
    return place.offset + _STATE_OFFSET, _SENT


def decode_entry(entry: bytes, marker: bytes) -> Payload | None:
    """The payload of a whole entry; None when it is damaged."""
    header = _header(entry, 0, marker)
    if header is None:
        return None
    _, size, records, kind_bytes, type_bytes, flags, crc = header
    data = entry[HEADER_BYTES : HEADER_BYTES + size]
    if len(data) != size or zlib.crc32(data) != crc:
        return None
    body_at = kind_bytes + type_bytes
    return Payload(
        body=data[body_at:],
        records=records,
        content_type=data[kind_bytes:body_at].decode(),
        kind=data[:kind_bytes].decode(),
        gzipped=bool(flags & _GZIPPED),
    )


def scan(segment: bytes, marker: bytes) -> Scan:
    """Look through a segment. A damaged entry costs only itself."""
    found = Scan([])
    view = memoryview(segment)
    end = 0
    for offset, (number, size, records, _, _, _, crc) in _headers(segment, marker):
        if number < found.next_number:
            continue  # a copy of an earlier block
        found.damaged_records += number - found.next_number
        found.next_number = number + 1
        data_at = offset + HEADER_BYTES
        end = data_at + size
        if end > len(segment) or zlib.crc32(view[data_at:end]) != crc:
            found.damaged_records += records
        elif segment[data_at - 1].bit_count() < _MAJORITY:
            found.places.append(Place(offset, HEADER_BYTES + size, records))
    found.damaged_records += end < len(segment)
    return found


_Header = tuple[int, int, int, int, int, int, int]


def _headers(segment: bytes, marker: bytes) -> Iterator[tuple[int, _Header]]:
    offset = segment.find(marker)
    while offset >= 0:
        header = _header(segment, offset, marker)
        if header is not None:
            yield offset, header
        offset = segment.find(marker, offset + 1)


def _header(segment: bytes, offset: int, marker: bytes) -> _Header | None:
    fields = segment[offset : offset + _FIELDS.size]
    crc = segment[offset + _FIELDS.size : offset + _FIELDS.size + _CRC.size]
    if len(crc) < _CRC.size or _CRC.unpack(crc)[0] != zlib.crc32(fields):
        return None
    found, *rest = _FIELDS.unpack(fields)
    if found != marker:
        return None
    number, size, records, kind_bytes, type_bytes, flags, data_crc = rest
    return number, size, records, kind_bytes, type_bytes, flags, data_crc
