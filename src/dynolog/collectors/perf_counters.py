"""Performance counters of the host and of cgroups: what is open follows the flags and the CPUs, and is read and compared."""

import time
from collections.abc import Callable, Mapping

import msgspec

from dynolog.collectors.perf_counting import Counts
from dynolog.collectors.perf_opening import Opening
from dynolog.collectors.perf_values import Shares, cgroup_values, grown, host_values, traffic_values
from dynolog.collectors.spec import Context, Values
from dynolog.sources.perf_event.syscall import KernelCalls, PerfCalls
from dynolog.sources.topology import parse_cpu_list

ONLINE = "sys/devices/system/cpu/online"
# What was refused is tried again this seldom; CPUs that come and go are seen at once, and so are cgroups that go.
LOOK_AGAIN_EVERY = 60
# A job's cgroup is new for no longer than this, or than one round.
_NEW_CGROUPS_NS = 10_000_000_000


class PerfSnapshot(msgspec.Struct, frozen=True):
    """Counts of the host, and of each cgroup by its path, and the sockets of its CPUs.

    `traffic` is bytes of memory traffic by control group and domain, of which `traffic_sockets` gives the sockets.
    """

    host: Counts
    cgroups: Mapping[str, Counts]
    sockets: Mapping[int, int]
    traffic: Mapping[tuple[str, int], int] = {}
    traffic_sockets: Mapping[int, int] = {}


class PerfCounters:
    """Counts what `--perf_metrics` names, on every CPU that is online, for the host and for each of `--perf_cgroups`."""

    def __init__(
        self, context: Context, calls: PerfCalls | None = None, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._settings = context.settings
        self._notices = context.notices
        self._opening = Opening(calls or KernelCalls(), context.host, context.notices, monotonic_ns)
        self._online_file = context.host.file(ONLINE)
        self._online_text = b""
        self._online: tuple[int, ...] = ()
        self._wanted: tuple[str, str] | None = None
        self._rounds = 0
        self._monotonic_ns = monotonic_ns
        self._cgroups_seen_ns = 0
        self._starved: set[str] = set()

    def read(self) -> PerfSnapshot:
        """One reading. Raises SourceUnavailable when nothing of what is wanted can be counted."""
        changed = self._look_at_cpus()
        wanted = (self._settings.text("perf_metrics"), self._settings.text("perf_cgroups"))
        opening = self._opening
        if wanted != self._wanted:
            opening.close()
            self._wanted = wanted
            self._rounds = 0
        now_ns = self._monotonic_ns()
        if changed or not opening.is_open or (opening.is_incomplete and self._rounds % LOOK_AGAIN_EVERY == 0):
            opening.follow(*wanted, self._online)
            self._cgroups_seen_ns = now_ns
        elif now_ns - self._cgroups_seen_ns >= _NEW_CGROUPS_NS:
            opening.look_for_cgroups(wanted[1], self._online)
            self._cgroups_seen_ns = now_ns
        self._rounds += 1
        host, cgroups = opening.read()
        if (traffic := opening.traffic) is None:
            return PerfSnapshot(host, cgroups, opening.sockets)
        return PerfSnapshot(host, cgroups, opening.sockets, traffic.read(), traffic.sockets)

    def _look_at_cpus(self) -> bool:
        try:
            text = self._online_file.read()
            if text == self._online_text:
                return False
            self._online, self._online_text = parse_cpu_list(text.decode("ascii", "replace")), text
        except (OSError, ValueError):
            return False
        return True

    def compute(self, before: PerfSnapshot, after: PerfSnapshot) -> Values:
        """Metrics of the interval; none of a group that had a counter for less than --perf_min_running_pct of it.

        Rates are over the time between the readings of the counters themselves: opening them may take a part of a round.
        """
        starved: set[str] = set()
        shares = Shares(self._settings.number("perf_min_running_pct") / 100, starved.add)
        groups = grown(before.host, after.host, idle_is_zero=False)
        elapsed_s = _seconds(before.host, after.host)
        values = host_values(groups, elapsed_s, shares, after.host.partial, after.sockets)
        for path, counts in after.cgroups.items():
            if path in before.cgroups:
                groups = grown(before.cgroups[path], counts, idle_is_zero=True)
                seconds = _seconds(before.cgroups[path], counts)
                values.update(cgroup_values(groups, seconds, shares, counts.partial, path))
        values.update(traffic_values(before.traffic, after.traffic, after.traffic_sockets, elapsed_s))
        if starved != self._starved:
            self._starved = starved
            self._opening.say_starved(starved)
        return values


def _seconds(before: Counts, after: Counts) -> float:
    return (after.monotonic_ns - before.monotonic_ns) / 1e9
