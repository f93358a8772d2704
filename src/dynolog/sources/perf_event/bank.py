"""The same group of events on many CPUs."""

import errno
from collections.abc import Sequence

from dynolog.sources.perf_event.attributes import EventSpec, user_mode_only
from dynolog.sources.perf_event.group import Group, Target
from dynolog.sources.perf_event.reading import read_bytes
from dynolog.sources.perf_event.syscall import PerfCalls
from dynolog.sources.perf_event.table import NOTHING, Table, parse_table


class Bank:
    """Groups of the same events, one a CPU, counted for everything that runs there or for one cgroup (`cgroup_fd`).

    The events are those of one PMU, and `allowed` its CPUs (EventSpec.cpus), which change when CPUs come and go: see `follow`.
    `refusals` says why single CPUs are not counted: they went offline. `user_mode_only` is set when the kernel would count nothing else.
    """

    def __init__(self, calls: PerfCalls, events: Sequence[EventSpec], cgroup_fd: int = -1) -> None:
        self.events = tuple(events)
        self.allowed = self.events[0].cpus
        self.user_mode_only = False
        self.refusals: dict[int, OSError] = {}
        self._calls = calls
        self._cgroup_fd = cgroup_fd
        self._size = read_bytes(len(self.events))
        self._groups: dict[int, Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def descriptors(self) -> int:
        """How many file descriptors are open."""
        return len(self._groups) * len(self.events)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that are counted."""
        return tuple(self._groups)

    def cpus_of(self, online: Sequence[int]) -> tuple[int, ...]:
        """Those of the CPUs that are online on which these events exist."""
        return tuple(online) if self.allowed is None else tuple(cpu for cpu in online if cpu in self.allowed)

    def follow(self, online: Sequence[int]) -> None:
        """Close the groups of CPUs that have gone, open those of new ones, and try again where it failed before.

        Raises OSError when no CPU can be counted, or one that is online cannot: half a host is not the host. Nothing of this bank
        then stays open.
        """
        wanted = self.cpus_of(online)
        for cpu in set(self._groups).difference(wanted):
            self._groups.pop(cpu).close()
        self.refusals = {}
        for cpu in wanted:
            if cpu not in self._groups:
                try:
                    self._open(cpu)
                except OSError as error:
                    self._refused(cpu, error)
        serious = [error for error in self.refusals.values() if error.errno != errno.ENODEV or not self._groups]
        if serious:
            self.close()
            raise serious[0]

    def _open(self, cpu: int) -> None:
        target = Target(cpu=cpu, cgroup_fd=self._cgroup_fd)
        try:
            group = Group(self._calls, self.events, target)
        except PermissionError:
            # The level 2 of perf_event_paranoid forbids the kernel's part only, where it lets us count at all.
            if self._groups and not self.user_mode_only:
                raise
            group = Group(self._calls, [user_mode_only(event) for event in self.events], target)
            self.user_mode_only = True
        try:
            group.enable()
        except OSError:
            group.close()
            raise
        self._groups[cpu] = group

    def _refused(self, cpu: int, error: OSError) -> None:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            self.close()
            raise error
        self.refusals[cpu] = error

    def read(self) -> Table:
        """The counts of every CPU, one system call each; a CPU that cannot be read is left out."""
        read, size = self._calls.read, self._size
        rows: list[bytes] = []
        groups: list[Group] = []
        for group in self._groups.values():
            try:
                row = read(group.leader_fd, size)
            except OSError:
                continue
            if len(row) == size:  # shorter: in error
                rows.append(row)
                groups.append(group)
        if not rows:
            return NOTHING
        return parse_table(b"".join(rows), [group.target.cpu for group in groups], [group.ids for group in groups])

    def close(self) -> None:
        """Close every descriptor."""
        for group in self._groups.values():
            group.close()
        self._groups.clear()
