"""Settings of the kernel that decide what can be seen: sysctls, options of the /proc mount, PSI, the cgroup version."""

import errno

from dynolog.sources.host_files import HostFiles

_HIDEPID = {"0": 0, "off": 0, "1": 1, "noaccess": 1, "2": 2, "invisible": 2, "4": 4, "ptraceable": 4}


def sysctl(host: HostFiles, name: str) -> int | None:
    """A number below /proc/sys (`kernel/perf_event_paranoid`); None when this kernel does not have it."""
    text = host.read_text(f"proc/sys/{name}") or ""
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() else None


def parse_hidepid(mountinfo: bytes) -> tuple[int, int | None]:
    """`hidepid=` of /proc (0 when not set) and the group that sees everything all the same (`gid=`), from mountinfo (proc(5))."""
    hidden, group = 0, None
    for line in mountinfo.split(b"\n"):
        head, _, tail = line.partition(b" - ")
        fields, kinds = head.split(b" "), tail.split(b" ")
        if len(fields) < 5 or fields[4] != b"/proc" or kinds[0] != b"proc" or len(kinds) < 3:
            continue
        hidden, group = 0, None  # a later mount covers an earlier one
        for option in kinds[2].decode("ascii", "replace").split(","):
            name, _, value = option.partition("=")
            if name == "hidepid":
                hidden = _HIDEPID.get(value, 0)
            elif name == "gid" and value.isdigit():
                group = int(value)
    return hidden, group


def psi_trouble(host: HostFiles) -> str:
    """Why pressure cannot be read: `off` (built in, not switched on), `missing`, or "" when it can."""
    try:
        host.read("proc/pressure/cpu")
    except OSError as error:
        return "off" if error.errno == errno.EOPNOTSUPP else "missing"
    return ""


def cgroup_version(host: HostFiles) -> int:
    """2, 1 (also hybrid), or 0 when no cgroup file system is mounted."""
    if host.read_text("sys/fs/cgroup/cgroup.controllers") is not None:
        return 2
    return 1 if host.list("sys/fs/cgroup") else 0
