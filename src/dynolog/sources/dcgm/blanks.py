"""Which values are none (`DCGM_INT32_BLANK`, `DCGM_INT64_BLANK`, `DCGM_FP64_BLANK`, `DCGM_STR_BLANK` of dcgm_structs.h).

DCGM says 'no value' in the value itself: the last 16 integers of a type, doubles from 2^47 on, and texts in triple brackets. They must be
found before anything is scaled or turned into a float, which would move them.
"""

import math

INT32_BLANK = 0x7FFFFFF0
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
FP64_BLANK = float(2**47)
# Beyond BLANK: why there is no value.
NOT_FOUND = 1
NOT_SUPPORTED = 2
NOT_PERMITTED = 3
_REASONS = 4

_BLANK_TEXTS = {b"<<<NULL>>>": 0, b"<<<NOT_FOUND>>>": NOT_FOUND, b"<<<NOT_SUPPORTED>>>": NOT_SUPPORTED}


def blank_int(value: int) -> int | None:
    """The reason (0: none given) when an integer is no value, else None.

    The 32-bit blanks are only the four that have a meaning: a counter or a rate of 64 bits may pass through that range.
    """
    if value >= INT64_BLANK:
        return value - INT64_BLANK
    if INT32_BLANK <= value < INT32_BLANK + _REASONS:
        return value - INT32_BLANK
    return None


def blank_double(value: float) -> int | None:
    """The reason (0: none given) when a double is no value, else None. NaN and infinities are none either."""
    if not math.isfinite(value):
        return 0
    if value >= FP64_BLANK:
        beyond = value - FP64_BLANK
        return int(beyond) if beyond < _REASONS else 0
    if INT32_BLANK <= value < INT32_BLANK + _REASONS and value == int(value):
        return int(value) - INT32_BLANK
    return None


def blank_text(value: bytes) -> int | None:
    """The reason (0: none given) when a text is no value, else None. An empty text is none."""
    if not value:
        return 0
    if value.startswith(b"<<<") and b">>>" in value:
        return _BLANK_TEXTS.get(value, 0)
    return None
