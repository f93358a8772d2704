"""A trainer: a process that polls us over the IPC, as views and matching see it."""

from enum import StrEnum

import msgspec


class Peer(msgspec.Struct, frozen=True):
    """Who sent a datagram, by the kernel's credentials (SCM_CREDENTIALS, unix(7)), in the daemon's namespaces.

    `pid` 0 means that the sender lives in a pid namespace that the daemon cannot see into: unverified.
    """

    pid: int
    uid: int
    gid: int


class TrainerState(StrEnum):
    """What a trainer is doing, by its last poll and its captures."""

    IDLE = "idle"
    PENDING = "pending"  # a config waits for its next poll
    BUSY = "busy"  # its polls lack the activities bit: it profiles


class TrainerInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One trainer for `listProcesses` and `dyno ps`.

    `pid` is what the process itself says (its own namespace; libkineto puts it into file names), `host_pid` what the
    kernel says (0: unverified). Ages and intervals in seconds; `uid` of the process; `job` the text form of its job
    (`90210_2`), `job_id` the number on the wire. Rank fields come from its environment and are None when not there. `gpus` are the
    devices it holds: `0`, and `0/gi1` for a MIG instance.
    """

    pid: int
    host_pid: int
    uid: int
    job_id: int
    job: str
    name: str
    command: str
    state: TrainerState
    age_s: float
    last_poll_age_s: float
    polls: int
    start_time_ticks: int = 0
    pid_namespace: int = 0
    net_namespace: int = 0
    poll_interval_s: float | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    launcher: bool = False
    unverified: bool = False
    capture: str = ""
    gpus: tuple[str, ...] = ()
