"""Which daemons a command of many hosts talks to, and where the list of them comes from.

A new way to name hosts is a module with a HostSource, and one line in HOST_OPTIONS.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Protocol

import msgspec

from dynolog.model.errors import DynologError

DEFAULT_PORT = 1778
# More hosts than any cluster has; a mistyped range must not fill the memory.
MAX_HOSTS = 100_000


class HostsError(DynologError):
    """Hosts that cannot be named so, found, or read; one sentence that says what to type instead."""


class FleetTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One daemon of many: `host` is a name or address as it is resolved (IPv6 without brackets), `port` its RPC port.

    `label` is what people read in tables, manifests and file names; "" stands for the host itself.
    """

    host: str
    port: int = DEFAULT_PORT
    label: str = ""

    @property
    def name(self) -> str:
        """What people read."""
        return self.label or self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORT else f"{host}:{self.port}"


class HostSet(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that were found. `job` is the job they were found by, so that only its processes are meant ("": all).

    `notes` are sentences for the user (`2 of 4 tasks are pending: their hosts are not known yet`).
    """

    targets: tuple[FleetTarget, ...]
    job: str = ""
    notes: tuple[str, ...] = ()


class HostQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What a source is asked with: the value of its option, the port for hosts that name none, and the options beside it.

    `details` holds the HOST_OPTIONS without a source by their option (`{"--k8s-namespace": "train"}`), only those given.
    """

    value: str
    port: int = DEFAULT_PORT
    details: Mapping[str, str] = {}


class HostSource(Protocol):
    """Turns what was typed into hosts. Blocking; runs before anything else."""

    def find(self, query: HostQuery) -> HostSet:
        """The hosts. Raises HostsError with what is wrong and what to do (job pending, tool missing, list refused)."""
        ...


class HostOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option that names hosts, and the source (module of this room, class) behind it; "" for a detail of another one."""

    option: str
    metavar: str
    help: str
    module: str = ""
    class_name: str = ""

    @property
    def attribute(self) -> str:
        """Where argparse keeps its value."""
        return self.option.removeprefix("--").replace("-", "_")

    def load(self) -> HostSource:
        """Import and make the source."""
        source: HostSource = getattr(import_module(f"dynolog.fleet.{self.module}"), self.class_name)()
        return source


HOST_OPTIONS: tuple[HostOption, ...] = (
    HostOption(
        option="--hosts",
        metavar="HOST,...",
        help="many daemons: names, name[001-064,070], HOST:PORT",
        module="hostlist",
        class_name="HostList",
    ),
    HostOption(
        option="--hostfile",
        metavar="FILE",
        help="many daemons: a file with a host a line, as MPI's (- is stdin)",
        module="hostfile",
        class_name="HostFile",
    ),
    HostOption(
        option="--slurm-job",
        metavar="JOB",
        help="the hosts and processes of a SLURM job: 90210, 90210_2, 90210_[1-3], 90210+1",
        module="slurm",
        class_name="SlurmHosts",
    ),
    HostOption(
        option="--k8s-selector",
        metavar="LABEL=VALUE",
        help="the nodes of the Kubernetes pods with these labels",
        module="kubernetes",
        class_name="SelectedPods",
    ),
    HostOption(
        option="--k8s-job",
        metavar="NAME",
        help="the nodes of the pods of a Kubernetes Job, PyTorchJob or JobSet",
        module="kubernetes",
        class_name="JobPods",
    ),
    HostOption(
        option="--k8s-namespace",
        metavar="NS",
        help="their namespace (that of the current context)",
    ),
    HostOption(
        option="--discover",
        metavar="CMD",
        help="the hosts that a command prints",
        module="discover",
        class_name="DiscoveredHosts",
    ),
)


def find_hosts(given: Mapping[str, str], port: int = DEFAULT_PORT) -> HostSet:
    """The hosts that the options in `given` (by option, as typed) name together, each once, in order. Raises HostsError."""
    targets: list[FleetTarget] = []
    notes: list[str] = []
    jobs: list[str] = []
    details = {
        entry.option: given[entry.option] for entry in HOST_OPTIONS if not entry.module and given.get(entry.option)
    }
    if details and len(details) == len(given):
        raise HostsError(f"{' and '.join(details)} alone names no hosts: give --k8s-job or --k8s-selector too")
    for entry in HOST_OPTIONS:
        if entry.module and (value := given.get(entry.option)):
            found = entry.load().find(HostQuery(value=value, port=port, details=details))
            targets += found.targets
            notes += found.notes
            jobs += [found.job] if found.job else []
    if len(set(jobs)) > 1:
        raise HostsError(f"the hosts of one job at a time: {' and '.join(sorted(set(jobs)))} were given")
    return HostSet(targets=unique(targets), job=jobs[0] if jobs else "", notes=tuple(notes))


def unique(targets: Iterable[FleetTarget]) -> tuple[FleetTarget, ...]:
    """Each daemon once, in the order of their first mention."""
    seen: dict[tuple[str, int], FleetTarget] = {}
    for target in targets:
        seen.setdefault((target.host, target.port), target)
    return tuple(seen.values())
