"""Opens the counters that two flags ask for, within the limit of descriptors, and says what of it is not to be had and why."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dynolog.collectors.perf_cgroups import CgroupCounting
from dynolog.collectors.perf_counting import Counting, Counts
from dynolog.collectors.perf_plan import COUNTERS, Plan, descriptors_of, groups_of, make_plan
from dynolog.collectors.spec import Notices
from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles
from dynolog.sources.perf_event.descriptors import room_for
from dynolog.sources.perf_event.refusal import Why
from dynolog.sources.perf_event.syscall import PerfCalls
from dynolog.sources.pmu_devices import PmuDevices, discover
from dynolog.sources.pmu_events import parse_event, split_events
from dynolog.sources.pmu_tables import table_of
from dynolog.sources.resctrl import MemoryTraffic
from dynolog.sources.sockets_of_cpus import sockets_of

# The group of memory bandwidth.
MEMORY = "membw"
WATCHDOG = "proc/sys/kernel/nmi_watchdog"
_NO_PMU = "this machine shows no counters of its processor (most virtual machines have none)"
_NO_PMU_REMEDY = (
    "give it some on its host (KVM: -cpu host,pmu=on; clouds: a bare-metal or whole-socket size); events of the kernel work without: "
    "--perf_metrics=software"
)
_FEWER = (
    "raise the limit on open files (LimitNOFILE= of the service), or count less with --perf_metrics and --perf_cgroups"
)


class Opening:
    """What is open for the present flags and CPUs.

    `sockets` gives the socket of each CPU where values of sockets are wanted. `traffic` stands in for counters of memory controllers.
    """

    def __init__(
        self, calls: PerfCalls, host: HostFiles, notices: Notices, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.sockets: Mapping[int, int] = {}
        self.traffic: MemoryTraffic | None = None
        self._calls = calls
        self._host = host
        self._notices = notices
        self._monotonic_ns = monotonic_ns
        self._counting: Counting | None = None
        self._cgroups: CgroupCounting | None = None
        self._watchdog_on = False
        self._plan = Plan((), {})
        self._incomplete = False
        self._no_cgroups = False

    @property
    def is_open(self) -> bool:
        """Whether anything is counted."""
        return self._counting is not None

    def follow(self, metrics: str, cgroups: str, online: Sequence[int]) -> None:
        """Open, close and try again, so that what `metrics` and `cgroups` say is counted on the CPUs that are online.

        Raises SourceUnavailable when nothing can be.
        """
        devices = discover(self._host)
        self._watchdog_on = self._host.read_text(WATCHDOG) == "1"
        table = table_of(self._host)
        parse = partial(parse_event, devices=devices, named=table.named)
        plan = make_plan(
            groups_of(split_events(metrics), devices), parse, COUNTERS - self._watchdog_on, len(devices.cores)
        )
        paths = self._find_cgroups(cgroups)
        self._plan, paths = self._fit(plan, paths, len(online))
        plan = self._plan
        counting = self._counting or Counting(self._calls, self._host, monotonic_ns=self._monotonic_ns)
        counting.follow(plan, online)
        self.traffic = self._other_traffic(plan, counting)
        if not len(counting) and self.traffic is None:
            self.close()
            raise _nothing(plan, counting, devices)
        self._counting = counting
        if any(planned.group.per_socket for planned in plan.planned):
            self.sockets = sockets_of(self._host, online)
        self._say_missing(plan, counting, devices)
        if self._cgroups is not None:
            self._cgroups.follow(plan, paths, online)
            self._say_cgroups(cgroups, self._cgroups)

    def _other_traffic(self, plan: Plan, counting: Counting) -> MemoryTraffic | None:
        """Where memory controllers show no counters, what the caches count."""
        if MEMORY not in plan.problems and MEMORY not in counting.refusals:
            return None
        traffic = self.traffic or MemoryTraffic(self._host)
        return traffic if traffic.read() else None

    @property
    def is_incomplete(self) -> bool:
        """Whether some of it was refused: to be tried again now and then."""
        return self._incomplete or self._no_cgroups

    def look_for_cgroups(self, cgroups: str, online: Sequence[int]) -> None:
        """See which cgroups there are now."""
        if self._cgroups is not None:
            plan, paths = self._fit(self._plan, self._cgroups.find(), len(online))
            self._cgroups.follow(plan, paths, online)
            self._say_cgroups(cgroups, self._cgroups)

    def _find_cgroups(self, patterns: str) -> list[str]:
        self._no_cgroups = False
        words = [word.strip() for word in patterns.split(",") if word.strip()]
        if not words:
            return []
        try:
            self._cgroups = self._cgroups or CgroupCounting(self._calls, self._host, words, self._monotonic_ns)
        except SourceUnavailable as error:
            self._notices.say("perf_cgroups", str(error))
            self._no_cgroups = True
            return []
        return self._cgroups.find()

    def _fit(self, plan: Plan, paths: list[str], online: int) -> tuple[Plan, list[str]]:
        """As much as there are descriptors for, the first groups first, cgroups last."""
        host = [descriptors_of(planned, online) for planned in plan.planned]
        each = sum(need for need, planned in zip(host, plan.planned, strict=True) if planned.group.in_cgroups)
        need = sum(host) + each * len(paths)
        room = room_for(need - self._descriptors) + self._descriptors
        if need <= room:
            self._notices.say("perf_descriptors", "")
            return plan, paths
        takes: dict[str, int] = {}
        for planned, fds in zip(plan.planned, host, strict=True):
            takes[planned.group.name] = takes.get(planned.group.name, 0) + fds
        left_out: list[str] = []
        for name, fds in takes.items():
            if fds <= room:
                room -= fds
            else:
                left_out.append(name)
        most = 0 if left_out or not each else room // each
        kept = tuple(planned for planned in plan.planned if planned.group.name not in left_out)
        left_out += paths[most:]
        self._notices.say(
            "perf_descriptors",
            f"counting all that is asked for takes {need} file descriptors on {online} CPUs, more than the limit allows; left out: "
            f"{_some(left_out)}: {_FEWER}",
        )
        return Plan(kept, plan.problems, plan.partial), paths[:most]

    @property
    def _descriptors(self) -> int:
        """Those that are open now."""
        return sum(counting.descriptors for counting in (self._counting, self._cgroups) if counting is not None)

    def read(self) -> tuple[Counts, Mapping[str, Counts]]:
        """The host's counts, and those of each cgroup."""
        assert self._counting is not None, "follow comes first"
        return self._counting.read(), self._cgroups.read() if self._cgroups is not None else {}

    def close(self) -> None:
        """Close every descriptor."""
        for counting in (self._counting, self._cgroups):
            if counting is not None:
                counting.close()
        self._counting = self._cgroups = self.traffic = None
        self._incomplete = False

    # --- what a person should know ------------------------------------------------------------------------------------

    def _say_missing(self, plan: Plan, counting: Counting, devices: PmuDevices) -> None:
        reasons = _reasons(plan, counting, devices, without=MEMORY if self.traffic is not None else "")
        self._incomplete = bool(reasons)
        text = "; ".join(f"{', '.join(groups)}: {reason}" for reason, groups in reasons.items())
        self._notices.say("perf_missing", f"not counted: {text}" if text else "")
        self._notices.say(
            "perf_user_only", "the kernel lets us count user mode only" if counting.user_mode_only else ""
        )

    def _say_cgroups(self, patterns: str, cgroups: CgroupCounting) -> None:
        if cgroups.uncounted:
            text = "; ".join(f"{path}: {reason}" for path, reason in list(cgroups.uncounted.items())[:5])
            self._notices.say("perf_cgroups", f"cgroups that are not counted: {text}")
        elif not cgroups.paths:
            self._notices.say("perf_cgroups", f"--perf_cgroups={patterns} names no cgroup that there is now")
        else:
            self._notices.say("perf_cgroups", "")

    def say_starved(self, groups: set[str]) -> None:
        """Some groups had a counter for so little time that they have no value."""
        why = (
            "the NMI watchdog takes one counter (sysctl kernel.nmi_watchdog=0 gives it back), and other profilers may take more"
            if self._watchdog_on
            else "another profiler takes the counters, or more events are wanted than there are counters"
        )
        text = f"no value for {_some(sorted(groups))}: counted for less than --perf_min_running_pct of the time: {why}"
        self._notices.say("perf_starved", text if groups else "")


def _reasons(plan: Plan, counting: Counting, devices: PmuDevices, without: str) -> dict[str, list[str]]:
    """Groups that are not counted, by the reason; `without` is one that is had in another way."""
    reasons: dict[str, list[str]] = {}
    for group, refusal in counting.refusals.items():
        if refusal.why is Why.NOT_HERE and not devices.cores:
            reason = f"{_NO_PMU}: {_NO_PMU_REMEDY}"
        else:
            reason = refusal.reason + (f": {refusal.remedy}" if refusal.remedy else "")
        if group != without:
            reasons.setdefault(reason, []).append(group)
    for group, problem in plan.problems.items():
        # A table's event of a processor whose PMU a virtual machine hides.
        hidden = not devices.cores and problem.startswith("cpu/")
        if group != without:
            reasons.setdefault(f"{_NO_PMU}: {_NO_PMU_REMEDY}" if hidden else problem, []).append(group)
    return reasons


def _nothing(plan: Plan, counting: Counting, devices: PmuDevices) -> SourceUnavailable:
    """Why nothing at all is counted, in one sentence."""
    for refusal in counting.refusals.values():
        if refusal.why is Why.NOT_HERE and not devices.cores:
            return SourceUnavailable("perf", _NO_PMU, _NO_PMU_REMEDY)
        return refusal
    for problem in plan.problems.values():
        if not devices.cores and problem.startswith("cpu/"):
            return SourceUnavailable("perf", _NO_PMU, _NO_PMU_REMEDY)
        return SourceUnavailable("perf", problem, "see `dyno perf list` for what there is here")
    return SourceUnavailable("perf", "--perf_metrics names nothing that can be counted on a CPU here")


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
