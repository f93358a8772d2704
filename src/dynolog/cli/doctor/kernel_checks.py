"""Settings of the kernel that take something away."""

from collections.abc import Iterator

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.sources.kernel_settings import cgroup_version, parse_hidepid, psi_trouble, sysctl
from dynolog.sources.perf_event.refusal import IN_CONTAINERS

_HUNDREDS = 200
_PERSISTENT = "and in /etc/sysctl.d/60-dynolog.conf to keep it"


def check_perf(evidence: Evidence) -> Iterator[Finding]:
    """Whether hardware events of whole CPUs may be counted."""
    level = sysctl(evidence.host, "kernel/perf_event_paranoid")
    rights = evidence.rights
    if level is None:
        yield note("perf", "this kernel has no perf_event_open(2): no hardware counters (--enable_perf_monitor)")
    elif rights.has("CAP_SYS_ADMIN") or level <= 0 or (rights.has("CAP_PERFMON") and level <= 2):
        yield ok("perf", f"hardware events may be counted (kernel.perf_event_paranoid={level})")
        if rights.seccomp == 2:
            yield note(
                "perf",
                f"{evidence.who} has a seccomp filter (a container's?), which may forbid perf_event_open(2)",
                IN_CONTAINERS,
            )
    else:
        capability = "CAP_PERFMON" if level <= 2 else "CAP_SYS_ADMIN"
        say = wrong if evidence.daemon and evidence.daemon.is_on("enable_perf_monitor") else note
        yield say(
            "perf",
            f"hardware events cannot be counted (--enable_perf_monitor): kernel.perf_event_paranoid={level}, and "
            f"{evidence.who} has no {capability}",
            f"sysctl -w kernel.perf_event_paranoid=0 ({_PERSISTENT}), or grant {capability}",
        )


def check_queue(evidence: Evidence) -> Iterator[Finding]:
    """Whether all trainers could poll at the same moment."""
    length = sysctl(evidence.host, "net/unix/max_dgram_qlen")
    if length is None:
        return
    polling = max(len(evidence.trainers), len(evidence.survey.torch_processes))
    # The kernel lets one more wait than the number says.
    if polling <= length + 1:
        yield ok("trainers", f"net.unix.max_dgram_qlen={length} is enough for {polling} PyTorch processes")
        return
    # A message that finds no room is sent again 10 ms later: dozens of processes never notice.
    say = wrong if polling >= _HUNDREDS else note
    yield say(
        "trainers",
        f"net.unix.max_dgram_qlen={length} lets {length + 1} messages wait, and {polling} PyTorch processes poll here: of those "
        "that poll at one moment, some are late",
        f"sysctl -w net.unix.max_dgram_qlen=512 ({_PERSISTENT}), then restart the daemon: its socket keeps the old length",
    )


def check_hidden_processes(evidence: Evidence) -> Iterator[Finding]:
    """Whether /proc hides other users' processes from the daemon."""
    try:
        hidden, group = parse_hidepid(evidence.host.read("proc/self/mountinfo"))
    except OSError:
        return
    rights = evidence.rights
    if not hidden or rights.has("CAP_SYS_PTRACE") or (group is not None and group in (rights.gid, *rights.groups)):
        yield ok("processes", f"/proc shows {evidence.who} all processes")
        return
    yield wrong(
        "processes",
        f"/proc is mounted with hidepid={hidden}, and {evidence.who} is not excepted: other users' trainers have no name, job or rank",
        "mount -o remount,hidepid=0 /proc, or remount it with gid= of a group of the daemon's user, or grant CAP_SYS_PTRACE",
    )


def check_ptrace_scope(evidence: Evidence) -> Iterator[Finding]:
    """Yama restricts attaching only, and nothing here attaches."""
    scope = sysctl(evidence.host, "kernel/yama/ptrace_scope")
    if scope is not None:
        yield ok("processes", f"kernel.yama.ptrace_scope={scope} makes no difference: dynolog attaches to no process")


def check_user_namespaces(evidence: Evidence) -> Iterator[Finding]:
    """Capabilities inside a user namespace reach no further than that."""
    if evidence.rights.is_in_user_namespace:
        yield note(
            "capabilities",
            f"{evidence.who} is in a user namespace of its own (rootless container?): its capabilities count for nothing outside of it, so "
            "other users' processes, other network namespaces and hardware counters stay closed",
            "run it in the host's user namespace: as a service, or docker --userns=host",
        )


def check_cgroups(evidence: Evidence) -> Iterator[Finding]:
    """Counting by cgroup, and who a process belongs to."""
    match cgroup_version(evidence.host):
        case 2:
            yield ok("cgroups", "cgroup version 2")
        case 1:
            yield note(
                "cgroups",
                "cgroup version 1: counters of cgroups (--perf_cgroups) take the perf_event hierarchy, pressure by cgroup is not there",
                "boot with systemd.unified_cgroup_hierarchy=1 for version 2",
            )
        case _:
            yield note("cgroups", "no cgroup file system at /sys/fs/cgroup: no counters by cgroup (--perf_cgroups)")


def check_pressure(evidence: Evidence) -> Iterator[Finding]:
    """PSI."""
    match psi_trouble(evidence.host):
        case "":
            yield ok("pressure", "PSI is on")
        case "off":
            yield note("pressure", "PSI is switched off: no pressure metrics", "boot with psi=1")
        case _:
            yield note("pressure", "this kernel has no PSI (CONFIG_PSI): no pressure metrics")


def check_open_files(evidence: Evidence) -> Iterator[Finding]:
    """A descriptor for each trainer, and some hundred besides."""
    limit = evidence.rights.open_files_limit
    needed = 512 + max(len(evidence.trainers), len(evidence.survey.torch_processes))
    if limit is not None and limit < needed:
        yield wrong(
            "files",
            f"{evidence.who} may open {limit} files and needs {needed} for the PyTorch processes here",
            "LimitNOFILE=65536 in its unit, or `ulimit -Hn 65536` before it is started",
        )
    elif limit is not None:
        yield ok("files", f"{evidence.who} may open {limit} files")
