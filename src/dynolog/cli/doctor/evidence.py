"""All that the checks look at, gathered once."""

import os
import socket
import time

import msgspec

from dynolog.cli.doctor.local_daemon import LocalDaemon, find_local_daemon
from dynolog.cli.doctor.survey import Survey, survey
from dynolog.model.errors import DynologError, RequestError
from dynolog.model.status import DaemonStatus
from dynolog.model.trainer import TrainerInfo
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import GetStatus, ListProcesses, ProcessesReply, StatusReply
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_privileges import Privileges, read_privileges
from dynolog.sources.unix_sockets import parse_unix_sockets


class Sockets(msgspec.Struct, frozen=True):
    """The unix sockets of a network namespace: their names, and as links of /proc/PID/fd those that libkineto polls from."""

    names: frozenset[str] = frozenset()
    clients: frozenset[str] = frozenset()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known. `status` is None when no daemon of ours answers, and `unreachable` says why.

    `is_local`: the daemon is meant to be on this machine; everything but `status`, `trainers` and the clock is about this machine.
    `daemon` is its process, None when that is not seen here. `own` is what this `dyno` itself may do.
    `sockets_in` keeps the sockets of each network namespace once they were read: with thousands of trainers a table is long.
    `clock_offset_ns` is the daemon's clock minus ours, right to `clock_uncertainty_ns`; None when it was not asked.
    """

    host: HostFiles
    target: Target
    is_local: bool
    own: Privileges
    own_net_namespace: int = 0
    status: DaemonStatus | None = None
    unreachable: str = ""
    trainers: tuple[TrainerInfo, ...] = ()
    trainers_by_pid: dict[int, TrainerInfo] = {}
    daemon: LocalDaemon | None = None
    survey: Survey = Survey()
    sockets_in: dict[int, Sockets] = {}
    clock_offset_ns: int | None = None
    clock_uncertainty_ns: int = 0

    @property
    def rights(self) -> Privileges:
        """Those of the daemon, else those that a daemon of this user would have."""
        return self.daemon.privileges if self.daemon else self.own

    @property
    def who(self) -> str:
        """Whose rights these are, for a sentence."""
        return "the daemon" if self.daemon else "a daemon of this user"

    @property
    def daemon_net_namespace(self) -> int:
        """Where the daemon's own abstract socket is; 0 when unknown."""
        return (self.daemon.net_namespace if self.daemon else 0) or self.own_net_namespace

    def trainer_of(self, host_pid: int) -> TrainerInfo | None:
        """The trainer that the kernel knows as this process."""
        return self.trainers_by_pid.get(host_pid)

    def sockets_of(self, pid: int, namespace: int) -> Sockets:
        """Those of the network namespace `namespace`, in which `pid` is; none when they cannot be read."""
        if namespace and namespace not in self.sockets_in:
            try:
                found = tuple(parse_unix_sockets(self.host.read(f"proc/{pid}/net/unix")))
            except OSError:  # it has ended: the next one of its namespace is asked
                return Sockets()
            clients = frozenset(f"socket:[{one.inode}]" for one in found if one.is_of_trainer)
            self.sockets_in[namespace] = Sockets(frozenset(one.name for one in found), clients)
        return self.sockets_in.get(namespace, Sockets())


def gather(target: Target, host: HostFiles, *, with_processes: bool = True) -> Evidence:
    """Ask the daemon, and look at this machine when the daemon is here."""
    status, unreachable, offset_ns, uncertainty_ns = _ask(target)
    is_local = target.is_local or (status is not None and status.hostname == socket.gethostname())
    trainers = _trainers(target) if status else ()
    return Evidence(
        host=host,
        target=target,
        is_local=is_local,
        own=read_privileges(host, "self"),
        own_net_namespace=_own_namespace(),
        status=status,
        unreachable=unreachable,
        trainers=trainers,
        trainers_by_pid={one.host_pid: one for one in trainers if one.host_pid},
        daemon=find_local_daemon(host, status.own.pid) if status and is_local else None,
        survey=survey(host) if is_local and with_processes else Survey(),
        clock_offset_ns=offset_ns,
        clock_uncertainty_ns=uncertainty_ns,
    )


def _ask(target: Target) -> tuple[DaemonStatus | None, str, int | None, int]:
    """The status, or why there is none; and how far the daemon's clock is from ours."""
    started = time.monotonic_ns()
    try:
        reply = call(target, GetStatus(verbose=True), StatusReply)
    except RequestError as error:
        return None, f"the daemon answers, but not to you ({error})", None, 0
    except DynologError as error:
        return None, str(error), None, 0
    half_ns = (time.monotonic_ns() - started) // 2
    if reply.daemon is None:
        return None, f"{target} is the original C++ dynolog or an older one: it tells nothing of itself", None, 0
    return reply.daemon, "", reply.daemon.wall_ns - (time.time_ns() - half_ns), half_ns


def _trainers(target: Target) -> tuple[TrainerInfo, ...]:
    try:
        return call(target, ListProcesses(), ProcessesReply).trainers
    except DynologError:  # it answered a moment ago; without the list nothing is registered as far as can be told
        return ()


def _own_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return 0
