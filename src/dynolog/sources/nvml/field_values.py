"""Many values of one device with one call (nvmlDeviceGetFieldValues)."""

import struct
from collections.abc import Callable, Iterable
from typing import Any

from dynolog.sources.nvml.errors import DEVICE_LOST, NOT_HERE, Code, DeviceLostError

# nvmlFieldValue_t: id, scope, time stamp, latency, type, return code, value. Unpacked at once, because each
# access to a member of the binding's structure costs a Python call.
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

    Only ids up to 198 may be used: later ones changed their meaning between the headers of driver branches 550, 570 and 575.
    """

    def __init__(self, nvml: Any, fields: Iterable[Field], only_wide: frozenset[int] = frozenset()) -> None:
        """`only_wide` are counters that say nothing in 32 bits, because they wrap many times in a round."""
        self._nvml = nvml
        self._only_wide = only_wide
        self._all = list(fields)
        self._asked = list(self._all)

    def ask_again(self) -> None:
        """Ask for all fields in the next round."""
        self._asked = list(self._all)

    def read(self, handle: Any) -> dict[Field, int | float]:
        """The fields that have a value. Raises NVMLError when the call fails as a whole, DeviceLostError when a field says so."""
        if not self._asked:
            return {}
        try:
            return self._read(handle, self._asked)
        except self._nvml.NVMLError as error:
            # A driver that does not know one id refuses all: find out which.
            if error.value != Code.INVALID_ARGUMENT or len(self._asked) == 1:
                raise
        found: dict[Field, int | float] = {}
        for field in list(self._asked):
            try:
                found |= self._read(handle, [field])
            except self._nvml.NVMLError as error:
                if error.value != Code.INVALID_ARGUMENT:
                    raise
                self._asked.remove(field)
        return found

    def _read(self, handle: Any, fields: list[Field]) -> dict[Field, int | float]:
        found: dict[Field, int | float] = {}
        answer = self._nvml.nvmlDeviceGetFieldValues(handle, fields)
        for number, scope, _, _, kind, code, value in _LAYOUT.iter_unpack(bytes(answer)):
            if code:
                if code in DEVICE_LOST:
                    raise DeviceLostError(code)
                if code in NOT_HERE and (number, scope) in self._asked:
                    self._asked.remove((number, scope))
            elif kind == _NARROW and number in self._only_wide:
                self._asked.remove((number, scope))
            elif 0 <= kind < len(_TYPES):
                found[number, scope] = _TYPES[kind](value)[0]
        return found
