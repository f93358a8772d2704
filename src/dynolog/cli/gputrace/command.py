"""dyno gputrace."""

import argparse
import sys
from typing import Any

import msgspec

from dynolog.cli.daemon_kind import knows_ours
from dynolog.cli.exit_codes import DONE, FAILED, USAGE, CommandError, Interrupted
from dynolog.cli.gputrace.arguments import (
    FOR_MANY_HOSTS,
    TraceCommand,
    add_trace_options,
    trace_command,
    without_effect,
)
from dynolog.cli.gputrace.follow_up import Conclusion, FollowOptions, add_follow_options, conclude, follow_options
from dynolog.cli.gputrace.report import Answer, print_outcome, print_trace_reply
from dynolog.cli.printable import printable
from dynolog.cli.reply_text import ask, print_json
from dynolog.cli.target_words import command_for
from dynolog.rpc.client import RawReply, Target
from dynolog.rpc.messages import SetKinetOnDemandRequest, TraceReply

# Why a matched process is left out without that being a failure: nobody asked for it, or it is another
# user's, as on any shared machine when all processes are meant.
_EXPECTED = frozenset({"launcher", "limit", "forbidden"})
_CANNOT_FOLLOW = "dyno gputrace: this daemon is the original C++ dynolog: it cannot tell when the files are written"


class Gputrace:
    """Make PyTorch processes write traces, and follow the request to the checked files.

    Exit code 1 when nothing matched or a capture failed.
    """

    name = "gputrace"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which processes, what to record, and how to follow it."""
        add_trace_options(parser)
        add_follow_options(parser)

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Ask, print what the public dyno prints, then follow."""
        if arguments.resume:
            from dynolog.cli.fleet.resume import resume  # noqa: PLC0415 - asyncio, only for many hosts

            return resume(arguments, target)
        if alone := next((name for name in FOR_MANY_HOSTS if getattr(arguments, name)), ""):
            raise CommandError(f"--{alone.replace('_', '-')} is for many hosts: name them with --hosts", USAGE)
        command = trace_command(arguments)
        options = follow_options(arguments)
        if command.only_ours and not knows_ours(target):
            raise CommandError(
                f"this daemon does not know {command.only_ours}: it is the original C++ dynolog, which would trace "
                "something else. Nothing was sent"
            )
        for note in without_effect(arguments):
            print(f"note: {note}", file=sys.stderr)
        if not arguments.json:
            print(f"Kineto config = \n{command.request.config}")
        raw = _send(target, command.request)
        if not arguments.json:
            print_trace_reply(raw)
        answer = Answer.of(raw, target)
        if not arguments.json:
            print_outcome(answer, command.config, dry_run=arguments.dry_run)
        return _after(arguments, target, options, command, answer)


def _send(target: Target, request: SetKinetOnDemandRequest) -> RawReply:
    try:
        return ask(target, request)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted before the daemon answered: it may have taken the request; "
            f"`{command_for(target, 'trace')}` lists those that it has"
        ) from None


def _after(
    arguments: argparse.Namespace, target: Target, options: FollowOptions, command: TraceCommand, answer: Answer
) -> int:
    reply = answer.reply
    code = _exit_code(reply)
    conclusion = None
    if reply.captures:
        if options.wait:
            sys.stdout.flush()
            conclusion = conclude(target, reply.request_id, options, as_json=arguments.json)
            code = max(code, conclusion.exit_code)
        elif not arguments.json:
            print(printable(f"Follow it with: {command_for(target, 'trace', reply.request_id)}"))
    elif options.wait and reply.processesMatched and not answer.ours:
        print(_CANNOT_FOLLOW, file=sys.stderr)
    if arguments.json:
        print_json(_report(answer, command, conclusion))
    return code


def _report(answer: Answer, command: TraceCommand, conclusion: Conclusion | None) -> dict[str, Any]:
    """What --json prints: the daemon's answer as it came, the config and the files; `progress` and `fetched` when followed."""
    report: dict[str, Any] = {
        **msgspec.json.decode(answer.text),
        "config": command.request.config,
        "files": answer.files(command.config),
    }
    if conclusion is not None:
        report |= {"progress": conclusion.progress, "fetched": conclusion.fetched}
    return report


def _exit_code(reply: TraceReply) -> int:
    if not reply.processesMatched:
        return FAILED
    if any(process.code not in _EXPECTED for process in reply.not_traced):
        return FAILED
    return DONE if reply.activityProfilersTriggered else FAILED
