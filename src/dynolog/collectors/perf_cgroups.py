"""Counters of single cgroups: they come and go, and each has banks of its own."""

import contextlib
import os
from collections.abc import Callable, Sequence

import msgspec
import msgspec.structs

from dynolog.collectors.perf_counting import Counting, Counts
from dynolog.collectors.perf_plan import Plan
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_cgroups import find_cgroups, open_cgroup, perf_cgroup_root
from dynolog.sources.perf_event.syscall import PerfCalls


class _Cgroup(msgspec.Struct, frozen=True):
    """One that is counted. The inode tells a cgroup that was removed and made again from the one before."""

    inode: int
    fd: int
    counting: Counting

    def close(self) -> None:
        self.counting.close()
        with contextlib.suppress(OSError):
            os.close(self.fd)


class CgroupCounting:
    """Counts each cgroup that `patterns` name with those groups of `plan` that belong to threads, at most `most` of them.

    Raises SourceUnavailable when no hierarchy of cgroups can be counted. `uncounted` says why a path is not.
    """

    def __init__(
        self, calls: PerfCalls, host: HostFiles, patterns: Sequence[str], monotonic_ns: Callable[[], int]
    ) -> None:
        self.uncounted: dict[str, str] = {}
        self._calls = calls
        self._host = host
        self._patterns = patterns
        self._monotonic_ns = monotonic_ns
        self._cgroups: dict[str, _Cgroup] = {}
        self._root = perf_cgroup_root(host)

    @property
    def paths(self) -> tuple[str, ...]:
        """The cgroups that are counted."""
        return tuple(self._cgroups)

    @property
    def descriptors(self) -> int:
        """How many file descriptors are open."""
        return sum(cgroup.counting.descriptors + 1 for cgroup in self._cgroups.values())

    def find(self) -> list[str]:
        """Those that there are now."""
        return find_cgroups(self._host, self._root, self._patterns)

    def follow(self, plan: Plan, paths: Sequence[str], online: Sequence[int]) -> None:
        """Count exactly `paths`, on the CPUs that are online."""
        plan = Plan(tuple(planned for planned in plan.planned if planned.group.in_cgroups), {}, plan.partial)
        self.uncounted = {}
        for path in set(self._cgroups) - set(paths):
            self._cgroups.pop(path).close()
        for path in paths:
            try:
                self._follow_one(plan, path, online)
            except OSError as error:
                self.uncounted[path] = error.strerror or str(error)

    def _follow_one(self, plan: Plan, path: str, online: Sequence[int]) -> None:
        known = self._cgroups.get(path)
        if known is not None and not self._is_there(path, known):
            self._cgroups.pop(path).close()
            known = None
        if known is None:
            fd = open_cgroup(self._host, self._root, path)
            known = _Cgroup(os.fstat(fd).st_ino, fd, Counting(self._calls, self._host, fd, self._monotonic_ns))
        known.counting.follow(plan, online)
        if len(known.counting):
            self._cgroups[path] = known
            return
        self._cgroups.pop(path, None)
        known.close()
        self.uncounted[path] = next(
            (refusal.reason for refusal in known.counting.refusals.values()), "nothing to count"
        )

    def read(self) -> dict[str, Counts]:
        """Counts by path. One that was removed has none: its counters would stand still, and hold it in the kernel."""
        for path in [path for path, cgroup in self._cgroups.items() if not self._is_there(path, cgroup)]:
            self._cgroups.pop(path).close()
        return {path: cgroup.counting.read() for path, cgroup in self._cgroups.items()}

    def _is_there(self, path: str, cgroup: _Cgroup) -> bool:
        try:
            return os.stat(self._host.path(self._root) + path).st_ino == cgroup.inode
        except OSError:
            return False

    def close(self) -> None:
        """Close every descriptor."""
        for cgroup in self._cgroups.values():
            cgroup.close()
        self._cgroups.clear()

    def __del__(self) -> None:
        self.close()
