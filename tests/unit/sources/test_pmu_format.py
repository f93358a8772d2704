"""Where the fields of an event lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.pmu_format import WORDS, FormatField, parse_format


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A format text and the bits it names, in the order of the value's bits."""
    edges = sorted(draw(st.lists(st.integers(0, 63), min_size=1, max_size=8, unique=True)))
    ranges = list(zip(edges[::2], edges[1::2], strict=False)) or [(edges[0], edges[0])]
    ranges = draw(st.permutations(ranges))
    text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
    return f"{draw(st.sampled_from(WORDS))}:{text}", [bit for low, high in ranges for bit in range(low, high + 1)]


@given(layouts(), st.integers(0, 2**64 - 1))
def test_each_bit_of_a_value_goes_to_the_bit_that_the_format_names(layout: tuple[str, list[int]], value: int) -> None:
    text, bits = layout
    field = parse_format(text)
    value &= (1 << len(bits)) - 1
    assert field.bits == len(bits)
    assert field.place(value) == sum(1 << bit for position, bit in enumerate(bits) if value >> position & 1)


@given(layouts())
def test_a_value_that_does_not_fit_is_refused(layout: tuple[str, list[int]]) -> None:
    field = parse_format(layout[0])
    with pytest.raises(ValueError, match="does not fit"):
        field.place(1 << field.bits)
    with pytest.raises(ValueError, match="does not fit"):
        field.place(-1)


@given(st.text(alphabet="config0123:,- x", max_size=20))
def test_any_text_is_a_field_or_a_value_error(text: str) -> None:
    try:
        field = parse_format(text)
    except ValueError:
        return
    assert field.word in WORDS
    assert 0 < field.bits <= 64


def test_amds_event_is_scattered() -> None:
    """AMD keeps bits 8 to 11 of the event in bits 32 to 35."""
    assert parse_format("config:0-7,32-35\n") == FormatField("config", ((0, 7), (32, 35)))
    assert parse_format("config:0-7,32-35").place(0x1A0) == 0x1_0000_00A0


@pytest.mark.parametrize(
    "text", ["", "config", "config:", "config:7-0", "config:0-64", "config4:0", "config:0-7,7", "attr:0"]
)
def test_what_is_no_format(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|twice"):
        parse_format(text)
