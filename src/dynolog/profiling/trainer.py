"""A trainer as the daemon knows it: what the kernel says of the sender, what it says of itself, what was read of its process."""

import os
import sys
from collections.abc import Mapping, Sequence

import msgspec

from dynolog.model.held_gpu import HeldGpu
from dynolog.model.trainer import Peer, TrainerInfo, TrainerState
from dynolog.profiling.captures import Capture
from dynolog.profiling.job import NO_JOB
from dynolog.profiling.shared_values import shared
from dynolog.sources.process import ProcessFacts

_NS_PER_S = 1e9
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Importing PyTorch takes a launcher some seconds of CPU after it has registered; from then on it waits. A process that trains uses a
# good part of a core, even one that mostly waits for its data.
_MOST_CPU_OF_A_LAUNCHER_S = 5.0
_LEAST_SHARE_OF_A_WORKER = 0.05
_LAUNCHER_SCRIPTS = frozenset(
    [
        *("torchrun", "torch.distributed.run", "torch.distributed.launch"),
        *("accelerate", "accelerate-launch", "accelerate.commands.launch", "accelerate.commands.accelerate_cli"),
        *("deepspeed", "deepspeed.launcher.launch", "deepspeed.launcher.runner"),
    ]
)
# Options of python(1) that take the next argument as their value.
_PYTHON_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


class TrainerDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a look at the process (sources.process).

    `inner_pids` are its pids inside namespaces below ours, `inner_ancestors` those of its ancestors, `host_ancestors` the
    ancestors' pids here. All of them are the kernel's word, not the trainer's. `names` are what it may be asked for by.
    """

    start_time_ticks: int
    inner_pids: tuple[int, ...]
    host_ancestors: tuple[int, ...]
    inner_ancestors: tuple[int, ...]
    pid_namespace: int
    net_namespace: int
    name: str
    names: tuple[str, ...]
    command: str
    rank: int | None
    local_rank: int | None
    world_size: int | None
    trace_dir: str
    file_view: str
    has_kineto_config: bool
    holds_gpu: bool
    runs_launcher: bool
    gpus: tuple[HeldGpu, ...] = ()


def program_of(arguments: tuple[str, ...]) -> str:
    """The script or module that a Python command line runs (`train.py`, `torch.distributed.run`), else the program; "" unknown."""
    if not arguments:
        return ""
    program = os.path.basename(arguments[0])
    if not program.startswith("python"):
        return program
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "-m":
            return next(rest, "")
        if argument in ("-c", "-"):
            return program
        if argument in _PYTHON_OPTIONS_WITH_VALUE:
            next(rest, "")
        elif not argument.startswith("-"):
            return os.path.basename(argument)
    return program


def details_of(facts: ProcessFacts) -> TrainerDetails:
    """What is kept of `facts`."""
    script = program_of(facts.arguments)
    names = {facts.stat.name, script, script.removesuffix(".py")}
    if facts.arguments:
        names.add(os.path.basename(facts.arguments[0]))
    environment = facts.environment
    return TrainerDetails(
        start_time_ticks=facts.stat.start_time_ticks,
        inner_pids=facts.namespace_pids[1:],
        host_ancestors=shared(tuple(ancestor.pid for ancestor in facts.ancestors)),
        inner_ancestors=shared(tuple({pid for one in facts.ancestors for pid in one.namespace_pids[1:]})),
        pid_namespace=facts.pid_namespace,
        net_namespace=facts.net_namespace,
        name=sys.intern(facts.stat.name),
        names=shared(tuple(sorted(names - {""}))),
        command=shared(facts.command),
        rank=_number(environment, "RANK", "SLURM_PROCID"),
        local_rank=_number(environment, "LOCAL_RANK", "SLURM_LOCALID"),
        world_size=_number(environment, "WORLD_SIZE", "SLURM_NTASKS"),
        trace_dir=sys.intern(environment.get("KINETO_ONDEMAND_TRACE_DIR", "")),
        file_view=sys.intern(facts.file_view),
        has_kineto_config="KINETO_CONFIG" in environment,
        holds_gpu=facts.holds_gpu,
        runs_launcher=script in _LAUNCHER_SCRIPTS,
        gpus=facts.gpus,
    )


def _number(environment: Mapping[str, str], *keys: str) -> int | None:
    for key in keys:
        value = environment.get(key, "")
        if value.isascii() and value.isdecimal():
            return int(value)
    return None


class Trainer:
    """One registered process. Lives on the socket thread; `details` arrive later, from the inspector.

    `host_pid` 0 means unverified: its identity is its address, the pid it claims, and its uid. `claimed_pids` are what it
    says: itself, and for unverified ones also its ancestors. `watched`: its death is seen at once through a pidfd. `computes`: it
    was seen to use the CPU as no launcher does. Times are of the monotonic clock.
    """

    __slots__ = (
        "capture",
        "claimed_pids",
        "computes",
        "details",
        "first_cpu_ticks",
        "first_seen_ns",
        "gid",
        "gpu_and_job",
        "host_pid",
        "inspected",
        "interval_ns",
        "job",
        "last_poll_ns",
        "polls",
        "ready",
        "sender",
        "serial",
        "uid",
        "watched",
    )

    def __init__(self, serial: int, peer: Peer, sender: object, now_ns: int) -> None:
        self.serial = serial
        self.host_pid = peer.pid
        self.uid = peer.uid
        self.gid = peer.gid
        self.sender = sender
        self.claimed_pids: tuple[int, ...] = ()
        self.job = NO_JOB  # only the number on the wire until its environment was read
        self.gpu_and_job: tuple[int, int] | None = None
        self.first_seen_ns = now_ns
        self.last_poll_ns = now_ns
        self.interval_ns: int | None = None
        self.polls = 0
        self.ready = True
        self.watched = False
        self.inspected = False
        self.details: TrainerDetails | None = None
        self.first_cpu_ticks: int | None = None
        self.computes = False
        self.capture: Capture | None = None

    @property
    def verified(self) -> bool:
        """Whether the kernel told its pid."""
        return self.host_pid != 0

    @property
    def pid(self) -> int:
        """Its pid as it sees itself, which libkineto puts into file names. What it claims is believed only where NSpid agrees."""
        claimed = self.claimed_pids[0] if self.claimed_pids else 0
        if not self.verified or claimed == self.host_pid:
            return claimed
        if self.details is None:
            return claimed or self.host_pid
        inner = self.details.inner_pids
        if claimed in inner:
            return claimed
        return inner[-1] if inner else self.host_pid

    @property
    def name(self) -> str:
        """Its process name, "" until it was read."""
        return self.details.name if self.details else ""

    @property
    def active_capture(self) -> Capture | None:
        """The capture that is pending, delivered or recording."""
        return self.capture if self.capture is not None and not self.capture.state.is_final else None

    def note_cpu(self, ticks: int, now_ns: int) -> None:
        """Its CPU time so far, at a look: whether it used more, since the first one, than a process that only starts others."""
        if self.first_cpu_ticks is None:
            self.first_cpu_ticks = ticks
        used_s = (ticks - self.first_cpu_ticks) / _TICKS_PER_S
        passed_s = (now_ns - self.first_seen_ns) / _NS_PER_S
        self.computes = used_s > _MOST_CPU_OF_A_LAUNCHER_S and used_s > _LEAST_SHARE_OF_A_WORKER * passed_s

    def note_poll(self, sender: object, now_ns: int) -> None:
        """Count a poll. The interval is that of one socket: a process with two of them polls twice as often."""
        if self.polls and sender == self.sender:
            measured = now_ns - self.last_poll_ns
            # Late wake-ups make single intervals uneven; the estimate follows a real change within a few polls.
            self.interval_ns = measured if self.interval_ns is None else (self.interval_ns + measured) // 2
        self.sender = sender
        self.last_poll_ns = now_ns
        self.polls += 1

    def info(self, now_ns: int, *, launcher: bool = False, gpus: Sequence[HeldGpu] = ()) -> TrainerInfo:
        """As views see it."""
        details = self.details
        capture = self.active_capture
        state = TrainerState.IDLE if self.ready else TrainerState.BUSY
        if capture is not None and capture.is_pending and self.ready:
            state = TrainerState.PENDING
        return TrainerInfo(
            pid=self.pid,
            host_pid=self.host_pid,
            uid=self.uid,
            job_id=self.job.wire_id,
            job=self.job.text,
            name=self.name,
            command=details.command if details else "",
            state=state,
            age_s=(now_ns - self.first_seen_ns) / _NS_PER_S,
            last_poll_age_s=(now_ns - self.last_poll_ns) / _NS_PER_S,
            polls=self.polls,
            start_time_ticks=details.start_time_ticks if details else 0,
            pid_namespace=details.pid_namespace if details else 0,
            net_namespace=details.net_namespace if details else 0,
            poll_interval_s=None if self.interval_ns is None else self.interval_ns / _NS_PER_S,
            rank=details.rank if details else None,
            local_rank=details.local_rank if details else None,
            world_size=details.world_size if details else None,
            launcher=launcher,
            unverified=not self.verified,
            capture=capture.id if capture else "",
            gpus=tuple(gpu.text for gpu in gpus),
        )
