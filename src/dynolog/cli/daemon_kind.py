"""Telling our daemon from the original dynolog (C++), which closes without a word when it does not know a function."""

from collections.abc import Iterator
from contextlib import contextmanager

from dynolog.cli.exit_codes import UNREACHABLE, CommandError
from dynolog.rpc.client import NoAnswer, Target, call
from dynolog.rpc.messages import GetStatus, StatusReply


def knows_ours(target: Target) -> bool:
    """Whether the daemon understands what is beyond the public protocol: only ours tells its time when asked."""
    return call(target, GetStatus(time=True), StatusReply).wall_ns > 0


@contextmanager
def asking_for_ours(target: Target, what: str) -> Iterator[None]:
    """Around a call of a function that is ours: no answer from a daemon that does answer `getStatus` means that it is the original."""
    try:
        yield
    except NoAnswer:
        if knows_ours(target):
            raise
        raise CommandError(
            f"this daemon tells nothing about {what}: it is the original C++ dynolog, which has no such function",
            UNREACHABLE,
        ) from None
