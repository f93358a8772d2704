"""dyno trace."""

import argparse
import time
from collections.abc import Sequence

import msgspec

from dynolog.cli.daemon_clock import clock_offset_ns
from dynolog.cli.daemon_kind import asking_for_ours
from dynolog.cli.exit_codes import DONE, USAGE, CommandError
from dynolog.cli.gputrace.captures_report import exit_code, summary
from dynolog.cli.gputrace.fetched import Fetched
from dynolog.cli.gputrace.follow_up import add_follow_options, conclude, follow_options, print_captures
from dynolog.cli.gputrace.one_request import ask_about
from dynolog.cli.quantities import age
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import table, terminal_columns
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetTrace, TraceProgressReply


class TraceReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What --json prints: requests as they stand, and the files that were fetched."""

    requests: Sequence[RequestProgress]
    fetched: Sequence[Fetched] = ()


class Trace:
    """List the trace requests that the daemon remembers, or follow one.

    Exit code 1 when one of its captures failed.
    """

    name = "trace"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which request, and how to follow it."""
        parser.epilog = (
            "What the host did meanwhile: dyno trace host. On trace files: dyno trace validate, info, slice, shrink, merge, "
            "convert; each has a --help."
        )
        parser.add_argument(
            "request_id", nargs="?", default="", metavar="REQUEST_ID", help="the one to follow (all: listed)"
        )
        add_follow_options(parser)

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """List, show or follow."""
        options = follow_options(arguments)
        if not arguments.request_id:
            if arguments.fetch or arguments.wait:
                raise CommandError("--wait and --fetch need a REQUEST_ID: `dyno trace` lists them", USAGE)
            return _list(arguments, target)
        with asking_for_ours(target, "trace requests"):
            progress = ask_about(target, GetTrace(request_id=arguments.request_id))
        if options.wait:
            conclusion = conclude(target, arguments.request_id, options, as_json=arguments.json)
            if arguments.json:
                print_json(TraceReport(requests=(conclusion.progress,), fetched=conclusion.fetched))
            return conclusion.exit_code
        if arguments.json:
            print_json(TraceReport(requests=(progress,)))
        else:
            print_captures(progress)
        return exit_code(progress.captures)


def _list(arguments: argparse.Namespace, target: Target) -> int:
    with asking_for_ours(target, "trace requests"):
        requests = call(target, GetTrace(), TraceProgressReply).requests
    if arguments.json:
        print_json(TraceReport(requests=requests))
    elif requests:
        now_wall_ns = time.time_ns() + clock_offset_ns(target)
        rows = [_row(request, now_wall_ns) for request in sorted(requests, key=_started_wall_ns)]
        print(table(("REQUEST", "STARTED", "CAPTURES", "FIRST FILE"), rows, columns=terminal_columns()))
    else:
        print("The daemon remembers no trace request: `dyno gputrace --log-file /tmp/t.json` makes one.")
    return DONE


def _row(request: RequestProgress, now_wall_ns: int) -> tuple[str, ...]:
    first = request.captures[0].path if request.captures else "-"
    return request.request_id, age(_started_wall_ns(request), now_wall_ns), summary(request.captures), first


def _started_wall_ns(request: RequestProgress) -> int:
    return min((capture.history[0].wall_ns for capture in request.captures if capture.history), default=0)
