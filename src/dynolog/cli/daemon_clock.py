"""The daemon's clock, which is another host's for a remote one."""

import time

from dynolog.model.errors import RequestError
from dynolog.rpc.client import CannotReach, NoAnswer, Target, call
from dynolog.rpc.messages import GetStatus, StatusReply


def clock_offset_ns(target: Target) -> int:
    """The daemon's clock minus ours, so that elapsed times and ages are right; 0 when it cannot be asked."""
    try:
        wall_ns = call(target, GetStatus(time=True), StatusReply).wall_ns
    except (CannotReach, NoAnswer, RequestError):
        return 0
    return wall_ns - time.time_ns() if wall_ns else 0
