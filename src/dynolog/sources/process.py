"""Facts of one process from /proc/PID: stat, status, ns, cmdline, fd, and a few named variables of environ.

`environ` and `cmdline` take the mmap lock of the process and can block as long as it is held; nothing here belongs on a
thread that must answer.
"""

import os
from collections.abc import Collection

import msgspec

from dynolog.model.held_gpu import HeldGpu
from dynolog.sources.device_files import open_device_files
from dynolog.sources.gpu_files import held_gpus
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_view import file_view

# The only variables that are ever kept (the rest of an environment is full of secrets).
ENVIRONMENT_KEYS = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NTASKS",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_STEP_ID",
    "KINETO_ONDEMAND_TRACE_DIR",
    "KINETO_CONFIG",
    "KINETO_USE_DAEMON",
    "KINETO_DAEMON_INIT_DELAY_S",
    "KINETO_IPC_SOCKET_DIR",
)
_WANTED = frozenset(key.encode() for key in ENVIRONMENT_KEYS)
_LONGEST_VALUE = 4096
_LONGEST_COMMAND = 240
_MOST_ANCESTORS = 64


class ProcessStat(msgspec.Struct, frozen=True):
    """What is used of `/proc/PID/stat` (proc_pid_stat(5)).

    `start_time_ticks` counts 1/SC_CLK_TCK s since boot, `cpu_ticks` those that all its threads have used, in user mode and in the kernel;
    `state` is one letter.
    """

    pid: int
    name: str
    parent_pid: int
    start_time_ticks: int
    cpu_ticks: int = 0
    state: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether only its parent has not noticed yet (a zombie)."""
        return self.state in ("Z", "X")


def parse_stat(data: bytes) -> ProcessStat:
    """Parse `/proc/PID/stat`. The name stands in brackets and may hold brackets, spaces and newlines itself, so the content
    is split at its last `)`. Raises ValueError for anything else.
    """
    head, bracket, tail = data.rpartition(b")")
    pid, opening, name = head.partition(b"(")
    columns = tail.split()
    if not bracket or not opening or len(columns) < 20:
        raise ValueError("not the content of /proc/PID/stat")
    cpu_ticks = int(columns[11]) + int(columns[12])
    return ProcessStat(
        pid=int(pid),
        name=name.decode("utf-8", "replace"),
        parent_pid=int(columns[1]),
        start_time_ticks=int(columns[19]),
        cpu_ticks=cpu_ticks,
        state=columns[0].decode("ascii", "replace"),
    )


def parse_leader_pid(status: bytes) -> int:
    """`Tgid` of `/proc/PID/status`: the process that a thread belongs to, itself for one; 0 when it is not there."""
    for line in status.split(b"\n"):
        if line.startswith(b"Tgid:") and (digits := line[5:].strip()).isdigit():
            return int(digits)
    return 0


def parse_namespace_pids(data: bytes) -> tuple[int, ...]:
    """`NSpid` of `/proc/PID/status`: the pid in each nested pid namespace, ours first; () before Linux 4.1 or when it does not parse."""
    for line in data.split(b"\n"):
        if line.startswith(b"NSpid:"):
            try:
                return tuple(map(int, line[6:].split()))
            except ValueError:
                return ()
    return ()


def parse_environment(data: bytes, wanted: Collection[bytes] = _WANTED) -> dict[str, str]:
    """The variables of `wanted` (ENVIRONMENT_KEYS) in `/proc/PID/environ`; all others, and values above 4 KiB, are dropped here."""
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        key, equals, value = entry.partition(b"=")
        if equals and key in wanted and len(value) <= _LONGEST_VALUE:
            found.setdefault(key.decode(), value.decode("utf-8", "surrogateescape"))
    return found


def parse_command_line(data: bytes) -> tuple[str, ...]:
    """The arguments of `/proc/PID/cmdline`; () for a kernel thread or a process that has ended."""
    stripped = data.rstrip(b"\0")
    return tuple(part.decode("utf-8", "replace") for part in stripped.split(b"\0")) if stripped else ()


class Ancestor(msgspec.Struct, frozen=True):
    """A parent, grandparent... of a process: its pid here, and in each namespace it lives in (ours first)."""

    pid: int
    namespace_pids: tuple[int, ...]


class ProcessFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a process found; what could not be read is empty, 0 or None.

    `namespace_pids` are its pids from our namespace inwards. `pid_namespace` and `net_namespace` are inode numbers. `uid` owns
    the process (-1: unknown). Where `environment_is_known` is False, a missing variable may be set all the same.
    `holds_gpu`: the file of an accelerator is open in it; `gpus` says which, as far as files tell.
    """

    stat: ProcessStat
    namespace_pids: tuple[int, ...] = ()
    ancestors: tuple[Ancestor, ...] = ()
    pid_namespace: int = 0
    net_namespace: int = 0
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    environment_is_known: bool = False
    uid: int = -1
    file_view: str = ""
    holds_gpu: bool = False
    gpus: tuple[HeldGpu, ...] = ()

    @property
    def command(self) -> str:
        """The arguments in one line, cut at 240 characters."""
        return " ".join(self.arguments)[:_LONGEST_COMMAND]


class ProcessReader:
    """Reads `/proc/PID` below the root of `host`. May block on the process's mmap lock: off the socket thread only."""

    def __init__(self, host: HostFiles) -> None:
        self._host = host

    def stat(self, pid: int) -> ProcessStat:
        """`/proc/PID/stat`, which never blocks on the process. Raises OSError (gone, hidden), ValueError."""
        return parse_stat(self._host.read(f"proc/{pid}/stat"))

    def exists(self, pid: int) -> bool:
        """Whether a process has this pid here now."""
        return pid > 0 and os.path.exists(self._host.path(f"proc/{pid}"))

    def facts(self, pid: int) -> ProcessFacts:
        """All facts of a process. Raises OSError when it has gone, ValueError when its stat does not parse."""
        stat = self.stat(pid)
        environment = self._read(pid, "environ")
        files = open_device_files(self._host.path(f"proc/{pid}/fd"))
        return ProcessFacts(
            stat=stat,
            namespace_pids=self._namespace_pids(pid),
            ancestors=self._ancestors(stat),
            pid_namespace=self._namespace(pid, "pid"),
            net_namespace=self._namespace(pid, "net"),
            arguments=parse_command_line(self._read(pid, "cmdline")),
            environment=parse_environment(environment),
            environment_is_known=bool(environment),
            uid=self._uid(pid),
            file_view=file_view(self._host, pid),
            holds_gpu=bool(files),
            gpus=held_gpus(files, self._host),
        )

    def _read(self, pid: int, name: str) -> bytes:
        # Forbidden for another user's process, or it ended meanwhile: that detail is missing, no more.
        try:
            return self._host.read(f"proc/{pid}/{name}")
        except OSError:
            return b""

    def _uid(self, pid: int) -> int:
        try:
            return os.stat(self._host.path(f"proc/{pid}")).st_uid
        except OSError:  # it has ended meanwhile
            return -1

    def _namespace_pids(self, pid: int) -> tuple[int, ...]:
        return parse_namespace_pids(self._read(pid, "status"))

    def _namespace(self, pid: int, kind: str) -> int:
        try:
            link = os.readlink(self._host.path(f"proc/{pid}/ns/{kind}"))
            return int(link.partition("[")[2].rstrip("]"))
        except (OSError, ValueError):
            return 0

    def _ancestors(self, stat: ProcessStat) -> tuple[Ancestor, ...]:
        found: list[Ancestor] = []
        parent = stat.parent_pid
        while parent > 0 and len(found) < _MOST_ANCESTORS:
            found.append(Ancestor(parent, self._namespace_pids(parent)))
            try:
                parent = self.stat(parent).parent_pid
            except (OSError, ValueError):
                break
        return tuple(found)
