"""Counters that are open for one plan: of the whole host, or of one cgroup."""

import errno
import time
from collections.abc import Callable, Sequence

import msgspec

from dynolog.collectors.perf_groups import Derived
from dynolog.collectors.perf_plan import Option, Plan, Planned, smaller
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.bank import Bank
from dynolog.sources.perf_event.refusal import PerfRefused, refused
from dynolog.sources.perf_event.syscall import PerfCalls
from dynolog.sources.perf_event.table import Table


class OpenGroup(msgspec.Struct, frozen=True):
    """A group that is counted on one PMU: its banks together hold its events in order."""

    planned: Planned
    banks: tuple[Bank, ...]
    derived: tuple[Derived, ...]

    @property
    def scales(self) -> tuple[float, ...]:
        """The factor of each event's count."""
        return tuple(event.scale for bank in self.banks for event in bank.events)


class Read(msgspec.Struct, frozen=True):
    """One reading of an open group: a table for each bank."""

    group: OpenGroup
    tables: tuple[Table, ...]


class Counts(msgspec.Struct, frozen=True):
    """One reading of everything, begun at `monotonic_ns`.

    The groups named in `partial` lack a PMU, so that their sums are not those of the host.
    """

    monotonic_ns: int
    reads: tuple[Read, ...]
    partial: frozenset[str] = frozenset()


class Counting:
    """Opens what a plan says, as far as the kernel lets it.

    `refusals` gives the reason for each group that is not counted, by its name; by `GROUP (PMU)` when it is on another PMU.
    """

    def __init__(
        self,
        calls: PerfCalls,
        host: HostFiles,
        cgroup_fd: int = -1,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.refusals: dict[str, PerfRefused] = {}
        self._calls = calls
        self._host = host
        self._cgroup_fd = cgroup_fd
        self._monotonic_ns = monotonic_ns
        self._open: dict[tuple[str, str], OpenGroup] = {}
        self._partial: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def descriptors(self) -> int:
        """How many file descriptors are open."""
        return sum(bank.descriptors for group in self._open.values() for bank in group.banks)

    def follow(self, plan: Plan, online: Sequence[int]) -> None:
        """Open on CPUs that have come, close on those that have gone, try again what was refused.

        `plan` may differ from the last one in the CPUs of a PMU and in which groups it has.
        """
        refusals: dict[tuple[str, str], PerfRefused] = {}
        wanted = {(planned.group.name, planned.pmu): planned for planned in plan.planned}
        for name in set(self._open).difference(wanted):
            self._close(name)
        for name, planned in wanted.items():
            try:
                self._follow_one(name, planned, online)
            except OSError as error:
                self._close(name)
                events = [event.name for event in planned.options[0].events]
                refusals[name] = refused(error, events, self._host)
        counted = {group for group, _ in self._open}
        self._partial = frozenset(group for group, _ in refusals if group in counted) | (plan.partial & counted)
        self.refusals = {
            f"{group} ({pmu})" if group in counted else group: refusal for (group, pmu), refusal in refusals.items()
        }

    def _follow_one(self, name: tuple[str, str], planned: Planned, online: Sequence[int]) -> None:
        if (known := self._open.get(name)) is not None:
            for bank in known.banks:
                bank.allowed = planned.options[0].events[0].cpus
                bank.follow(online)
        elif (opened := self._first_that_opens(planned, online)) is not None:
            self._open[name] = opened

    def _first_that_opens(self, planned: Planned, online: Sequence[int]) -> OpenGroup | None:
        """None when none of its CPUs is online. Raises OSError with the reason against the first option."""
        first: OSError | None = None
        for option in planned.options:
            try:
                banks = self._open_option(option, online)
            except OSError as error:
                first = first or error
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    break
                continue
            return OpenGroup(planned, banks, option.derived) if any(map(len, banks)) else None
        assert first is not None, "a plan has an option for each group"
        raise first

    def _open_option(self, option: Option, online: Sequence[int]) -> tuple[Bank, ...]:
        banks: list[Bank] = []
        try:
            for events in option.banks:
                banks.append(Bank(self._calls, events, self._cgroup_fd))
                banks[-1].follow(online)
        except OSError as error:
            for bank in banks:
                bank.close()
            # A PMU with fewer counters than the group has events answers EINVAL.
            divided = smaller(option) if error.errno == errno.EINVAL else None
            if divided is None:
                raise
            return self._open_option(divided, online)
        return tuple(banks)

    def read(self) -> Counts:
        """Everything that is counted."""
        begun_ns = self._monotonic_ns()
        reads = tuple(Read(group, tuple(bank.read() for bank in group.banks)) for group in self._open.values())
        return Counts(begun_ns, reads, self._partial)

    def close(self) -> None:
        """Close every descriptor."""
        for name in list(self._open):
            self._close(name)

    def _close(self, name: tuple[str, str]) -> None:
        if (group := self._open.pop(name, None)) is not None:
            for bank in group.banks:
                bank.close()

    @property
    def user_mode_only(self) -> bool:
        """Whether the kernel lets us count user mode only, somewhere."""
        return any(bank.user_mode_only for group in self._open.values() for bank in group.banks)
