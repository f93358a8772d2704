"""Asking many daemons at once: each with a deadline of its own, so that a dead one delays nobody."""

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from dynolog.fleet.targets import FleetTarget
from dynolog.rpc.messages import Request


class Outcome(StrEnum):
    """What became of one call to one host."""

    ANSWERED = "answered"
    REFUSED = "refused"  # the daemon says `failed`
    UNREACHABLE = "unreachable"  # no connection
    SILENT = "silent"  # a connection and no answer in time
    NO_ANSWER = "no_answer"  # closed without an answer: an original daemon that does not know the function
    NOT_UNDERSTOOD = "not_understood"  # no dynolog, or one of another version


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One host's answer: `body` is the reply's JSON when it answered; else `error` says what happened, `code` in one word.

    `sent_wall_ns` and `received_wall_ns` are by this machine's clock, for the clock offset.
    """

    target: FleetTarget
    outcome: Outcome
    body: bytes = b""
    error: str = ""
    code: str = ""
    attempts: int = 1
    sent_wall_ns: int = 0
    received_wall_ns: int = 0
    elapsed_s: float = 0.0


class FanOutOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout_s` is each host's whole time for one call, retries included; `fanout` the calls at a time."""

    timeout_s: float = 10.0
    fanout: int = 512
    token_file: str = ""


def ask_all(
    targets: Sequence[FleetTarget], request: Callable[[FleetTarget], Request] | Request, options: FanOutOptions
) -> list[HostAnswer]:
    """Ask every host once, at the same time; the answers in the order of the hosts. Raises TokenFileError only."""
    raise NotImplementedError
