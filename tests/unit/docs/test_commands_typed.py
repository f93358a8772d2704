"""What the pages tell people to type is understood, option by option, and no flag in it is without effect."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.cli.parser import parse
from dynolog.cli.unitrace import dyno_arguments
from dynolog.daemon.flag_parser import FlagParser
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.idle_flags import idle_flags
from dynolog.model.flag import Settings

ROOT = Path(__file__).resolve().parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# `$ dyno ...`, `# dynolog ...` as root, indented code, and lines of scripts; inside a line also behind `&&` and variables.
LINE = re.compile(r"^(?:[$#] +| {4}|)((?:\w+=\S+ +|\S+ && )*(?:dyno|dynolog|unitrace) .*)$", re.MULTILINE)
NAMES = ("dyno", "dynolog", "unitrace")
ENDS = frozenset("|&;<>()")


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each, up to a pipe, a redirection, a comment or the end."""
    for line in LINE.findall(page.read_text().replace("\\\n", " ")):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if words and set(word) <= ENDS:
                yield words
                words = []
            elif words or word in NAMES:
                words.append(word)
        if words:
            yield words


TYPED = [(page, words) for page in PAGES for words in commands(page)]


def test_there_are_many() -> None:
    assert len({words[1] for _, words in TYPED if words[0] == "dyno"}) > 10
    assert len([words for _, words in TYPED if words[0] == "dynolog"]) > 20


@pytest.mark.parametrize(("page", "words"), TYPED, ids=[shlex.join(words) for _, words in TYPED])
def test_it_is_understood(page: Path, words: list[str]) -> None:
    if words[0] == "dynolog":
        given = [word for word in words[1:] if not word.startswith("--flagfile") and word not in ("--check", "2")]
        flags = declared_flags()
        assert idle_flags(Settings(flags, FlagParser(flags).parse(given).given)) == ()
    else:
        parse(words[1:] if words[0] == "dyno" else dyno_arguments(words[1:], now_ns=0))
