"""How many file descriptors counters may take (getrlimit(2))."""

import os
import resource

# What the rest of the process may still need: a descriptor for each trainer, and as many again for sockets, kernel files and traces
# that are being fetched (PidfdWatch leaves 256 for those).
RESERVED_FDS = 512


def room_for(need: int, reserved: int = RESERVED_FDS) -> int:
    """How many more descriptors this process may open beside `reserved`, after its soft limit was raised for `need` as far as
    the hard one allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(os.listdir("/proc/self/fd"))
    wanted = opened + need + reserved
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if raised > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return need if soft == resource.RLIM_INFINITY else max(soft - opened - reserved, 0)
