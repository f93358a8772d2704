"""What `gputrace` and `trace` do after a request was taken: wait, report, bring the files here, and the exit code."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from dynolog.cli.exit_codes import DONE, FAILED, USAGE, CommandError
from dynolog.cli.gputrace.captures_report import capture_lines, exit_code, summary
from dynolog.cli.gputrace.fetched import Fetched
from dynolog.cli.gputrace.follow import follow
from dynolog.cli.option_types import positive_seconds
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, duration, size
from dynolog.cli.target_words import command_for
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.client import Target


class FollowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options about waiting and fetching. `wait_timeout_s` None: as long as it takes; `fetch` "": nowhere.

    `with_host`: the host's counters go into what is fetched, and are sampled for that.
    """

    wait: bool
    wait_timeout_s: float | None
    fetch: str
    compress: bool
    with_host: bool = False


def add_follow_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    group = parser.add_argument_group("following the request")
    group.add_argument(
        "--wait",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="wait until every file is written and checked (on by default on a terminal, and with --fetch)",
    )
    group.add_argument(
        "--wait-timeout", type=positive_seconds, metavar="S", help="stop waiting after S seconds, exit code 1"
    )
    group.add_argument("--fetch", default="", metavar="DIR", help="bring the written files into this directory here")
    group.add_argument(
        "--with-host",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="add the host's counters (CPU, disks, network, GPUs...) to the fetched traces, on their clock (with --fetch: on)",
    )
    group.add_argument("--gzip", action="store_true", help="compress the fetched files; needs --fetch")


def follow_options(arguments: argparse.Namespace) -> FollowOptions:
    """Check them together. Raises CommandError (usage)."""
    if arguments.gzip and not arguments.fetch:
        raise CommandError("--gzip compresses the fetched files: it needs --fetch DIR", USAGE)
    if arguments.fetch and arguments.wait is False:
        raise CommandError("--fetch waits for the files: it cannot be had with --no-wait", USAGE)
    if arguments.wait_timeout is not None and arguments.wait is False:
        raise CommandError("--wait-timeout cannot be had with --no-wait", USAGE)
    wanted = bool(arguments.fetch) or arguments.wait_timeout is not None or sys.stdout.isatty()
    return FollowOptions(
        wait=wanted if arguments.wait is None else arguments.wait,
        wait_timeout_s=arguments.wait_timeout,
        fetch=arguments.fetch,
        compress=arguments.gzip,
        with_host=bool(arguments.fetch) if arguments.with_host is None else arguments.with_host,
    )


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """How a followed request ended."""

    progress: RequestProgress
    fetched: Sequence[Fetched]
    exit_code: int


def conclude(target: Target, request_id: str, options: FollowOptions, *, as_json: bool) -> Conclusion:
    """Wait, report, fetch. With `as_json` nothing is printed: the caller has one object to print."""
    progress = follow(target, request_id, as_json=as_json, wait_timeout_s=options.wait_timeout_s)
    if not as_json:
        print_captures(progress)
    code = exit_code(progress.captures)
    if not progress.done:
        code = FAILED
        waited = duration(options.wait_timeout_s or 0)
        again = command_for(target, "trace", request_id)
        print(printable(f"dyno: still going on after {waited}: follow it with `{again}`"), file=sys.stderr)
    fetched: list[Fetched] = []
    if options.fetch:
        from dynolog.cli.gputrace.fetch import fetch_all  # noqa: PLC0415 - hashing loads libcrypto: only for files
        from dynolog.cli.gputrace.host_tracks import HostTracks  # noqa: PLC0415 - as above

        host = HostTracks() if options.with_host else None
        fetched = fetch_all(target, progress.captures, options.fetch, compress=options.compress, host=host)
        code = max(code, _report_fetched(fetched, as_json=as_json))
    return Conclusion(progress=progress, fetched=fetched, exit_code=code)


def print_captures(progress: RequestProgress) -> None:
    """Each capture, then the sum."""
    for capture in progress.captures:
        for line in capture_lines(capture):
            print(line)
    print(summary(progress.captures))


def _report_fetched(fetched: Sequence[Fetched], *, as_json: bool) -> int:
    for file in fetched:
        if file.error:
            print(printable(f"dyno: {file.path} was not fetched: {file.error}"), file=sys.stderr)
        elif not as_json:
            what = "is here already" if file.already_here else f"fetched, {size(file.size_bytes)}, SHA-256 checked"
            if file.distributed_info_added:
                what += ", with its rank"
            if file.host_tracks:
                what += f", with {count(file.host_tracks, 'counter track')} of the host"
            print(printable(f"{file.path}: {what}"))
    for note in dict.fromkeys(file.host_note for file in fetched if file.host_note):
        without = [file.path for file in fetched if file.host_note == note]
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        print(printable(f"note: {without[0]}{more} without counters of the host: {note}"), file=sys.stderr)
    return FAILED if any(file.error for file in fetched) else DONE
