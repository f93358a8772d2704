"""gflags on a command line and in flag files: `--name=value`, `--name value`, `--name`, `--noname`, `--flagfile=PATH`.

One dash or two, `-` and `_` alike; the last value of a flag wins. Why not a library: docs/architecture.md.
"""

from collections.abc import Iterable, Iterator

import msgspec

from dynolog.model.errors import FlagError
from dynolog.model.flag import Flag, FlagValue

# The packaged services name this file; that it is not there means that nobody had anything to say.
DEFAULT_FLAG_FILE = "/etc/dynolog.gflags"
_TRUE = frozenset(("true", "t", "1", "yes", "y", "on"))
_FALSE = frozenset(("false", "f", "0", "no", "n", "off"))
_MAX_NESTED_FLAG_FILES = 16
# Unknown flags for which a known one that is near is looked for.
_MOST_NEAR = 50


class ParsedFlags(msgspec.Struct, frozen=True):
    """Flags that were set, and what a person should be told about the flag files."""

    given: dict[str, FlagValue]
    warnings: tuple[str, ...]


class _Token(msgspec.Struct, frozen=True):
    text: str
    origin: str  # "" for the command line, else "PATH line N"


class FlagParser:
    """Parses against a fixed set of declared flags. Raises FlagError with a sentence that says what to type instead."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self._flags: dict[str, Flag] = {}
        for flag in flags:
            for name in (flag.name, *flag.aliases):
                if name in self._flags:
                    raise ValueError(f"flag {name} is declared twice")
                self._flags[name] = flag

    def parse(self, arguments: Iterable[str]) -> ParsedFlags:
        """Values given in `arguments` (without the program's name) and in the flag files that they name."""
        self._given: dict[str, FlagValue] = {}
        self._warnings: list[str] = []
        self._allowed_unknown: set[str] = set()
        self._consume([_Token(text, "") for text in arguments], depth=0)
        return ParsedFlags(self._given, tuple(self._warnings))

    def _consume(self, tokens: list[_Token], depth: int) -> None:
        rest = iter(tokens)
        for token in rest:
            if not token.text.startswith("-") or token.text.strip("-") == "":
                raise FlagError(
                    f"{_where(token)}'{token.text}' is not a flag: flags look like --name=value; `dyno` is what asks a daemon"
                )
            name, equals, value = token.text.lstrip("-").partition("=")
            name = name.replace("-", "_")
            if name in ("flagfile", "undefok"):
                value = value if equals else _next_value(rest, token)
                if name == "undefok":
                    self._allowed_unknown.update(part.strip().replace("-", "_") for part in value.split(","))
                else:
                    self._consume_flag_files(value, token, depth + 1)
                continue
            self._set(name, value if equals else None, token, rest)

    def _consume_flag_files(self, paths: str, token: _Token, depth: int) -> None:
        if depth > _MAX_NESTED_FLAG_FILES:
            raise FlagError(f"{_where(token)}flag files name each other more than {_MAX_NESTED_FLAG_FILES} deep")
        for path in paths.split(","):
            self._consume(self._read_flag_file(path.strip(), token), depth)

    def _set(self, name: str, value: str | None, token: _Token, rest: Iterator[_Token]) -> None:
        flag = self._flags.get(name)
        if flag is None and name.startswith("no"):
            negated = self._flags.get(name[2:])
            if negated is not None and isinstance(negated.default, bool):
                if value is not None:
                    raise FlagError(f"{_where(token)}--{name} takes no value; type --{negated.name}=true or --{name}")
                self._given[negated.name] = False
                return
        if flag is None:
            self._unknown(name, token)
            return
        if isinstance(flag.default, bool):
            self._given[flag.name] = True if value is None else _bool(flag, value, token)
            return
        if value is None:
            value = _next_value(rest, token)
        self._given[flag.name] = _typed(flag, value, token)

    def _unknown(self, name: str, token: _Token) -> None:
        if name in self._allowed_unknown or name.removeprefix("no") in self._allowed_unknown:
            return
        # Needed for this message only, and costs a megabyte.
        import difflib  # noqa: PLC0415

        # A millisecond each: a file of nothing but such flags is not one of ours.
        near = difflib.get_close_matches(name, self._flags, n=1, cutoff=0.6) if len(self._warnings) < _MOST_NEAR else []
        sentence = f"{_where(token)}unknown flag --{name}" + (
            f"; did you mean --{near[0]}?" if near else "; see dynolog --help"
        )
        if not token.origin:
            raise FlagError(sentence)
        # An old daemon must start with a newer machine's flag file.
        self._warnings.append(sentence)

    def _read_flag_file(self, path: str, token: _Token) -> list[_Token]:
        try:
            with open(path, encoding="utf-8", errors="strict") as file:
                lines = file.read().splitlines()
        except FileNotFoundError as error:
            if path == DEFAULT_FLAG_FILE:
                return []
            raise FlagError(f"{_where(token)}flag file {path} is not there") from error
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise FlagError(f"{_where(token)}flag file {path} cannot be read: {reason}") from error
        tokens: list[_Token] = []
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            origin = f"{path} line {number}"
            flag, space, value = text.partition(" ")
            if space and "=" not in flag:
                # `--name value` on one line; a value may hold spaces.
                tokens += [_Token(flag, origin), _Token(value.strip(), origin)]
            else:
                tokens.append(_Token(text, origin))
        return tokens


def _where(token: _Token) -> str:
    return f"{token.origin}: " if token.origin else ""


def _next_value(rest: Iterator[_Token], token: _Token) -> str:
    following = next(rest, None)
    if following is None or following.origin != token.origin:
        raise FlagError(f"{_where(token)}{token.text} needs a value: type {token.text}=VALUE")
    return following.text


def _bool(flag: Flag, value: str, token: _Token) -> bool:
    lowered = value.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise FlagError(f"{_where(token)}--{flag.name}={value}: must be true or false")


def _typed(flag: Flag, value: str, token: _Token) -> FlagValue:
    where = f"{_where(token)}--{flag.name}={value}"
    if isinstance(flag.default, str):
        if flag.choices and value not in flag.choices:
            raise FlagError(f"{where}: must be one of {', '.join(flag.choices)}")
        return value
    number: int | float
    try:
        number = int(value) if isinstance(flag.default, int) else float(value)
    except ValueError as error:
        kind = "a whole number" if isinstance(flag.default, int) else "a number"
        raise FlagError(f"{where}: must be {kind}") from error
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN differs from itself
        raise FlagError(f"{where}: must be a finite number")
    if flag.minimum is not None and number < flag.minimum:
        raise FlagError(f"{where}: must be at least {flag.minimum:g}")
    if flag.maximum is not None and number > flag.maximum:
        raise FlagError(f"{where}: must be at most {flag.maximum:g}")
    return number
