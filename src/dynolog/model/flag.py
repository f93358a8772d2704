"""Flags of the daemon: how one is declared, and how its value is read."""

from collections.abc import Iterable, Mapping

import msgspec

FlagValue = bool | int | float | str


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag: `--name=value`; a bool is `--name`, `--noname` or `--name=true`. The type is that of the default.

    `minimum`/`maximum` bound numbers; `choices` lists the texts that are allowed; `live` flags take effect on reload
    (SIGHUP) without a restart. `not_built` is the sentence said at start when a flag of the original is set whose part
    is not there yet. `secret` values are never printed.
    """

    name: str
    default: FlagValue
    help: str
    section: str = "daemon"
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    not_built: str = ""
    live: bool = False
    secret: bool = False


class Settings:
    """Values of all declared flags; an undeclared name is a programming error (KeyError)."""

    def __init__(self, flags: Iterable[Flag], given: Mapping[str, FlagValue] = {}) -> None:
        self._flags = {flag.name: flag for flag in flags}
        self._given = dict(given)

    def value(self, name: str) -> FlagValue:
        """The value given, or the default."""
        flag = self._flags[name]
        return self._given.get(name, flag.default)

    def is_given(self, name: str) -> bool:
        """Whether the flag was set on the command line or in a flag file."""
        return name in self._given

    def on(self, name: str) -> bool:
        """A bool flag."""
        value = self.value(name)
        assert isinstance(value, bool), name
        return value

    def integer(self, name: str) -> int:
        """An int flag."""
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        """A number flag."""
        value = self.value(name)
        assert isinstance(value, int | float), name
        return float(value)

    def text(self, name: str) -> str:
        """A text flag."""
        value = self.value(name)
        assert isinstance(value, str), name
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """A text flag that is a comma list, without empty entries."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def update(self, given: Mapping[str, FlagValue]) -> None:
        """Replace what was given (a reload); holders of this object see the new values at their next look."""
        self._given = dict(given)

    @property
    def given(self) -> Mapping[str, FlagValue]:
        """Only what was set on the command line or in a flag file."""
        return self._given

    @property
    def flags(self) -> Mapping[str, Flag]:
        """All declared flags by name."""
        return self._flags
