"""The arguments of dyno: global options before or after the subcommand, `-` and `_` alike, errors on one line."""

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import NoReturn

from dynolog import __version__
from dynolog.cli.exit_codes import USAGE
from dynolog.cli.option_types import port, positive, positive_seconds
from dynolog.cli.printable import printable
from dynolog.cli.registry import COMMANDS, Entry
from dynolog.fleet.targets import HOST_OPTIONS

_DESCRIPTION = "Talk to a dynolog daemon: trace PyTorch processes, see metrics, see how the daemon fares."
_EPILOG = "Exit codes: 0 done, 1 nothing matched or a capture failed, 2 usage, 3 the daemon cannot be reached."


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
    words = _joined([_with_dashes(word) for word in argv])
    entry = find_command(words)
    parser = build_parser(COMMANDS if entry is None else (entry,))
    arguments, unknown = parser.parse_known_args(words, namespace=Invocation())
    if unknown:
        _refuse(parser, arguments.command, unknown)
    return next(entry for entry in COMMANDS if entry.name == arguments.command), arguments


def build_parser(entries: Iterable[Entry]) -> OneLineParser:
    """The parser for some subcommands; for one only, the others are not imported."""
    parser = OneLineParser(prog="dyno", description=_DESCRIPTION, epilog=_EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dyno {__version__}", help="print dyno's own version")
    _add_global_options(parser, suppress=False)
    subparsers = parser.add_subparsers(dest="command", metavar="SUBCOMMAND", required=True, title="subcommands")
    for entry in entries:
        command = entry.load()
        help_line = (type(command).__doc__ or "").strip().split("\n", 1)[0].rstrip(".")
        two_words = entry.name.startswith("trace-")
        subparser = subparsers.add_parser(
            entry.name,
            prog=f"dyno {entry.name.replace('-', ' ', 1)}" if two_words else None,
            help=help_line,
            description=help_line + ".",
            allow_abbrev=False,
        )
        command.prepare_parser(subparser)
        _add_global_options(subparser, suppress=True)
    return parser


def _add_global_options(parser: argparse.ArgumentParser, *, suppress: bool) -> None:
    """Those of every subcommand. After it they have no default, which would undo what stood before it."""

    def default(value: object) -> object:
        return argparse.SUPPRESS if suppress else value

    group = parser.add_argument_group("the daemon to talk to")
    group.add_argument(
        "--hostname", metavar="HOST", default=default("localhost"), help="host of the daemon (localhost)"
    )
    group.add_argument("--port", type=port, default=default(1778), help="its RPC port (1778)")
    group.add_argument("--unix", metavar="PATH", default=default(""), help="its unix socket, instead of host and port")
    group.add_argument("--token-file", metavar="FILE", default=default(""), help="file that holds the shared secret")
    for option, variable, help_line in _TLS_OPTIONS:
        metavar = {"--tls-server-name": "NAME", "--certs-dir": "DIR"}.get(option, "FILE")
        preset = os.environ.get(variable, "") if variable else ""
        group.add_argument(option, metavar=metavar, default=default(preset), help=help_line)
    group.add_argument(
        "--timeout", metavar="S", type=positive_seconds, default=default(10.0), help="longest wait for an answer (10)"
    )
    for entry in HOST_OPTIONS:
        group.add_argument(entry.option, metavar=entry.metavar, default=default(None), help=entry.help)
    group.add_argument(
        "--fanout", type=positive, metavar="N", default=default(512), help="so many hosts at a time (512)"
    )
    group.add_argument(
        "--json", action="store_true", default=default(False), help="print one JSON object and nothing else"
    )


_TLS_OPTIONS = (
    ("--tls-ca", "DYNO_TLS_CA", "speak TLS; the authority that signed the daemon's certificate ($DYNO_TLS_CA)"),
    ("--tls-cert", "DYNO_TLS_CERT", "certificate to show to a daemon that asks for one ($DYNO_TLS_CERT)"),
    ("--tls-key", "DYNO_TLS_KEY", "the key of --tls-cert ($DYNO_TLS_KEY)"),
    ("--tls-server-name", "", "the name in the daemon's certificate, when it is called by another (a tunnel)"),
    ("--certs-dir", "", "directory with ca.crt, client.crt and client.key, instead of the three"),
)
_GLOBAL_OPTIONS_WITH_VALUE = (
    frozenset({"--hostname", "--port", "--unix", "--token-file", "--timeout", "--fanout"})
    | {entry.option for entry in HOST_OPTIONS}
    | {option for option, _, _ in _TLS_OPTIONS}
)


def find_command(words: Sequence[str]) -> Entry | None:
    """The subcommand among the words, so that only it needs to be imported; None lets the whole parser say what is wrong."""
    place = _command_place(words)
    if place is None:
        return None
    name = words[place].replace("_", "-")
    return next((entry for entry in COMMANDS if entry.name == name), None) or _refuse_command(words[place])


def _command_place(words: Sequence[str]) -> int | None:
    """Which word is the subcommand; None when there is none, or help is wanted before it."""
    iterator = iter(enumerate(words))
    for place, word in iterator:
        if word in _GLOBAL_OPTIONS_WITH_VALUE:
            next(iterator, None)
        elif word in ("-h", "--help"):
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


def _joined(words: list[str]) -> list[str]:
    """`trace slice FILE` → `trace-slice FILE`: a subcommand of two words is one to argparse."""
    place = _command_place(words)
    if place is None or place + 1 == len(words):
        return words
    joined = f"{words[place]}-{words[place + 1]}"
    return [*words[:place], joined, *words[place + 2 :]] if any(entry.name == joined for entry in COMMANDS) else words


def _refuse_command(word: str) -> NoReturn:
    names = [entry.name for entry in COMMANDS]
    near = _nearest(word, names)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
    OneLineParser(prog="dyno").error(f"no subcommand {word!r}: {hint}")


def _refuse(parser: OneLineParser, command: str, unknown: Sequence[str]) -> NoReturn:
    """Say which option is unknown, and which one was perhaps meant."""
    prog = f"{parser.prog} {command}"
    option = unknown[0].partition("=")[0]
    known = [name for name in _option_names(parser, command) if name.startswith("--")]
    near = _nearest(option, known) if option.startswith("-") else ""
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


def _nearest(word: str, names: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 - only for an error; costs 3 ms

    return next(iter(difflib.get_close_matches(word, names, n=1)), "")
