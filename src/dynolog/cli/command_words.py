"""Which words of a command line are the subcommand: `-` and `_` alike, one word or two, and `help` where others have --help."""

import string
from collections.abc import Sequence

from dynolog.cli.global_options import OPTIONS_WITH_VALUE
from dynolog.cli.registry import COMMANDS, Entry

_OPTIONS_WITHOUT = frozenset({"--json", "--version", "-h", "--help"})


class NoSubcommand(ValueError):  # noqa: N818 - what was typed is its name
    """There is none of this name; the text says which was perhaps meant."""


def canonical(argv: Sequence[str]) -> list[str]:
    """The words as the parser takes them: a subcommand of two words as one with a blank, `help` as --help.

    Raises NoSubcommand for a second word that is nearly one of those that are there.
    """
    words = [_with_dashes(word) for word in argv]
    place = _command_place(words)
    if place is not None and words[place] == "help":
        words = [*words[:place], *words[place + 1 :], "--help"]
        place = _command_place(words, help_may_stand_before=False)
    return words if place is None else _joined(words, place)


def find_command(words: Sequence[str]) -> Entry | None:
    """The subcommand among canonical words, so that only it needs to be imported; None when they name none.

    Raises NoSubcommand for a name that is not there, or behind an option whose value it may be.
    """
    place = _command_place(words)
    if place is None:
        return None
    for word in words[:place]:
        option = word.partition("=")[0]
        if word.startswith("-") and option not in OPTIONS_WITH_VALUE and option not in _OPTIONS_WITHOUT:
            near = nearest(option, sorted(OPTIONS_WITH_VALUE)) if option.startswith("--") else ""
            raise NoSubcommand(
                f"unknown option {option!r} before the subcommand"
                + (f": did you mean {near}?" if near else ": those of a subcommand stand after it")
            )
    entry = next((entry for entry in COMMANDS if entry.name == words[place]), None)
    if entry is None:
        near = nearest(words[place], [entry.name for entry in COMMANDS])
        raise NoSubcommand(f"no subcommand {words[place]!r}" + (f": did you mean {near}?" if near else ""))
    return entry


def nearest(word: str, names: Sequence[str]) -> str:
    """The name that is most like the word; "" when none is."""
    import difflib  # noqa: PLC0415 - only for an error; costs 3 ms

    return next(iter(difflib.get_close_matches(word, names, n=1)), "")


def _command_place(words: Sequence[str], *, help_may_stand_before: bool = True) -> int | None:
    """Which word is the subcommand; None when there is none, or help is wanted before it."""
    iterator = iter(enumerate(words))
    for place, word in iterator:
        if word in OPTIONS_WITH_VALUE:
            next(iterator, None)
        elif word in ("-h", "--help") and help_may_stand_before:
            return None
        elif not word.startswith("-"):
            return place
    return None


def _with_dashes(word: str) -> str:
    """`--job_id=7` → `--job-id=7`; and the names of subcommands that have a dash."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name.replace("_", "-") + equals + value
    return "dcgm-" + word[5:] if word in ("dcgm_pause", "dcgm_resume") else word


def _joined(words: list[str], place: int) -> list[str]:
    """`trace`, `slice` → `trace slice`; `trace-slice` and `trace_slice` are the same."""
    names = {entry.name for entry in COMMANDS if " " in entry.name}
    name = words[place].replace("_", "-").replace("-", " ", 1)
    if name in names:
        return [*words[:place], name, *words[place + 1 :]]
    if place + 1 == len(words):
        return words
    name = f"{words[place]} {words[place + 1]}"
    if name in names:
        return [*words[:place], name, *words[place + 2 :]]
    _refuse_if_nearly(words[place], words[place + 1], names)
    return words


def _refuse_if_nearly(first: str, second: str, names: set[str]) -> None:
    """`trace slise` is no request of that id, which are hexadecimal digits."""
    if second.startswith("-") or not set(second) - set(string.hexdigits):
        return
    beside = [name for name in names if name.startswith(f"{first} ")]
    if near := nearest(second, [name.removeprefix(f"{first} ") for name in beside]):
        raise NoSubcommand(f"no subcommand '{first} {second}': did you mean {first} {near}?")
