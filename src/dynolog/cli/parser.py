"""The arguments of dyno: global options before or after the subcommand, `-` and `_` alike, errors on one line."""

import argparse
from collections.abc import Iterable, Sequence
from typing import NoReturn

from dynolog import __version__
from dynolog.cli.command_words import NoSubcommand, canonical, find_command, nearest
from dynolog.cli.exit_codes import USAGE
from dynolog.cli.global_options import Place, add_global_options
from dynolog.cli.printable import printable
from dynolog.cli.registry import COMMANDS, Entry
from dynolog.fleet.targets import HOST_OPTIONS

_DESCRIPTION = "Talk to a dynolog daemon: trace PyTorch processes, see metrics, see how the daemon fares."
_EPILOG = (
    "`dyno SUBCOMMAND --help` has the options of each; those above may stand before and after it. "
    "Exit codes: 0 done, 1 nothing matched or a capture failed, 2 usage, 3 the daemon cannot be reached."
)


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line; options are never abbreviated, so that new ones break no script."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with 2."""
        self.exit(USAGE, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


class Invocation(argparse.Namespace):
    """What was typed, with the global options typed for a checker."""

    command: str
    hostname: str
    port: int
    unix: str
    token_file: str
    tls_ca: str
    tls_cert: str
    tls_key: str
    tls_server_name: str
    certs_dir: str
    timeout: float
    json: bool
    fanout: int

    @property
    def hosts_given(self) -> dict[str, str]:
        """The options that name many hosts, by option, empty ones too; none for one daemon."""
        values = {entry.option: getattr(self, entry.attribute, None) for entry in HOST_OPTIONS}
        return {option: value for option, value in values.items() if value is not None}


def parse(argv: Sequence[str]) -> tuple[Entry, Invocation]:
    """The subcommand and its arguments. Exits with 2 and one line when they cannot be understood."""
    try:
        words = canonical(argv)
        entry = find_command(words)
    except NoSubcommand as error:
        OneLineParser(prog="dyno").error(str(error))
    parser = build_parser(COMMANDS if entry is None else (entry,))
    arguments, unknown = parser.parse_known_args(words, namespace=Invocation())
    if arguments.command is None:
        parser.error("name a subcommand, such as status, ps or gputrace")
    if unknown:
        _refuse(parser, arguments.command, unknown)
    return next(entry for entry in COMMANDS if entry.name == arguments.command), arguments


def build_parser(entries: Iterable[Entry]) -> OneLineParser:
    """The parser for some subcommands; for one only, the others are not imported."""
    parser = _parser_of_dyno()
    # Its `required` would name a word in capitals that nobody can type.
    subparsers = parser.add_subparsers(dest="command", metavar="SUBCOMMAND", prog="dyno", title="subcommands")
    for entry in entries:
        _add_subcommand(subparsers, entry, entry.name, Place.SUBCOMMAND)
    add_global_options(parser, Place.DYNO)
    return parser


def parser_for_completion() -> OneLineParser:
    """The same tree for the scripts of shells, which complete word by word: `slice` is below `trace`, and nothing is left out."""
    parser = _parser_of_dyno()
    subparsers = parser.add_subparsers(dest="command", metavar="SUBCOMMAND", prog="dyno", title="subcommands")
    for entry in COMMANDS:
        if " " in entry.name:
            continue
        below = [other for other in COMMANDS if other.name.startswith(f"{entry.name} ")]
        _add_subcommand(subparsers, entry, entry.name, Place.COMPLETION, below)

    add_global_options(parser, Place.DYNO)
    return parser


def _parser_of_dyno() -> OneLineParser:
    parser = OneLineParser(
        prog="dyno",
        usage="dyno [OPTION ...] SUBCOMMAND ...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dyno {__version__}", help="print dyno's own version")
    return parser


def _add_subcommand(
    subparsers: "argparse._SubParsersAction[OneLineParser]",
    entry: Entry,
    word: str,
    place: Place,
    below: Sequence[Entry] = (),
) -> OneLineParser:
    command = entry.load()
    help_line = (type(command).__doc__ or "").strip().split("\n", 1)[0].rstrip(".")
    subparser = subparsers.add_parser(word, help=help_line, description=help_line + ".", allow_abbrev=False)
    if below:
        # Before the arguments of the subcommand itself: it is the first word after it that may be one of these.
        inner = subparser.add_subparsers(metavar="SUBCOMMAND", prog=subparser.prog)
        for other in below:
            _add_subcommand(inner, other, other.name.removeprefix(f"{entry.name} "), place)
    command.prepare_parser(subparser)
    add_global_options(subparser, place, entry.asks)
    return subparser


def _refuse(parser: OneLineParser, command: str, unknown: Sequence[str]) -> NoReturn:
    """Say which option is unknown, and which one was perhaps meant."""
    prog = f"{parser.prog} {command}"
    option = unknown[0].partition("=")[0]
    known = [name for name in _option_names(parser, command) if name.startswith("--")]
    near = nearest(option, known) if option.startswith("-") else ""
    what = "unknown option" if option.startswith("-") else "unexpected argument"
    if command in ("metrics", "watch") and not option.startswith("-"):
        near = f"--filter {option!r}"
    OneLineParser(prog=prog).error(f"{what} {option!r}" + (f": did you mean {near}?" if near else ""))


def _option_names(parser: argparse.ArgumentParser, command: str) -> list[str]:
    names: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list options
        names += action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor to find a subparser
            names += _option_names(action.choices[command], command)
    return names
