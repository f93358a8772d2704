"""Reading the latest values of many fields of many entities at once, and sorting out what they are.

dcgmEntitiesGetLatestValues fills one array with all of it: one call for a dozen entities, no callback into Python for each value (the
other way, dcgmGetLatestValues_v2, calls back 1,440 times for 72 entities and 20 fields). The array is used again for every call, and only
the first 40 bytes of each 4 kB value are looked at, unless it is a text.
"""

import ctypes
import struct
from collections.abc import Mapping, Sequence
from itertools import count

from dynolog.sources.dcgm import blanks, codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.connection import Connection
from dynolog.sources.dcgm.fields import DRIVER_VERSION, Field, Role, active_reasons

Entity = tuple[int, int]  # entity group, entity

# Of dcgmFieldValue_v2: version, entity group, entity, field, type, status, unused, time in µs, the value as an integer.
_HEAD = struct.Struct("<IIIHHiIqq4088x")
_DOUBLE = struct.Struct("<d")
_FIELD_OFFSET, _VALUE_OFFSET = 12, 32
_STRIDE = _HEAD.size
# Engines before 3.1 pack an answer into 16 kB and cut off what does not fit, which makes the whole call fail: 24 bytes beside each value.
_ANSWER_BYTES = 16384
_NUMBER_BYTES, _TEXT_BYTES = 32, 24 + structs.MAX_STRING
_TOO_MUCH = (codes.GENERIC_ERROR, codes.INSUFFICIENT_SIZE)
_LOST = (codes.GPU_IS_LOST, codes.RESET_REQUIRED)
_UNSUPPORTED = codes.FIELD_REFUSED | codes.NO_PROFILING


class Gathered:
    """What one entity answered in a round."""

    __slots__ = ("answered", "blank", "broken", "counters", "error", "oldest_us", "properties", "unsupported", "values")

    def __init__(self) -> None:
        self.values: dict[str, int | float | str] = {}
        self.counters: dict[str, int | float] = {}
        self.properties: dict[int, int | str] = {}
        self.blank: set[int] = set()
        self.unsupported: set[int] = set()
        self.answered: set[int] = set()
        self.broken: set[str] = set()  # keys of which a part is missing
        self.oldest_us = 0
        self.error = ""

    def finish(self) -> None:
        """Leave out sums of which a part is missing: they would look like less."""
        for key in self.broken:
            self.values.pop(key, None)
            self.counters.pop(key, None)


class Reader:
    """Reads with one connection. `by_id` says what each field becomes, `texts` which of them are texts."""

    def __init__(self, connection: Connection, by_id: Mapping[int, Field], texts: frozenset[int]) -> None:
        self._library = connection.library
        self._handle = connection.handle
        keys = [field.key for field in by_id.values()]
        shared = {key for key in keys if key and keys.count(key) > 1}
        self._plan = {
            number: (field.role, field.key, field.factor, field.key in shared) for number, field in by_id.items()
        }
        self._texts = texts
        self._buffer = bytearray(_STRIDE)
        self._reasons: dict[int, dict[str, int]] = {}
        self.driver_version = ""

    def read(
        self, entities: Sequence[Entity], field_ids: Sequence[int], oldest_us: int, found: dict[Entity, Gathered]
    ) -> None:
        """Read these fields of these entities into `found`. What is older than `oldest_us` (Unix time) is no value.

        Raises DcgmError when the connection is lost; an entity that cannot be read costs only itself.
        """
        for entity in entities:
            found.setdefault(entity, Gathered())
        for start in range(0, len(field_ids), structs.MAX_FIELDS_OF_A_GROUP):
            some_ids = field_ids[start : start + structs.MAX_FIELDS_OF_A_GROUP]
            answer_bytes = sum(_TEXT_BYTES if number in self._texts else _NUMBER_BYTES for number in some_ids)
            step = min(max(_ANSWER_BYTES // answer_bytes, 1), structs.MAX_ENTITIES_OF_A_GROUP)
            for first in range(0, len(entities), step):
                self._read_some(entities[first : first + step], some_ids, oldest_us, found)

    def _read_some(
        self, entities: Sequence[Entity], field_ids: Sequence[int], oldest_us: int, found: dict[Entity, Gathered]
    ) -> None:
        size = len(entities) * len(field_ids) * _STRIDE
        if len(self._buffer) < size:
            self._buffer = bytearray(size)
        pairs = (structs.GroupEntityPair * len(entities))(*(structs.GroupEntityPair(*entity) for entity in entities))
        numbers = (ctypes.c_uint16 * len(field_ids))(*field_ids)
        # A value of the round before, should one not be filled, would be taken for new: no value is of field 0.
        nothing = bytes(len(entities) * len(field_ids))
        for byte in (_FIELD_OFFSET, _FIELD_OFFSET + 1):
            self._buffer[byte:size:_STRIDE] = nothing
        array = (ctypes.c_char * size).from_buffer(self._buffer)
        code = self._library.code(
            "dcgmEntitiesGetLatestValues",
            self._handle,
            pairs,
            len(entities),
            numbers,
            len(field_ids),
            0,
            ctypes.addressof(array),
        )
        if code == codes.OK:
            self._sort(memoryview(self._buffer)[:size], oldest_us, found)
        elif code in codes.CONNECTION_LOST:
            raise DcgmError("dcgmEntitiesGetLatestValues", code)
        elif len(entities) > 1:
            for entity in entities:
                self._read_some((entity,), field_ids, oldest_us, found)
        elif code in _TOO_MUCH and len(field_ids) > 1:
            middle = len(field_ids) // 2
            self._read_some(entities, field_ids[:middle], oldest_us, found)
            self._read_some(entities, field_ids[middle:], oldest_us, found)
        elif code in _TOO_MUCH:
            found[entities[0]].blank.update(field_ids)
        else:
            found[entities[0]].error = codes.words(code)

    def _sort(  # noqa: PLR0912 - a call for each of 1,440 values would cost more than all the rest
        self, view: memoryview, oldest_us: int, found: dict[Entity, Gathered]
    ) -> None:
        """Put each value where it belongs. This runs for every value of a round: no object is made for it beside the value itself."""
        plan = self._plan
        for offset, (_, group, entity, number, kind, status, _, at_us, raw) in zip(
            count(0, _STRIDE), _HEAD.iter_unpack(view), strict=False
        ):
            gathered = found.get((group, entity))
            if gathered is None or number not in plan:
                if number == DRIVER_VERSION and kind == structs.TYPE_STRING:  # it belongs to no entity
                    self.driver_version = self._text(view, offset)[1] or self.driver_version
                continue
            role, key, factor, is_shared = plan[number]
            value: int | float | str
            if kind == structs.TYPE_DOUBLE:
                value = double = _DOUBLE.unpack_from(view, offset + _VALUE_OFFSET)[0]
                reason = blanks.blank_double(double)
            elif kind == structs.TYPE_STRING:
                reason, value = self._text(view, offset)
            else:
                value = raw
                reason = blanks.blank_int(raw)
            if reason is not None or status or at_us < oldest_us:
                self._missing(gathered, number, status, reason)
                if is_shared and number not in gathered.unsupported:
                    gathered.broken.add(key)
                continue
            gathered.answered.add(number)
            if not gathered.oldest_us or at_us < gathered.oldest_us:
                gathered.oldest_us = at_us
            if role is Role.PROPERTY:
                gathered.properties[number] = int(value) if isinstance(value, float) else value
            elif isinstance(value, str):
                gathered.values[key] = value
            elif role is Role.REASONS:
                bits = int(value)
                gathered.values[key] = bits
                gathered.values.update(self._reasons_of(bits))
            else:
                target = gathered.values if role is Role.VALUE else gathered.counters
                scaled = value if factor == 1 else value * factor
                target[key] = target.get(key, 0) + scaled if is_shared else scaled  # type: ignore[operator]

    def _missing(self, gathered: Gathered, number: int, status: int, reason: int | None) -> None:
        if status in _LOST:
            gathered.error = codes.words(status)
        if reason == blanks.NOT_SUPPORTED or status in _UNSUPPORTED:
            gathered.unsupported.add(number)
        else:
            gathered.blank.add(number)

    def _text(self, view: memoryview, offset: int) -> tuple[int | None, str]:
        start = offset + _VALUE_OFFSET
        text = bytes(view[start : start + structs.MAX_STRING]).partition(b"\0")[0]
        return blanks.blank_text(text), text.decode("utf-8", "replace")

    def _reasons_of(self, bits: int) -> dict[str, int]:
        known = self._reasons.get(bits)
        if known is None:
            if len(self._reasons) > 256:  # a field of garbage must not fill memory
                self._reasons.clear()
            known = self._reasons[bits] = active_reasons(bits)
        return known
