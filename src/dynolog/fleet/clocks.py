"""The clocks of other hosts, from the time in their answers and the time that these took."""

import msgspec

from dynolog.fleet.host_call import HostAnswer
from dynolog.rpc.messages import StatusReply

# Beyond this a host's clock is worth a word: traces of several hosts would not lie over each other.
WARN_NS = 100_000_000


class ClockOffset(msgspec.Struct, frozen=True, kw_only=True):
    """A host's clock minus ours in ns, right to `uncertainty_ns` either way (half the round trip)."""

    offset_ns: int
    uncertainty_ns: int

    @property
    def is_known_to_differ(self) -> bool:
        """Whether the difference is more than the measurement can be wrong by."""
        return abs(self.offset_ns) > self.uncertainty_ns + 1_000_000

    @property
    def is_off(self) -> bool:
        """Whether it is surely more than 100 ms off."""
        return abs(self.offset_ns) - self.uncertainty_ns > WARN_NS

    @property
    def correction_ns(self) -> int:
        """What to add to our time to have the host's; 0 where the difference may be none."""
        return self.offset_ns if self.is_known_to_differ else 0

    def __str__(self) -> str:
        return f"{self.offset_ns / 1e6:+.1f} ±{self.uncertainty_ns / 1e6:.1f} ms"


def clock_offset(answer: HostAnswer) -> ClockOffset | None:
    """From an answer to `getStatus` with `time`; None when it tells no time, as an original daemon's does not.

    The daemon looks at its clock between our sending and our receiving, so in the middle it can be wrong by half of that.
    """
    reply = answer.decode(StatusReply)
    if reply is None or not reply.wall_ns or not answer.received_wall_ns:
        return None
    round_trip_ns = max(answer.received_wall_ns - answer.sent_wall_ns, 0)
    middle_ns = answer.sent_wall_ns + round_trip_ns // 2
    return ClockOffset(offset_ns=reply.wall_ns - middle_ns, uncertainty_ns=round_trip_ns // 2)
