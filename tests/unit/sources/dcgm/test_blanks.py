"""Values that are none: every pattern of bits of every type."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.dcgm.blanks import FP64_BLANK, INT32_BLANK, INT64_BLANK, blank_double, blank_int, blank_text

_int64 = st.integers(-(2**63), 2**63 - 1)


@given(_int64 | st.integers(INT64_BLANK - 3, 2**63 - 1) | st.integers(INT32_BLANK - 3, INT32_BLANK + 20))
def test_an_integer_is_blank_only_in_the_two_ranges(value: int) -> None:
    """B02: 2147483632..35 and from 9223372036854775792 on."""
    is_blank = 2147483632 <= value <= 2147483635 or value >= 9223372036854775792
    assert (blank_int(value) is not None) == is_blank


@given(st.binary(min_size=8, max_size=8))
def test_any_pattern_of_a_double_is_a_number_or_none(bits: bytes) -> None:
    (value,) = struct.unpack("<d", bits)
    reason = blank_double(value)
    if reason is None:
        assert math.isfinite(value)
        assert value < FP64_BLANK
    else:
        assert not math.isfinite(value) or value >= FP64_BLANK or int(value) >> 2 == INT32_BLANK >> 2


@given(st.binary(max_size=40))
def test_any_text_is_itself_or_none(text: bytes) -> None:
    assert (blank_text(text) is not None) == (not text or (text.startswith(b"<<<") and b">>>" in text))


def test_reasons() -> None:
    """B02: the reason is beyond the base, and found before a float would swallow it."""
    assert [blank_int(9223372036854775792 + beyond) for beyond in range(4)] == [0, 1, 2, 3]
    assert [blank_int(2147483632 + beyond) for beyond in range(4)] == [0, 1, 2, 3]
    assert [blank_double(140737488355328.0 + beyond) for beyond in range(4)] == [0, 1, 2, 3]
    assert [blank_text(text) for text in (b"<<<NULL>>>", b"<<<NOT_FOUND>>>", b"<<<NOT_SUPPORTED>>>", b"<<<X>>>")] == [
        0,
        1,
        2,
        0,
    ]
    assert (blank_double(float(9223372036854775794)), blank_double(1.40737488355328e16)) == (0, 0)
    assert (blank_int(0), blank_double(0.0), blank_double(-1.5), blank_text(b"GPU")) == (None, None, None, None)
