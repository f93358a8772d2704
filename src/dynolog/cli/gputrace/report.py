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
        print(_NO_MATCH)
        if reply.no_match_reason:
            print(printable(reply.no_match_reason))
        if reply.no_match_code in _NOT_REGISTERED:
            print("`dyno doctor --pid PID`, there, says what keeps a process from registering.")
    else:
        print(f"Matched {len(reply.processesMatched)} processes")
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
