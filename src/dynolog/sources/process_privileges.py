"""What the kernel lets a process do: user, groups, capabilities, seccomp, user namespace (proc_pid_status(5), capabilities(7))."""

import os
import stat

import msgspec

from dynolog.sources.host_files import HostFiles

# Numbers of capabilities(7), those that some part of the daemon needs.
CAPABILITIES = {
    "CAP_DAC_OVERRIDE": 1,
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_PERFMON": 38,
}
# user_namespaces(7): the first one maps every number to itself.
_WHOLE_RANGE = ["0", "0", "4294967295"]


class Privileges(msgspec.Struct, frozen=True, kw_only=True):
    """The effective ids and capabilities of one process. `capabilities` is the bit mask CapEff.

    `seccomp` is 0 (off), 1 (strict) or 2 (a filter). `open_files_limit` is the hard limit, None for none or unknown.
    `is_in_user_namespace`: its capabilities count only in a namespace of its own, None when that cannot be read.
    """

    uid: int
    gid: int = -1
    groups: tuple[int, ...] = ()
    capabilities: int = 0
    seccomp: int = 0
    no_new_privileges: bool = False
    open_files_limit: int | None = None
    is_in_user_namespace: bool | None = None

    def has(self, capability: str) -> bool:
        """Whether it has a capability of CAPABILITIES in effect."""
        return bool(self.capabilities >> CAPABILITIES[capability] & 1)

    def may(self, info: os.stat_result, wanted: int) -> bool:
        """Whether the mode of a file allows `wanted` (os.R_OK, W_OK, X_OK); access lists and security modules are not looked at."""
        if self.has("CAP_DAC_OVERRIDE"):
            return wanted & os.X_OK == 0 or stat.S_ISDIR(info.st_mode) or bool(info.st_mode & 0o111)
        if info.st_uid == self.uid:
            return info.st_mode >> 6 & wanted == wanted
        if info.st_gid in (self.gid, *self.groups):
            return info.st_mode >> 3 & wanted == wanted
        return info.st_mode & wanted == wanted


def parse_status(data: bytes) -> Privileges:
    """`/proc/PID/status`; a line that is missing or does not parse leaves its default. Raises ValueError without a line `Uid`."""
    fields = dict(_field(line) for line in data.split(b"\n"))
    uids, gids = _numbers(fields.get(b"Uid", b"")), _numbers(fields.get(b"Gid", b""))
    if len(uids) < 2:
        raise ValueError("not the content of /proc/PID/status")
    return Privileges(
        uid=uids[1],
        gid=gids[1] if len(gids) > 1 else -1,
        groups=_numbers(fields.get(b"Groups", b"")),
        capabilities=_mask(fields.get(b"CapEff", b"")),
        seccomp=next(iter(_numbers(fields.get(b"Seccomp", b""))), 0),
        no_new_privileges=fields.get(b"NoNewPrivs", b"") == b"1",
    )


def parse_open_files_limit(data: bytes) -> int | None:
    """The hard limit of `Max open files` in `/proc/PID/limits`; None for `unlimited` and for what does not parse."""
    for line in data.split(b"\n"):
        if line.startswith(b"Max open files"):
            columns = line.split()
            return int(columns[4]) if len(columns) > 4 and columns[4].isdigit() else None
    return None


def is_nested(uid_map: bytes) -> bool | None:
    """Whether `/proc/PID/uid_map` is of a user namespace below the first one; None for an empty one."""
    lines = uid_map.decode("ascii", "replace").splitlines()
    return lines[0].split() != _WHOLE_RANGE or len(lines) > 1 if lines else None


def read_privileges(host: HostFiles, pid: int | str) -> Privileges:
    """Those of `/proc/PID`. Raises OSError when it has gone, ValueError when its status does not parse."""
    found = parse_status(host.read(f"proc/{pid}/status"))
    return msgspec.structs.replace(
        found,
        open_files_limit=parse_open_files_limit(_read(host, f"proc/{pid}/limits")),
        is_in_user_namespace=is_nested(_read(host, f"proc/{pid}/uid_map")),
    )


def _read(host: HostFiles, relative: str) -> bytes:
    try:
        return host.read(relative)
    except OSError:  # another user's, or a kernel without it
        return b""


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.strip()


def _numbers(text: bytes) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split()))
    except ValueError:
        return ()


def _mask(text: bytes) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
