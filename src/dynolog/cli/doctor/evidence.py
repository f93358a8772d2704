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
from dynolog.rpc.client import CannotReach, NoAnswer, Target, call
from dynolog.rpc.messages import GetStatus, ListProcesses, ProcessesReply, StatusReply
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_privileges import Privileges, read_privileges


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known. `status` is None when no daemon of ours answers, and `unreachable` says why.

    `is_local`: the daemon is meant to be on this machine; everything but `status`, `trainers` and the clock is about this machine.
    `daemon` is its process, None when that is not seen here. `own` is what this `dyno` itself may do.
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
    daemon: LocalDaemon | None = None
    survey: Survey = Survey()
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
        return next((one for one in self.trainers if host_pid and one.host_pid == host_pid), None)


def gather(target: Target, host: HostFiles, *, with_processes: bool = True) -> Evidence:
    """Ask the daemon, and look at this machine when the daemon is here."""
    status, unreachable, offset_ns, uncertainty_ns = _ask(target)
    is_local = target.is_local or (status is not None and status.hostname == socket.gethostname())
    return Evidence(
        host=host,
        target=target,
        is_local=is_local,
        own=read_privileges(host, "self"),
        own_net_namespace=_own_namespace(),
        status=status,
        unreachable=unreachable,
        trainers=_trainers(target) if status else (),
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
    except (CannotReach, NoAnswer, DynologError) as error:
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
