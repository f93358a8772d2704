"""Text from elsewhere must not steer a terminal."""

import json

from hypothesis import given
from hypothesis import strategies as st

from dynolog.cli.printable import printable, printable_json

ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT)
def test_nothing_unprintable_is_left(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert "\x1b" not in shown


@given(st.text().filter(str.isprintable))
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_escapes_can_be_read() -> None:
    assert printable("a\x1b[2Jb\n\u202ec\ud800") == r"a\x1b[2Jb\n\u202ec\ud800"


@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=5)
)
def test_json_means_the_same_after(value: object) -> None:
    shown = printable_json(json.dumps(value, ensure_ascii=False))
    assert shown.isprintable()
    assert json.loads(shown) == value


def test_json_of_several_lines_becomes_one() -> None:
    assert json.loads(printable_json('{\n\t"a": 1\r\n}')) == {"a": 1}
