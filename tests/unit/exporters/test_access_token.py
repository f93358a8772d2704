"""The access token: from a flag or a file, never from a file that others can read, and never in an error."""

import os
from pathlib import Path

import pytest

from dynolog.exporters.graph.access_token import AccessToken
from dynolog.model.errors import FlagError

SECRET = "EAAB-secret"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f" {SECRET}\n")
    path.chmod(0o600)
    return path


def test_a_flag_or_a_file_or_neither(token_file: Path) -> None:
    assert AccessToken(SECRET, "").value() == SECRET
    assert AccessToken("", str(token_file)).value() == SECRET
    assert AccessToken("", "").value() == ""


def test_both_are_one_too_many(token_file: Path) -> None:
    with pytest.raises(FlagError, match="both given") as raised:
        AccessToken(SECRET, str(token_file))
    assert SECRET not in str(raised.value)


def test_a_token_that_is_replaced_is_read_again(token_file: Path) -> None:
    token = AccessToken("", str(token_file))
    new = token_file.with_name("new")
    new.write_text("another")
    new.chmod(0o600)
    new.rename(token_file)
    assert token.value() == "another"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_open_is_no_secret(token_file: Path, mode: int) -> None:
    token_file.chmod(mode)
    with pytest.raises(FlagError, match=r"open to other users: chmod 600") as raised:
        AccessToken("", str(token_file))
    assert SECRET not in str(raised.value)


def test_a_file_that_becomes_readable_is_not_used_any_more(token_file: Path) -> None:
    token = AccessToken("", str(token_file))
    token_file.chmod(0o644)
    with pytest.raises(OSError, match="open to other users"):
        token.value()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "holds 0 bytes"), (b"x" * 20_000, "a token has 1 to 16384"), (b"\xff\xfe", "no ASCII text")],
)
def test_what_is_no_token(token_file: Path, content: bytes, sentence: str) -> None:
    token_file.write_bytes(content)
    with pytest.raises(FlagError, match=sentence):
        AccessToken("", str(token_file))


def test_a_missing_file_and_a_pipe(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="No such file"):
        AccessToken("", str(tmp_path / "nowhere"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(FlagError, match="not a regular file"):
        AccessToken("", str(tmp_path / "pipe"))
