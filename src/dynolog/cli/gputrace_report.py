"""What `dyno gputrace` prints of the daemon's answer: the public dyno's lines first, in its order, then ours."""

import sys

import msgspec

from dynolog.cli.captures_report import who
from dynolog.cli.printable import printable
from dynolog.cli.quantities import duration
from dynolog.cli.reply_text import print_reply
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.rpc.client import RawReply
from dynolog.rpc.messages import TraceReply

_NO_MATCH = "No processes were matched, please check --job-id or --pids flags"
# On a terminal the rest of the answer is told in words.
_SHORT_KEYS = (
    "processesMatched",
    "eventProfilersTriggered",
    "activityProfilersTriggered",
    "eventProfilersBusy",
    "activityProfilersBusy",
    "request_id",
)


def print_trace_reply(reply: RawReply) -> None:
    """The two lines of every answer; whole for programs, without what is told below for people."""
    text = reply.text
    if sys.stdout.isatty():
        try:
            answer = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            answer = None
        if isinstance(answer, dict) and "request_id" in answer:
            text = msgspec.json.encode({key: answer[key] for key in _SHORT_KEYS if key in answer}).decode()
    print_reply(RawReply(reply.length, text))


def files(reply: TraceReply, config: KinetoConfig) -> list[str]:
    """The files to come: as the daemon says, else by libkineto's rule for the pids that matched."""
    if reply.request_id:
        return [capture.path for capture in reply.captures]
    return [config.final_path(pid) for pid in reply.processesMatched]


def print_outcome(reply: TraceReply, config: KinetoConfig, *, dry_run: bool) -> None:
    """Who matched and what will be written; or why nothing matched."""
    if not reply.processesMatched:
        print(_NO_MATCH)
        if reply.no_match_reason:
            print(printable(reply.no_match_reason))
    else:
        print(f"Matched {len(reply.processesMatched)} processes")
        if paths := files(reply, config):
            print("Trace output files would be written to:" if dry_run else "Trace output files will be written to:")
            for path in paths:
                print(f"    {printable(path)}")
        elif busy := reply.activityProfilersBusy:
            print(f"None is traced: {busy} busy")
    _print_left_out(reply)
    for note in reply.notes:
        print(printable(f"note: {note}"))
    if reply.expected_s and reply.captures:
        print(f"Expected to take about {duration(reply.expected_s)}")


def _print_left_out(reply: TraceReply) -> None:
    if not reply.not_traced:
        return
    print("Not traced:")
    for process in reply.not_traced:
        name = who(process.pid, process.host_pid)
        print(printable(f"    {name}: {process.error} ({process.code})"))
