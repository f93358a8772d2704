"""A group of counters on one CPU, process or cgroup, read at once."""

import contextlib
from collections.abc import Sequence

import msgspec

from dynolog.sources.perf_event.attributes import EventSpec, encode_attr
from dynolog.sources.perf_event.reading import Reading, parse_reading, read_bytes
from dynolog.sources.perf_event.syscall import IOC_DISABLE, IOC_ENABLE, IOC_FLAG_GROUP, IOC_RESET, PID_CGROUP, PerfCalls


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where to count: a CPU (all that runs there), a process (pid, cpu -1), or a cgroup on a CPU.

    `cgroup_fd` is a descriptor of the cgroup's directory, -1 for none. `inherit` counts children that a process starts later.
    """

    cpu: int = -1
    pid: int = -1
    cgroup_fd: int = -1
    inherit: bool = False


class Group:
    """Events that are always counted at the same time, on one target. Descriptors are closed by `close` or with the object.

    `ids` are the kernel's numbers of the events, never given out twice; `leader_fd` reads them all.
    """

    __slots__ = ("_calls", "_fds", "_size", "events", "ids", "leader_fd", "target")

    def __init__(self, calls: PerfCalls, events: Sequence[EventSpec], target: Target) -> None:
        """Open the group, disabled. Raises OSError as perf_event_open(2) does; nothing then stays open."""
        self.events = tuple(events)
        self.target = target
        self._calls = calls
        self._fds: list[int] = []
        self._size = read_bytes(len(self.events))
        pid, flags = (target.cgroup_fd, PID_CGROUP) if target.cgroup_fd >= 0 else (target.pid, 0)
        try:
            for event in self.events:
                leader = self._fds[0] if self._fds else -1
                attr = encode_attr(event, disabled=leader < 0, inherit=target.inherit)
                self._fds.append(calls.open(attr, pid, target.cpu, leader, flags))
            self.ids = tuple(calls.event_id(fd) for fd in self._fds)
        except OSError:
            self.close()
            raise
        self.leader_fd = self._fds[0]

    def enable(self) -> None:
        """Start counting. Raises OSError."""
        self._calls.control(self.leader_fd, IOC_ENABLE, IOC_FLAG_GROUP)

    def disable(self) -> None:
        """Stop counting; the counts stay. Raises OSError."""
        self._calls.control(self.leader_fd, IOC_DISABLE, IOC_FLAG_GROUP)

    def reset(self) -> None:
        """Set the counts, not the times, to 0. Raises OSError."""
        self._calls.control(self.leader_fd, IOC_RESET, IOC_FLAG_GROUP)

    def read(self) -> Reading | None:
        """All counts and the times in one system call; None when the group is in error. Raises OSError."""
        return parse_reading(self._calls.read(self.leader_fd, self._size), self.ids)

    def close(self) -> None:
        """Close every descriptor, members before the leader; harmless when repeated."""
        while self._fds:
            with contextlib.suppress(OSError):
                self._calls.close(self._fds.pop())

    def __del__(self) -> None:
        self.close()
