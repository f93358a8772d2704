"""logfmt: what is written can be read back, whatever is in it."""

import json
import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.forms.json_line import HEAD
from dynolog.exporters.forms.logfmt import LogfmtLines, key_text, pairs, value_text
from fakes.exporter_context import record


def read(line: str) -> dict[str, str]:
    """A strict reader of logfmt: keys end at `=`, values at a space; quoted ones are JSON strings."""
    fields: dict[str, str] = {}
    at = 0
    pattern = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"=]*)( |$)')
    while at < len(line):
        match = pattern.match(line, at)
        assert match is not None, f"not logfmt from {line[at:]!r}"
        key, value = match[1], match[2]
        assert key not in fields, f"{key} twice"
        fields[key] = json.loads(value) if value.startswith('"') else value
        at = match.end()
    return fields


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-1.5, "-1.5"),
        (1e300, "1e+300"),
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ('a"b', r'"a\"b"'),
        ("a=b", '"a=b"'),
        ("a\nlevel=error", r'"a\nlevel=error"'),
        ("back\\slash", r'"back\\slash"'),
        ("\u2028", r'"\u2028"'),
        ("gpu µ", '"gpu µ"'),
        ("\u3000", '"\u3000"'),
        ("µ", "µ"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert value_text(value) == text


def test_a_key_from_outside_keeps_its_name_and_forges_nothing() -> None:
    assert key_text("fs_free_bytes./mnt/my disk") == "fs_free_bytes./mnt/my%20disk"
    assert key_text('a="1" b') == "a%3D%221%22%20b"
    assert key_text("100%") == "100%25"
    assert key_text("wide\u3000space") == "wide%E3%80%80space"


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.floats(allow_nan=False) | st.text(), max_size=8))
def test_a_line_is_read_back_as_it_was_meant(fields: dict[str, int | float | str]) -> None:
    line = pairs(fields)
    assert len(line.splitlines()) <= 1
    back = {unquote(key, errors="strict"): value for key, value in read(line).items()}
    assert list(back) == list(fields)
    for key, value in fields.items():
        assert back[key] == value if isinstance(value, str) else type(value)(back[key]) == value


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.floats() | st.text(), max_size=8))
def test_a_record_is_one_line_of_logfmt(values: dict[str, int | float | str]) -> None:
    line = LogfmtLines("gpu17").line(record({k: v for k, v in values.items() if k not in HEAD})).decode()
    assert list(read(line))[:3] == list(HEAD)
