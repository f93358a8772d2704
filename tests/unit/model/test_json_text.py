"""Whatever bytes a name holds, the message is JSON, and two names stay two."""

import json
import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.json_text import encode_json


class Asked(msgspec.Struct, frozen=True, tag_field="fn", tag="ask", omit_defaults=True):
    names: tuple[str, ...]
    left_out: int = 0


def test_what_is_utf8_is_as_msgspec_has_it() -> None:
    asked = Asked(names=("träin.py", "\x1b[2J"))
    assert encode_json(asked) == msgspec.json.encode(asked)


def test_bytes_that_are_no_utf8_are_spelled_out_and_all_else_stays() -> None:
    asked = Asked(names=(os.fsdecode(b"a\xff"), os.fsdecode(b"a\xfe"), "ä"))
    assert json.loads(encode_json(asked)) == {"fn": "ask", "names": ["a\\udcff", "a\\udcfe", "ä"]}
    assert json.loads(encode_json({os.fsdecode(b"\xff"): [1, 2.5, None, True]})) == {"\\udcff": [1, 2.5, None, True]}


@given(st.recursive(st.text(st.characters()) | st.integers(-9, 9), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_no_text_is_too_odd(value: object) -> None:
    encode_json({"value": value}).decode()


def test_what_is_no_message_is_an_error_of_the_program() -> None:
    with pytest.raises(TypeError):
        encode_json(object())
