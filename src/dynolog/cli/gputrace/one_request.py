"""Asking a daemon about one trace request."""

from dynolog.model.errors import DynologError
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetTrace, TraceProgressReply, WaitTrace


def ask_about(target: Target, asked: GetTrace | WaitTrace) -> RequestProgress:
    """How the request fares. Raises what `call` raises, and DynologError when the answer is not about one request."""
    found = call(target, asked, TraceProgressReply).requests
    if len(found) != 1:
        raise DynologError(
            f"{target} answers about {len(found)} requests where it was asked about one: is it a dynolog?"
        )
    return found[0]
