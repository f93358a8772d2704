"""Why the kernel does not count, and what to change."""

import errno
from collections.abc import Sequence
from enum import StrEnum

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles

_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
# What the seccomp filters of container engines ask for, by their own profiles: podman's looks at CAP_SYS_ADMIN, late ones at both.
IN_CONTAINERS = "docker 23 or newer: --cap-add=PERFMON, podman: --cap-add=PERFMON,SYS_ADMIN, others: a seccomp profile with perf_event_open"
# A machine without the counter answers any of these: a virtual machine, a PMU without the event, a CPU that is offline.
_NOT_HERE = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENXIO, errno.ENODEV, errno.EINVAL)


class Why(StrEnum):
    """The kinds of refusal."""

    NOT_HERE = "not_here"  # the machine does not have it
    FORBIDDEN = "forbidden"  # paranoid level, capability, seccomp
    NO_SYSCALL = "no_syscall"  # a kernel or a seccomp filter without perf_event_open(2)
    TOO_MANY_FILES = "too_many_files"
    BUSY = "busy"  # somebody holds the PMU for himself
    GONE = "gone"  # the process or cgroup has ended
    OTHER = "other"


class PerfRefused(SourceUnavailable):
    """An event that cannot be opened: `why` for programs, reason and remedy for a person."""

    def __init__(self, why: Why, reason: str, remedy: str = "", number: int = 0) -> None:
        super().__init__("perf", reason, remedy)
        self.why = why
        self.errno = number


def refused(error: OSError, events: Sequence[str], host: HostFiles) -> PerfRefused:
    """The refusal of `events`, by its errno and what the host says about itself."""
    names = ", ".join(events)
    number = error.errno or 0
    code = errno.errorcode.get(number, str(number))
    match number:
        case errno.EACCES | errno.EPERM:
            return _forbidden(names, number, host)
        case errno.ENOSYS:
            why, reason = Why.NO_SYSCALL, "perf_event_open(2) answers ENOSYS"
            remedy = "allow perf_event_open in the container's seccomp profile, or use a kernel built with CONFIG_PERF_EVENTS"
        case errno.EMFILE | errno.ENFILE:
            why, reason = Why.TOO_MANY_FILES, f"{code}: no file descriptor left for {names}"
            remedy = "raise the limit on open files (LimitNOFILE= of the service) or count less with --perf_metrics"
        case errno.EBUSY:
            why, reason = Why.BUSY, f"EBUSY: somebody else holds the PMU of {names}"
            remedy = "stop the other profiler"
        case errno.ESRCH:
            why, reason, remedy = Why.GONE, "the process has ended", ""
        case number if number in _NOT_HERE:
            why, reason, remedy = Why.NOT_HERE, f"this machine does not count {names} ({code})", ""
        case _:
            why, reason, remedy = Why.OTHER, f"{names}: {error.strerror or code}", ""
    return PerfRefused(why, reason, remedy, number)


def _forbidden(names: str, number: int, host: HostFiles) -> PerfRefused:
    code = errno.errorcode.get(number, str(number))
    text = host.read_text("proc/sys/kernel/perf_event_paranoid") or "?"
    level = int(text) if text.lstrip("-").isdecimal() else None
    capabilities = _capabilities(host)
    if capabilities >> _CAP_SYS_ADMIN & 1:
        reason = f"{code} for {names} though this process has CAP_SYS_ADMIN: a seccomp filter, a user namespace or a security module"
        remedy = "allow perf_event_open in the container's seccomp profile, and run it in the host's user namespace"
    elif number == errno.EPERM and not capabilities >> _CAP_PERFMON & 1 and (level is None or level > 0):
        # The level answers EACCES, the filters of container engines EPERM.
        reason = f"EPERM for {names}: a seccomp filter or a security module (and kernel.perf_event_paranoid={text})"
        remedy = f"grant CAP_PERFMON and let the container's filter pass perf_event_open ({IN_CONTAINERS})"
    elif capabilities >> _CAP_PERFMON & 1 and level is not None and level > 2:
        reason = f"kernel.perf_event_paranoid={level} forbids {names} though this process has CAP_PERFMON ({code})"
        remedy = (
            "Debian's and Ubuntu's kernels want CAP_SYS_ADMIN at that level: grant it, or set the level to 2 or less"
        )
    elif capabilities >> _CAP_PERFMON & 1 or (level is not None and level <= 0):
        reason = f"{code} for {names} though kernel.perf_event_paranoid={text} would allow it: a seccomp filter or a security module"
        remedy = f"let the container's filter pass perf_event_open ({IN_CONTAINERS})"
    else:
        reason = f"kernel.perf_event_paranoid={text} forbids counting {names} on whole CPUs ({code})"
        remedy = "grant CAP_PERFMON (CAP_SYS_ADMIN where Debian's or Ubuntu's level is above 2) or set it to 0"
    return PerfRefused(Why.FORBIDDEN, reason, remedy, number)


def _capabilities(host: HostFiles) -> int:
    """The effective capabilities of this process, as bits (proc_pid_status(5))."""
    for line in (host.read_text("proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return int(line.partition(":")[2], 16)
    return 0
