"""Evidence for the checks of `dyno doctor`, made by a test."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level
from dynolog.cli.doctor.local_daemon import LocalDaemon
from dynolog.cli.doctor.survey import Seen, Survey
from dynolog.model.status import DaemonStatus, IpcStatus
from dynolog.model.trainer import TrainerInfo
from dynolog.rpc.client import Target
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import ProcessFacts, ProcessStat
from dynolog.sources.process_privileges import CAPABILITIES, Privileges
from dynolog.sources.torch_library import TorchLibrary
from fakes.services import FakeStatusService

ROOT = Privileges(
    uid=0,
    gid=0,
    capabilities=sum(1 << bit for bit in CAPABILITIES.values()),
    open_files_limit=65536,
    is_in_user_namespace=False,
)
USER = Privileges(uid=1000, gid=1000, open_files_limit=65536, is_in_user_namespace=False)
HOME = 4026531840  # the network namespace of the daemon, and of a process unless said otherwise


def status(**changes: Any) -> DaemonStatus:
    """A healthy daemon of our version, IPC on `@dynolog`."""
    from dynolog import __version__  # noqa: PLC0415 - the version that is tested

    return msgspec.structs.replace(FakeStatusService().daemon, **({"version": __version__} | changes))


def ipc(*addresses: str, **changes: Any) -> IpcStatus:
    """An IPC that listens on these."""
    return msgspec.structs.replace(IpcStatus(enabled=True, addresses=addresses or ("@dynolog",)), **changes)


def local_daemon(privileges: Privileges = ROOT, **flags: str) -> LocalDaemon:
    """A daemon of this machine with these flags."""
    arguments = tuple(f"--{name}={value}" for name, value in flags.items())
    return LocalDaemon(pid=77, privileges=privileges, arguments=arguments, flags=flags, net_namespace=HOME)


def evidence(host: HostFiles, *, trainers: Iterable[TrainerInfo] = (), **changes: Any) -> Evidence:
    """A healthy daemon of root here; any field can be changed."""
    registered = tuple(trainers)
    fields: dict[str, Any] = {
        "host": host,
        "target": Target(),
        "is_local": True,
        "own": ROOT,
        "own_net_namespace": HOME,
        "status": status(),
        "daemon": local_daemon(),
        "trainers": registered,
        "trainers_by_pid": {one.host_pid: one for one in registered if one.host_pid},
    }
    return Evidence(**(fields | changes))


def seen(pid: int, *, torch: str | None = "2.4.0", start: int = 100, state: str = "S", **changes: Any) -> Seen:
    """A Python process with PyTorch (None: without) and KINETO_USE_DAEMON=1; `environment` and `net_namespace` can be given."""
    environment = changes.pop("environment", {"KINETO_USE_DAEMON": "1"})
    facts = ProcessFacts(
        stat=ProcessStat(pid=pid, name="python", parent_pid=1, start_time_ticks=start, state=state),
        namespace_pids=changes.pop("namespace_pids", (pid,)),
        net_namespace=changes.pop("net_namespace", HOME),
        environment=environment,
        environment_is_known=changes.pop("environment_is_known", True),
    )
    fields: dict[str, Any] = {
        "pid": pid,
        "uid": 1000,
        "name": "python",
        "is_python": True,
        "arguments": ("python", "train.py"),
        "torch": None if torch is None else TorchLibrary(directory="/site/torch", version=torch),
        "facts": facts,
    }
    return Seen(**(fields | changes))


def survey(*processes: Seen, hanging: tuple[int, ...] = ()) -> Survey:
    """These processes."""
    return Survey(total=len(processes), processes={one.pid: one for one in processes}, hanging=hanging)


def found(check: Callable[[Evidence], Iterable[Finding]], known: Evidence) -> list[tuple[str, str]]:
    """Level and text of what a check finds, with the remedy behind it."""
    return [(str(one.level), f"{one.text} -> {one.remedy}" if one.remedy else one.text) for one in check(known)]


def levels(check: Callable[[Evidence], Iterable[Finding]], known: Evidence) -> list[Level]:
    """Only the levels."""
    return [one.level for one in check(known)]
