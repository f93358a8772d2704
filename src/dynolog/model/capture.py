"""A capture: one triggered profile on one process, from request to file."""

from enum import StrEnum

import msgspec


class CaptureState(StrEnum):
    """Where a capture stands. The last three are final."""

    PENDING = "pending"  # the config waits for the trainer's next poll
    DELIVERED = "delivered"  # the config was sent in a reply
    RECORDING = "recording"  # the trainer was seen profiling (its poll, or its temporary file)
    WRITTEN = "written"  # the final file was seen and checked to its last byte
    FAILED = "failed"  # an observed fact makes a good file impossible; `reason` says which
    EXPIRED = "expired"  # never delivered: withdrawn before the trainer took it

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self in (CaptureState.WRITTEN, CaptureState.FAILED, CaptureState.EXPIRED)


class Transition(msgspec.Struct, frozen=True):
    """One change of state and the observed fact that caused it. No state changes on elapsed time alone."""

    state: CaptureState
    wall_ns: int
    fact: str


class Operation(msgspec.Struct, frozen=True):
    """A named event of a trace with its longest single duration in µs."""

    name: str
    duration_us: float


class TraceFile(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of a written trace found. Sizes in bytes of the file as it is on disk.

    `begin_wall_ns` is when its first event began, Unix ns by the clock of its host; 0 where the trace does not say.
    """

    size_bytes: int
    sha256: str
    events: int
    duration_us: float = 0.0
    begin_wall_ns: int = 0
    longest: tuple[Operation, ...] = ()
    compressed: bool = False
    # A pickle of the CUDA allocator: seen to be whole by its first and last bytes, never unpickled, so it has no events here.
    memory_snapshot: bool = False
    warnings: tuple[str, ...] = ()


class CaptureInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One capture for `getTrace`, `waitTrace` and the wire.

    `path` is the final file as the trainer sees it; `host_path` the same file as the daemon's host sees it (below
    /proc/PID/root when the trainer has another root, "" when unknown). `reason` explains `failed` and `expired`, and
    says when a written trace is empty.
    """

    id: str
    request_id: str
    pid: int
    host_pid: int
    uid: int
    state: CaptureState
    path: str
    host_path: str = ""
    reason: str = ""
    job: str = ""
    rank: int | None = None
    world_size: int | None = None
    name: str = ""
    history: tuple[Transition, ...] = ()
    file: TraceFile | None = None
    file_bytes_so_far: int = 0
    expected_s: float = 0.0


class WrittenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """An open written trace: `fd` belongs to whoever asked and must be closed."""

    capture: CaptureInfo
    fd: int
    size_bytes: int
    sha256: str
