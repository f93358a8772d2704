"""What destinations say, as it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.delivery.foreign_words import ForeignWords
from dynolog.exporters.delivery.payload import Delivered, Refused, RetryLater

WORDS = ForeignWords({"authorization": "Bearer S3CRETtoken", "x-key": "K3Y", "x-org": "organisation"}, ("pass word",))


def test_the_token_is_hidden_with_and_without_its_scheme() -> None:
    assert WORDS.shown("bad: Bearer S3CRETtoken") == "bad: ***"
    assert (
        WORDS.shown("token S3CRETtoken has expired for organisation (pass word)")
        == "token *** has expired for *** (***)"
    )


def test_too_short_a_secret_would_blank_out_everything() -> None:
    assert WORDS.shown("K3Y") == "K3Y"


@given(st.integers(min_value=0, max_value=1200), st.sampled_from(["x", " ", "\n", "\0", "é"]))
def test_no_half_of_a_secret_is_left_where_the_text_is_cut(before: int, filler: str) -> None:
    shown = WORDS.shown(filler * before + "S3CRETtoken" + filler * 50)
    assert not any(part in shown for part in ("S3C", "token", "S3CRET"))
    assert shown.isprintable()
    assert len(shown) <= 200


def test_every_verdict_is_made_fit_to_be_shown() -> None:
    foul = "S3CRETtoken\n" + "y" * 5000
    for verdict in (Delivered(3, foul), RetryLater(foul, 2.0), Refused(foul)):
        clean = WORDS.verdict(verdict)
        text = clean.message if isinstance(clean, Delivered) else clean.reason
        assert text.startswith("*** yyy")
        assert len(text) <= 300
    assert WORDS.verdict(Delivered(3)) == Delivered(3)
    assert WORDS.verdict(RetryLater("later", 2.0)) == RetryLater("later", 2.0)
