"""Many values with one call, against a library that is written here."""

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.nvml.errors import DeviceLostError
from dynolog.sources.nvml.field_values import Field, FieldReader

ENTRY = struct.Struct("=IIqqiI8s")
FORMATS = ("=d", "=I", "=Q", "=Q", "=q", "=i", "=H")


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class Library:
    """Answers with (type, return code, eight bytes) of each field; refuses a call with a field that it does not know."""

    def __init__(self, answers: dict[Field, tuple[int, int, bytes]], refuses: frozenset[Field] = frozenset()) -> None:
        self.answers = answers
        self.refuses = refuses
        self.asked: list[Sequence[Field]] = []

    def nvmlDeviceGetFieldValues(self, handle: object, count: int, buffer: Any) -> int:  # noqa: N802 - NVML's name
        entries = [ENTRY.unpack_from(bytes(buffer), index * ENTRY.size) for index in range(count)]
        fields = [(entry[0], entry[1]) for entry in entries]
        self.asked.append(fields)
        if self.refuses & set(fields):
            return 2
        for index, field in enumerate(fields):
            kind, code, value = self.answers.get(field, (3, 3, b""))
            buffer[index * ENTRY.size : (index + 1) * ENTRY.size] = ENTRY.pack(*field, 0, 0, kind, code, value)
        return 0


def reader(library: Library, fields: Sequence[Field], only_wide: frozenset[int] = frozenset()) -> FieldReader:
    return FieldReader(SimpleNamespace(nvmlLib=library, NVMLError=NvmlError), fields, only_wide)


values = st.one_of(
    st.floats(allow_nan=False).map(lambda value: (0, value)),
    st.integers(0, 2**32 - 1).map(lambda value: (1, value)),
    st.integers(0, 2**64 - 1).map(lambda value: (2, value)),
    st.integers(0, 2**64 - 1).map(lambda value: (3, value)),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: (4, value)),
    st.integers(-(2**31), 2**31 - 1).map(lambda value: (5, value)),
    st.integers(0, 2**16 - 1).map(lambda value: (6, value)),
)
fields = st.tuples(st.integers(1, 198), st.integers(0, 2**32 - 1))


@given(st.dictionaries(fields, values, max_size=40), st.binary(min_size=8, max_size=8))
def test_every_type_is_read_as_it_was_written(said: dict[Field, tuple[int, float]], noise: bytes) -> None:
    """Whatever stands in the bytes of the union that the type does not use."""
    answers = {}
    for field, (kind, value) in said.items():
        packed = struct.pack(FORMATS[kind], value)
        answers[field] = (kind, 0, packed + noise[len(packed) :])
    assert reader(Library(answers), list(said)).read(None) == {field: value for field, (_, value) in said.items()}


def test_a_type_of_the_future_is_no_value() -> None:
    assert reader(Library({(1, 0): (7, 0, b"12345678")}), [(1, 0)]).read(None) == {}


def test_fields_that_are_not_there_are_asked_once() -> None:
    """Not supported is for good, an error of the moment is not."""
    library = Library({(1, 0): (3, 0, struct.pack("=Q", 5)), (2, 0): (3, 3, b""), (3, 0): (3, 999, b"")})
    asked = reader(library, [(1, 0), (2, 0), (3, 0)])
    assert asked.read(None) == asked.read(None) == {(1, 0): 5}
    assert library.asked == [[(1, 0), (2, 0), (3, 0)], [(1, 0), (3, 0)]]
    asked.ask_again()
    asked.read(None)
    assert len(library.asked[-1]) == 3


def test_a_field_that_the_driver_does_not_know_does_not_cost_the_others() -> None:
    """C10: an old driver refuses the whole call because of one id."""
    library = Library({(1, 0): (3, 0, struct.pack("=Q", 5))}, refuses=frozenset({(186, 0)}))
    asked = reader(library, [(1, 0), (186, 0)])
    assert asked.read(None) == asked.read(None) == {(1, 0): 5}
    assert library.asked[-1] == [(1, 0)]


def test_a_lost_device_is_an_error() -> None:
    with pytest.raises(DeviceLostError, match="the GPU is lost"):
        reader(Library({(1, 0): (3, 15, b"")}), [(1, 0)]).read(None)


def test_nothing_left_to_ask_makes_no_call() -> None:
    library = Library({})
    asked = reader(library, [(1, 0)])
    assert asked.read(None) == asked.read(None) == {}
    assert len(library.asked) == 1


def test_narrow_counters_may_be_refused() -> None:
    library = Library({(197, 0): (1, 0, struct.pack("=I", 5)), (198, 0): (3, 0, struct.pack("=Q", 6))})
    assert reader(library, [(197, 0), (198, 0)], frozenset({197, 198})).read(None) == {(198, 0): 6}
