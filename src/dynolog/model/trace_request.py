"""A request for traces, and what became of it when it was accepted."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from dynolog.model.capture import CaptureInfo
from dynolog.model.role import Role


class Transport(StrEnum):
    """How a caller reached the daemon."""

    UNIX = "unix"
    LOOPBACK = "loopback"
    REMOTE = "remote"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. `uid` is known on the unix socket (SO_PEERCRED) and on loopback (inet_diag), else None.

    `authenticated`: a token, a certificate or a rule lets it act for everybody. `name` is what proved that, for messages ("certificate
    ops-1"). `may_act_for` decides whose trainers may be traced and fetched.
    """

    transport: Transport
    uid: int | None = None
    authenticated: bool = False
    address: str = ""
    role: Role = Role.TRACE
    name: str = ""

    def may_act_for(self, uid: int, daemon_uid: int) -> bool:
        """Root, the daemon's own user and authenticated callers act for everybody; others for themselves."""
        return self.authenticated or self.uid in (0, daemon_uid) or (self.uid is not None and self.uid == uid)


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to trace and how; fields are those of `setKinetOnDemandRequest`, and ours.

    `config` is libkineto's KEY=VALUE text. `pids` [] or [0] means every process of the job. `job` (text: `90210`,
    `90210_2`, `90210.0`) when given wins over `job_id`. `process_limit` 0 means all. `names` match the process name,
    `ranks` its rank. With `dry_run` nothing is triggered. `log_files` has another ACTIVITIES_LOG_FILE for some processes, by host pid
    (by what the process says of itself where that is not known): names with ranks, which a config for many cannot hold. `gpus` means
    only processes that hold one of these: `0`, `0/gi1`, or a uuid. `host_interval_ms`: sample the host at this interval meanwhile (0: not).
    """

    config: str
    pids: tuple[int, ...] = ()
    job_id: int = 0
    job: str = ""
    process_limit: int = 1000
    names: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    include_launchers: bool = False
    dry_run: bool = False
    log_files: Mapping[int, str] = {}
    gpus: tuple[str, ...] = ()
    host_interval_ms: int = 0


class NotTraced(msgspec.Struct, frozen=True, kw_only=True):
    """A matched process that was not triggered, and why; `code` is one snake_case word (`busy`, `launcher`, `limit`, `path`...)."""

    pid: int
    host_pid: int
    code: str
    error: str


class TraceOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a request at once; later states are asked for by `request_id`.

    `matched` and `triggered` hold pids as the trainers see themselves (libkineto puts those into file names).
    `no_match_code`/`no_match_reason` are set exactly when nothing matched: `ipc_off`, `no_trainer_registered`,
    `job_not_found`, `pid_not_registered`, `pid_dead`, `forbidden`, `no_name_or_rank`, `no_gpu`,
    `ambiguous`. A dry run differs from a real one only in that nothing is armed and `request_id` is "": `triggered` says what would be.
    """

    request_id: str = ""
    matched: tuple[int, ...] = ()
    triggered: tuple[int, ...] = ()
    busy: int = 0
    captures: tuple[CaptureInfo, ...] = ()
    not_traced: tuple[NotTraced, ...] = ()
    no_match_code: str = ""
    no_match_reason: str = ""
    notes: tuple[str, ...] = ()
    # Those of the notes that speak of trouble: what a person with many hosts must see.
    warnings: tuple[str, ...] = ()
    expected_s: float = 0.0


class RequestProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The captures of a request. `version` grows with every change, so that a waiter can say what it has seen.

    `group_id` is REQUEST_GROUP_TRACE_ID of its config: what the requests of one trace of many hosts have in common.
    """

    request_id: str
    version: int
    done: bool
    captures: tuple[CaptureInfo, ...]
    group_id: str = ""
