"""The options that stand before or after any subcommand: which daemon to talk to, or which of many hosts, and --json."""

import argparse
import os
from enum import Enum
from typing import Any

from dynolog.cli.option_types import port, positive, positive_seconds
from dynolog.cli.registry import Asks
from dynolog.fleet.targets import HOST_OPTIONS

_TLS_OPTIONS = (
    ("--tls-ca", "DYNO_TLS_CA", "speak TLS; the authority that signed the daemon's certificate ($DYNO_TLS_CA)"),
    ("--tls-cert", "DYNO_TLS_CERT", "certificate to show to a daemon that asks for one ($DYNO_TLS_CERT)"),
    ("--tls-key", "DYNO_TLS_KEY", "the key of --tls-cert ($DYNO_TLS_KEY)"),
    ("--tls-server-name", "", "the name in the daemon's certificate, when it is called by another (a tunnel)"),
    ("--certs-dir", "", "directory with ca.crt, client.crt and client.key, instead of the three"),
)
OPTIONS_WITH_VALUE = (
    frozenset({"--hostname", "--port", "--unix", "--token-file", "--timeout", "--fanout"})
    | {entry.option for entry in HOST_OPTIONS}
    | {option for option, _, _ in _TLS_OPTIONS}
)
# Below the options of a subcommand, which has enough of its own.
_WHERE_THE_REST_IS = {
    Asks.NONE: "",
    Asks.ONE: "Which daemon: --hostname, --port, --unix, --token-file and more; `dyno --help` has them.",
    Asks.MANY: "Which daemon or daemons: --hostname, --port, --token-file, --hosts, --slurm-job and more; `dyno --help` has them.",
}


class Place(Enum):
    """Where the options are declared, which decides what is said of them there."""

    DYNO = "before the subcommand: with their defaults, and described"
    SUBCOMMAND = "after it: taken, but only --json is described"
    COMPLETION = "after it, for the scripts of shells: all of them described"


def add_global_options(parser: argparse.ArgumentParser, place: Place, asks: Asks = Asks.MANY) -> None:
    """Declare them. After a subcommand they have no default, which would undo what stood before it."""

    def add(group: argparse._ActionsContainer, option: str, default: object, help_line: str, **more: Any) -> None:
        is_shown = place is not Place.SUBCOMMAND or option == "--json"
        group.add_argument(
            option,
            default=default if place is Place.DYNO else argparse.SUPPRESS,
            help=help_line if is_shown else argparse.SUPPRESS,
            **more,
        )

    if place is Place.DYNO:
        daemon: argparse._ActionsContainer = parser.add_argument_group("the daemon to talk to")
        hosts: argparse._ActionsContainer = parser.add_argument_group("many daemons at once")
        others: argparse._ActionsContainer = parser.add_argument_group("what is printed")
    else:
        daemon = hosts = others = parser.add_argument_group(
            "options of every subcommand", _WHERE_THE_REST_IS[asks] or None
        )
    add(daemon, "--hostname", "localhost", "host of the daemon (localhost)", metavar="HOST")
    add(daemon, "--port", 1778, "its RPC port (1778)", type=port, metavar="PORT")
    add(daemon, "--unix", "", "its unix socket, instead of host and port", metavar="PATH")
    add(daemon, "--token-file", "", "file that holds the shared secret", metavar="FILE")
    for option, variable, help_line in _TLS_OPTIONS:
        metavar = {"--tls-server-name": "NAME", "--certs-dir": "DIR"}.get(option, "FILE")
        preset = os.environ.get(variable, "") if variable else ""
        add(daemon, option, preset, help_line, metavar=metavar)
    add(daemon, "--timeout", 10.0, "longest wait for an answer (10)", type=positive_seconds, metavar="S")
    for entry in HOST_OPTIONS:
        add(hosts, entry.option, None, entry.help, metavar=entry.metavar)
    add(hosts, "--fanout", 512, "so many hosts at a time (512)", type=positive, metavar="N")
    add(others, "--json", False, "print one JSON object and nothing else", action="store_true")
