"""A subcommand on many hosts: which ones, the answers in one table or object, and who gave none."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import msgspec

from dynolog.cli.exit_codes import DONE, FAILED, UNREACHABLE, USAGE, CommandError
from dynolog.cli.fleet.by_reason import lines_by_reason
from dynolog.cli.parser import Invocation
from dynolog.cli.printable import printable
from dynolog.cli.reply_text import print_json
from dynolog.fleet.fan_out import FanOutOptions, HostAnswer
from dynolog.fleet.targets import HostSet, find_hosts
from dynolog.rpc.client import Target


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a command, and how they are asked."""

    hosts: HostSet
    options: FanOutOptions


class FleetCommand(Protocol):
    """A subcommand on many hosts: one line in FLEET_COMMANDS."""

    def __call__(self, arguments: Invocation, fleet: Fleet) -> int:
        """Do it; returns the exit code."""
        ...


# Subcommand → module below dynolog.cli and function.
FLEET_COMMANDS: Mapping[str, tuple[str, str]] = {
    "status": ("fleet.tables", "status"),
    "version": ("fleet.tables", "version"),
    "doctor": ("doctor.on_hosts", "doctor"),
    "ps": ("fleet.tables", "ps"),
    "gpus": ("fleet.tables", "gpus"),
    "metrics": ("fleet.tables", "metrics"),
    "exporters": ("fleet.tables", "exporters"),
    "dcgm-pause": ("fleet.tables", "dcgm_pause"),
    "dcgm-resume": ("fleet.tables", "dcgm_resume"),
    "gputrace": ("fleet.gputrace", "gputrace"),
    "reload": ("fleet.reload", "reload"),
}


def run_on_hosts(arguments: Invocation, target: Target, given: Mapping[str, str]) -> int:
    """Find the hosts, and run the subcommand on them. Raises CommandError, HostsError and what the subcommand raises."""
    # A variable of a script that was never set must not turn many hosts into this one.
    if empty := [option for option, value in given.items() if not value.strip()]:
        raise CommandError(f"{empty[0]} is empty", USAGE)
    if arguments.command not in FLEET_COMMANDS:
        raise CommandError(
            f"it works on one daemon: name it with --hostname; on many work {', '.join(FLEET_COMMANDS)}", USAGE
        )
    if target.unix or target.hostname != Target().hostname:
        raise CommandError(f"{next(iter(given))} names many hosts: leave --hostname and --unix out", USAGE)
    hosts = find_hosts(given, target.port)
    for note in hosts.notes:
        print(printable(f"note: {note}"), file=sys.stderr)
    if not hosts.targets:
        raise CommandError(f"{' and '.join(given)} gave no host")
    module, function = FLEET_COMMANDS[arguments.command]
    command: FleetCommand = getattr(import_module(f"dynolog.cli.{module}"), function)
    options = FanOutOptions(
        timeout_s=target.timeout_s, fanout=arguments.fanout, token_file=target.token_file, tls=target.tls
    )
    return command(arguments, Fleet(hosts=hosts, options=options))


def names_of(answers: Sequence[HostAnswer]) -> list[str]:
    """What each host is called here: with its port where several daemons share a name."""
    seen: dict[str, int] = {}
    for answer in answers:
        seen[answer.target.name] = seen.get(answer.target.name, 0) + 1
    return [answer.target.name if seen[answer.target.name] == 1 else str(answer.target) for answer in answers]


def exit_code_of(answers: Sequence[HostAnswer]) -> int:
    """0 only when all answered, 3 when none did, else 1."""
    answered = sum(answer.answered for answer in answers)
    return DONE if answered == len(answers) else FAILED if answered else UNREACHABLE


def print_failures(failures: Iterable[tuple[str, str]], hosts: int) -> None:
    """Who gave no answer and why, on stderr; hosts with one reason share a line."""
    pairs = list(failures)
    if not pairs:
        return
    print(f"dyno: {len(pairs):,} of {hosts:,} hosts gave no answer:", file=sys.stderr)
    for line in lines_by_reason(pairs):
        print(printable(f"    {line}"), file=sys.stderr)


def print_answers(answers: Sequence[HostAnswer], replies: Sequence[Any]) -> None:
    """--json: a list by host, each with its reply or its error."""
    hosts = [
        {
            "host": answer.target.host,
            "port": answer.target.port,
            "label": answer.target.name,
            "outcome": answer.outcome,
            "elapsed_s": round(answer.elapsed_s, 4),
            **({"reply": reply} if answer.answered else {"code": answer.code, "error": answer.error}),
        }
        for answer, reply in zip(answers, replies, strict=True)
    ]
    print_json({"hosts": hosts, "answered": sum(answer.answered for answer in answers), "asked": len(answers)})
