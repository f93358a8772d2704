"""The Python processes of this machine, and which of them have loaded PyTorch."""

import os

import msgspec

from dynolog.cli.doctor.patience import look_at_each
from dynolog.ipc.namespace_scan import namespace_inode
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process import (
    ProcessFacts,
    parse_command_line,
    parse_environment,
    parse_namespace_pids,
    parse_stat,
)
from dynolog.sources.torch_library import TorchLibrary, mapped_torch, read_torch

# PyTorch gives its main thread this name, whatever the program is called.
_TORCH_NAME = "pt_main_thread"
_HOST_ENGINE = "nv-hostengine"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One process. `is_readable`: its memory map and environment are ours to see. `facts` (a part of them) of those with PyTorch only.

    `job` has the variables SLURM_* of the environment of any Python process.
    """

    pid: int
    uid: int
    name: str
    is_python: bool = False
    is_readable: bool = True
    arguments: tuple[str, ...] = ()
    job: dict[str, str] = {}
    torch: TorchLibrary | None = None
    facts: ProcessFacts | None = None


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """All Python processes by pid, with those of other kinds that matter here (`nv-hostengine`); `hanging` did not answer."""

    total: int = 0
    processes: dict[int, Seen] = {}
    hanging: tuple[int, ...] = ()

    @property
    def torch_processes(self) -> tuple[Seen, ...]:
        """Those that have loaded PyTorch."""
        return tuple(seen for seen in self.processes.values() if seen.torch is not None)

    @property
    def unreadable(self) -> int:
        """How many Python processes could not be looked into."""
        return sum(seen.is_python and not seen.is_readable for seen in self.processes.values())

    @property
    def has_host_engine(self) -> bool:
        """Whether DCGM's host engine runs."""
        return any(seen.name == _HOST_ENGINE for seen in self.processes.values())


def survey(host: HostFiles) -> Survey:
    """Look at every process once."""
    pids = [int(name) for name in host.list("proc") if name.isdigit()]
    looks = look_at_each(sorted(pids), lambda pid: look_at(host, pid))
    return Survey(total=len(pids), processes=looks.answers, hanging=tuple(looks.hanging))


def look_at(host: HostFiles, pid: int, *, whole: bool = False) -> Seen | None:
    """One process; None when it is neither Python nor asked for (`whole`). Raises OSError when it has gone. May hang."""
    uid = os.stat(host.path(f"proc/{pid}")).st_uid
    name = host.read_text(f"proc/{pid}/comm") or ""
    try:
        program = os.path.basename(os.readlink(host.path(f"proc/{pid}/exe")))
    except PermissionError:
        program = ""
    except OSError:  # a thread of the kernel, or one that has ended and was not waited for
        return Seen(pid=pid, uid=uid, name=name, facts=_facts(host, pid, b"")) if whole else None
    is_python = "python" in (program or name) or name == _TORCH_NAME
    if not is_python and not whole:
        return Seen(pid=pid, uid=uid, name=name, is_readable=bool(program)) if name == _HOST_ENGINE else None
    return _look_into(host, Seen(pid=pid, uid=uid, name=name, is_python=is_python), whole=whole)


def _look_into(host: HostFiles, seen: Seen, *, whole: bool) -> Seen:
    pid, proc = seen.pid, host.path("proc")
    arguments = parse_command_line(host.read(f"proc/{pid}/cmdline"))
    try:
        directory = mapped_torch(proc, pid)
        environment = host.read(f"proc/{pid}/environ")
    except PermissionError:
        facts = _facts(host, pid, b"") if whole else None
        return msgspec.structs.replace(seen, is_readable=False, arguments=arguments, facts=facts)
    return msgspec.structs.replace(
        seen,
        arguments=arguments,
        job={name: value for name, value in parse_environment(environment).items() if name.startswith("SLURM_")},
        torch=read_torch(proc, pid, directory) if directory else None,
        facts=_facts(host, pid, environment) if directory or whole else None,
    )


def _facts(host: HostFiles, pid: int, environment: bytes) -> ProcessFacts:
    """Those that are asked for here; not what is open, which takes long where thousands of files are."""
    return ProcessFacts(
        stat=parse_stat(host.read(f"proc/{pid}/stat")),
        namespace_pids=parse_namespace_pids(host.read(f"proc/{pid}/status")),
        net_namespace=namespace_inode(host.path("proc"), pid),
        environment=parse_environment(environment),
        environment_is_known=bool(environment),
    )
