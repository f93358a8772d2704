"""A kernel below perf_event_open(2): counters that a test makes count, be multiplexed, be refused or run out."""

import errno
import os
import struct
from collections.abc import Callable, Mapping

from dynolog.sources.perf_event.syscall import IOC_DISABLE, IOC_ENABLE, IOC_FLAG_GROUP, IOC_RESET, PID_CGROUP

SOFTWARE, TRACEPOINT = 1, 2
_FLAG_DISABLED, _FLAG_PINNED, _FLAG_EXCLUSIVE, _FLAG_EXCLUDE_KERNEL = 1, 1 << 2, 1 << 3, 1 << 5
_GROUP_READ = 15


class Attr:
    """A decoded perf_event_attr (perf_event_open(2)), of either size."""

    def __init__(self, data: bytes) -> None:
        words = struct.unpack_from("=IIQQQQQIIQQ", data)
        self.type, self.size, self.config, self.period, self.sample_type, self.read_format, self.flags = words[:7]
        self.config1, self.config2 = words[9], words[10]
        self.config3 = struct.unpack_from("=Q", data, 128)[0] if self.size > 128 else 0
        assert self.size == len(data), "the size that the attr states is its own"
        assert not self.flags & (_FLAG_PINNED | _FLAG_EXCLUSIVE), "never pinned, never exclusive"
        assert self.read_format == _GROUP_READ

    @property
    def key(self) -> tuple[int, int]:
        return self.type, self.config

    @property
    def excludes_kernel(self) -> bool:
        return bool(self.flags & _FLAG_EXCLUDE_KERNEL)


class Counter:
    """One open event."""

    def __init__(self, attr: Attr, cpu: int, cgroup: int, leader: "Counter | None") -> None:
        self.attr = attr
        self.cpu = cpu
        self.cgroup = cgroup
        self.leader = leader or self
        self.members: list[Counter] = []
        self.enabled = not attr.flags & _FLAG_DISABLED
        self.event_id = 0
        self.count = 0.0
        self.enabled_ns = 0
        self.running_ns = 0


class FakePerfKernel:
    """PerfCalls without a kernel.

    `rates` gives what each (type, config) counts in a second on one CPU; an event without a rate does not exist. `offline` CPUs
    answer ENODEV. `counters` is how many events of a PMU a group may have. `share` says for how much of the time the group of a
    counter runs (1 unless told). `refuse` is asked before every open and may give an errno.
    """

    def __init__(self, rates: Mapping[tuple[int, int], float], counters: int = 8) -> None:
        self.rates = dict(rates)
        self.counters = counters
        self.offline: set[int] = set()
        self.share: Callable[[Counter], float] = lambda counter: 1.0
        self.cgroup_share: dict[int, float] = {}
        self.refuse: Callable[[Attr, int, int], int] = lambda attr, cpu, cgroup: 0
        self.most_open = 10**6
        self.open_counters: dict[int, Counter] = {}
        self.reads = 0
        self.now_ns = 1
        self.order: Callable[[list[Counter]], list[Counter]] = list
        self._next_fd = 1000
        self._next_id = 1

    # --- what a test does -----------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Time passes on every CPU that is online; a cgroup is enabled for its share of it."""
        self.now_ns += round(seconds * 1e9)
        for counter in self.open_counters.values():
            if not counter.leader.enabled or counter.cpu in self.offline:
                continue
            enabled_s = seconds * (self.cgroup_share.get(counter.cgroup, 1.0) if counter.cgroup else 1.0)
            running_s = enabled_s * self.share(counter.leader)
            counter.enabled_ns += round(enabled_s * 1e9)
            counter.running_ns += round(running_s * 1e9)
            counter.count += self.rates[counter.attr.key] * running_s

    def monotonic_ns(self) -> int:
        """The clock, which stands still but for `advance`."""
        return self.now_ns

    @property
    def opened(self) -> list[tuple[int, int]]:
        """The CPU and type of everything that is open."""
        return [(counter.cpu, counter.attr.type) for counter in self.open_counters.values()]

    @property
    def group_sizes(self) -> set[int]:
        """The sizes of the groups that are open."""
        return {1 + len(counter.members) for counter in self.open_counters.values() if counter.leader is counter}

    # --- PerfCalls ------------------------------------------------------------------------------------------------------

    def open(self, attr: bytes, pid: int, cpu: int, group_fd: int, flags: int) -> int:
        decoded = Attr(attr)
        cgroup = os.fstat(pid).st_ino if flags & PID_CGROUP else 0
        leader = self.open_counters[group_fd] if group_fd >= 0 else None
        self._check(decoded, cpu, cgroup, leader)
        counter = Counter(decoded, cpu, cgroup, leader)
        if leader is not None:
            leader.members.append(counter)
        counter.event_id, self._next_id = self._next_id, self._next_id + 1
        fd, self._next_fd = self._next_fd, self._next_fd + 1
        self.open_counters[fd] = counter
        return fd

    def _check(self, attr: Attr, cpu: int, cgroup: int, leader: Counter | None) -> None:
        number = self.refuse(attr, cpu, cgroup)
        if cpu in self.offline:
            number = errno.ENODEV
        elif attr.key not in self.rates:
            number = errno.ENOENT
        elif leader is not None and attr.type not in (SOFTWARE, TRACEPOINT) and len(leader.members) + 2 > self.counters:
            number = errno.EINVAL
        if len(self.open_counters) >= self.most_open:
            number = errno.EMFILE
        if number:
            raise OSError(number, os.strerror(number))

    def control(self, fd: int, request: int, argument: int = 0) -> None:
        assert argument == IOC_FLAG_GROUP
        counter = self.open_counters[fd]
        for one in (counter, *counter.members):
            if request == IOC_RESET:
                one.count = 0.0
            else:
                assert request in (IOC_ENABLE, IOC_DISABLE)
                one.enabled = request == IOC_ENABLE

    def event_id(self, fd: int) -> int:
        return self.open_counters[fd].event_id

    def read(self, fd: int, size: int) -> bytes:
        self.reads += 1
        leader = self.open_counters[fd]
        members = self.order([leader, *leader.members])
        words = [len(members), leader.enabled_ns, leader.running_ns]
        for one in members:
            words += [round(one.count), one.event_id]
        assert size == 8 * len(words), "the kernel answers ENOSPC to a read that is too short"
        return struct.pack(f"={len(words)}Q", *words)

    def close(self, fd: int) -> None:
        del self.open_counters[fd]
