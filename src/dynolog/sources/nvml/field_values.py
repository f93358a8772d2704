"""Many values of one device with one call (nvmlDeviceGetFieldValues)."""

import ctypes
import struct
from collections.abc import Callable, Iterable
from typing import Any

from dynolog.sources.nvml.errors import DEVICE_LOST, NOT_HERE, Code, DeviceLostError

# nvmlFieldValue_t: id, scope, time stamp, latency, type, return code, value. Packed and unpacked here, because each access to a
# member of the binding's structure costs a Python call, and a device with 18 links has a hundred fields.
_LAYOUT = struct.Struct("=IIqqiI8s")
# nvmlValueType_t -> how the union of eight bytes is read.
_TYPES: tuple[Callable[[bytes], tuple[Any, ...]], ...] = tuple(
    struct.Struct(layout).unpack_from for layout in ("=d", "=I", "=Q", "=Q", "=q", "=i", "=H")
)
_NARROW = 1  # NVML_VALUE_TYPE_UNSIGNED_INT

# (id, scope): the scope is a link, or a kind.
Field = tuple[int, int]


class FieldReader:
    """The fields of one device that are read in one call; what the device does not have is not asked again until `ask_again`.

    `asked` are those that it has, as far as is known.
    Only ids up to 198 may be used: later ones changed their meaning between the headers of driver branches 550, 570 and 575.
    """

    def __init__(self, nvml: Any, fields: Iterable[Field], only_wide: frozenset[int] = frozenset()) -> None:
        """`only_wide` are counters that say nothing in 32 bits, because they wrap many times in a round."""
        self._nvml = nvml
        self._only_wide = only_wide
        self._all = list(fields)
        self._question = b""
        self.asked: tuple[Field, ...] = ()
        self._ask(self._all)

    def _ask(self, fields: Iterable[Field]) -> None:
        self.asked = tuple(fields)
        self._question = b"".join(map(_packed, self.asked))

    def ask_again(self) -> None:
        """Ask for all fields in the next round."""
        self._ask(self._all)

    def read(self, handle: Any) -> dict[Field, int | float]:
        """The fields that have a value. Raises NVMLError when the call fails as a whole, DeviceLostError when a field says so."""
        if not self.asked:
            return {}
        refused: set[Field] = set()
        try:
            found = self._values(handle, self._question, refused)
        except self._nvml.NVMLError as error:
            # A driver that does not know one id refuses all: find out which.
            if error.value != Code.INVALID_ARGUMENT:
                raise
            found = self._one_by_one(handle, refused)
        if refused:
            self._ask(field for field in self.asked if field not in refused)
        return found

    def _one_by_one(self, handle: Any, refused: set[Field]) -> dict[Field, int | float]:
        found: dict[Field, int | float] = {}
        for field in self.asked:
            try:
                found |= self._values(handle, _packed(field), refused)
            except self._nvml.NVMLError as error:
                if error.value != Code.INVALID_ARGUMENT:
                    raise
                refused.add(field)
        return found

    def _values(self, handle: Any, question: bytes, refused: set[Field]) -> dict[Field, int | float]:
        """The answers to `question`; the fields that the device does not have go into `refused`."""
        function = getattr(self._nvml.nvmlLib, "nvmlDeviceGetFieldValues", None)
        if function is None:
            raise self._nvml.NVMLError(Code.FUNCTION_NOT_FOUND)
        answer = bytearray(question)
        buffer = (ctypes.c_char * len(answer)).from_buffer(answer)
        if code := function(handle, len(answer) // _LAYOUT.size, buffer):
            raise self._nvml.NVMLError(code)
        found: dict[Field, int | float] = {}
        for number, scope, _, _, kind, code, value in _LAYOUT.iter_unpack(answer):
            if code in DEVICE_LOST:
                raise DeviceLostError(code)
            if code in NOT_HERE or (kind == _NARROW and number in self._only_wide):
                refused.add((number, scope))
            elif not code and 0 <= kind < len(_TYPES):
                found[number, scope] = _TYPES[kind](value)[0]
        return found


def _packed(field: Field) -> bytes:
    return _LAYOUT.pack(*field, 0, 0, 0, 0, b"")
