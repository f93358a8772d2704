"""What `dyno gputrace` prints of the daemon's answer: the public dyno's lines first, in its order, then ours."""

import sys
from typing import Self

import msgspec

from dynolog.cli.gputrace.captures_report import who
from dynolog.cli.printable import printable
from dynolog.cli.quantities import duration
from dynolog.cli.reply_text import print_reply
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.rpc.client import RawReply, Target, decode
from dynolog.rpc.messages import TraceReply

_NO_MATCH = "No processes were matched, please check --job-id or --pids flags"
_NOT_REGISTERED = ("no_trainer_registered", "pid_not_registered", "job_not_found")


def print_trace_reply(reply: RawReply) -> None:
    """The public dyno's two lines of every answer, for the programs that read them; a person on a terminal has it in words below."""
    if not sys.stdout.isatty():
        print_reply(reply)


class Answer(msgspec.Struct, frozen=True):
    """A reply as it came, and as it is understood. `ours`: the daemon knows requests; the original's answer has no such key."""

    text: str
    reply: TraceReply
    ours: bool

    @classmethod
    def of(cls, raw: RawReply, target: Target) -> Self:
        """Understand it. Raises RequestError for a refusal, DynologError for what is no answer."""
        reply = decode(target, raw.text.encode(), TraceReply)
        return cls(raw.text, reply, "request_id" in msgspec.json.decode(raw.text))

    def files(self, config: KinetoConfig) -> list[str]:
        """The files to come: as our daemon says, else by libkineto's rule. The original does not say who is busy: all that matched."""
        if self.reply.captures:
            return [capture.path for capture in self.reply.captures]
        pids = self.reply.activityProfilersTriggered if self.ours else self.reply.processesMatched
        return [config.final_path(pid) for pid in pids]


def print_outcome(answer: Answer, config: KinetoConfig, *, dry_run: bool) -> None:
    """Who matched and what will be written; or why nothing matched."""
    reply = answer.reply
    if not reply.processesMatched:
        if not (reply.no_match_reason and sys.stdout.isatty()):
            print(_NO_MATCH)
        if reply.no_match_reason:
            print(printable(reply.no_match_reason))
        if reply.no_match_code in _NOT_REGISTERED:
            print("`dyno doctor --pid PID`, typed on its machine, says what keeps a process from registering.")
    else:
        request = f", request {reply.request_id}" if reply.request_id and sys.stdout.isatty() else ""
        print(printable(f"Matched {len(reply.processesMatched)} processes{request}"))
        if paths := answer.files(config):
            print("Trace output files would be written to:" if dry_run else "Trace output files will be written to:")
            for path in paths:
                print(f"    {printable(path)}")
        if reply.activityProfilersBusy and not answer.ours:
            print(f"{reply.activityProfilersBusy} of them are busy with another trace and write none of these")
    _print_left_out(reply)
    for note in reply.notes:
        print(printable(f"note: {note}"))
    if reply.expected_s and reply.activityProfilersTriggered and not reply.notes:
        print(f"Expected to take about {duration(reply.expected_s)}")


def _print_left_out(reply: TraceReply) -> None:
    if not reply.not_traced:
        return
    print("Not traced:")
    for process in reply.not_traced:
        name = who(process.pid, process.host_pid)
        print(printable(f"    {name}: {process.error} ({process.code})"))
