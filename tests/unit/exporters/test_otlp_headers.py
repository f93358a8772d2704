"""Lists of headers and resource attributes, as OpenTelemetry's variables hold them."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.otlp.headers import parse_headers, parse_pairs

TOKENS = st.text("abcXYZ019-_.!#$&'*^`|~", min_size=1, max_size=12)
VALUES = st.text([chr(code) for code in range(0x20, 0x7F)], max_size=30).map(str.strip)


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("authorization=Basic dXNlcjpwYXNz==", {"authorization": "Basic dXNlcjpwYXNz=="}),  # F06
        ("x-fields=a%2Cb,k=v", {"x-fields": "a,b", "k": "v"}),  # F07
        ("Authorization=Basic MTIz", {"authorization": "Basic MTIz"}),  # F08
        ("Authorization=Basic%20MTIz%3D", {"authorization": "Basic MTIz="}),  # F08
        ("k=a+b", {"k": "a+b"}),  # F08: a plus is a plus
        ("k=100%2525", {"k": "100%25"}),  # decoded once
        ("k=50%", {"k": "50%"}),
        (" k = v , , j=w,", {"k": "v", "j": "w"}),
        ("k=", {"k": ""}),
        ("k=1,K=2", {"k": "2"}),
        ("", {}),
        (",,", {}),
    ],
)
def test_a_list_is_split_at_commas_then_at_the_first_equals_sign_then_decoded(
    text: str, headers: dict[str, str]
) -> None:
    assert parse_headers(text) == (headers, [])


@pytest.mark.parametrize(
    "text",
    [
        "token-without-name",
        "=secret",
        "a b=secret",
        "k=secret%0d%0aX-Injected:1",
        "k=secret%00",
        "k=secr%C3%A9t",
        "n%0A=secret",
    ],
)
def test_what_is_no_header_is_left_out_and_its_value_is_never_said(text: str) -> None:
    headers, bad = parse_headers(f"{text},good=1")
    assert headers == {"good": "1"}
    assert len(bad) == 1
    assert "secr" not in bad[0]
    assert "token" not in bad[0]


@given(st.dictionaries(TOKENS, VALUES, max_size=6))
def test_every_list_of_encoded_pairs_comes_back(pairs: dict[str, str]) -> None:
    text = ",".join(f"{quote(key)}={quote(value)}" for key, value in pairs.items())
    assert parse_pairs(text) == (list(pairs.items()), [])


@given(
    st.dictionaries(
        TOKENS, st.text([chr(c) for c in range(0x20, 0x7F) if chr(c) not in ",%"], max_size=20).map(str.strip)
    )
)
def test_a_list_without_commas_and_percents_needs_no_encoding(pairs: dict[str, str]) -> None:
    text = ",".join(f"{key}={value}" for key, value in pairs.items())
    assert parse_pairs(text) == (list(pairs.items()), [])


@given(st.text(max_size=80))
def test_no_text_breaks_the_parser_and_every_header_is_one_that_can_be_sent(text: str) -> None:
    headers, _ = parse_headers(text)
    for name, value in headers.items():
        assert name == name.lower()
        assert name.isascii()
        assert not set(name) & set(" \t\r\n:,;=")
        assert value.isascii()
        assert not set(value) & set("\r\n\0")
