"""The life of one capture, driven by observed facts alone.

    pending ──reply sent──► delivered ──poll without the activities bit, or temporary file──► recording
       ▲  └──reply failed──┘    └────────────────────final file checked──────────┬───────────────┘
       │                                                                         ▼
    request                                                                   written

Any of the three becomes `failed` at a fact that makes a good file impossible; `pending` becomes `expired` at a fact that
withdraws it: a poll that comes after its start time, or a trainer that left. The clock alone changes nothing.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from dynolog.model.capture import CaptureInfo, CaptureState, TraceFile, Transition
from dynolog.model.clock import Clock
from dynolog.profiling.observations import Checked, FinalSeen, Invalid, NothingThere, Observation, TemporarySeen, Unseen

_MOST_TRANSITIONS = 64
# Two, because a reply that came too late is taken at the next poll: the first ready poll may be the one before the start.
READY_POLLS_TO_GIVE_UP = 2
# libkineto looks at a config that it has taken once a second.
_LOOP_S = 1.0
# An iteration request has no known end; one that never started in this many ready polls may make room for another.
READY_POLLS_TO_REPLACE = 12


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a capture is about, as it was when asked. `path` is the final file asked for, as that process sees it."""

    pid: int
    host_pid: int
    uid: int
    job: str
    rank: int | None
    world_size: int | None = None
    name: str
    path: str


class Config(Protocol):
    """What is delivered (kineto_config.KinetoConfig), shared by all captures of a request and rendered when a poll comes for it."""

    def render(self, trace_id: str) -> str:
        """The text for the capture of this id."""
        ...

    def fallback_paths(self, pid: int) -> tuple[str, ...]:
        """Other names that the final file may get."""
        ...


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """What the config says about time: start in Unix ms (0: now), and the longest that an obedient trainer takes from
    delivery (or from the start time) to its file, in s; None when the end is not known (iterations). `warmup_s` must fit before the
    start time; `interval_s` is how much later the config is taken when the answer with it is read a poll late.
    """

    start_time_ms: int = 0
    warmup_s: float = 0.0
    interval_s: float = 0.0
    longest_s: float | None = None


class Capture:
    """One triggered profile on one process. Every change calls `on_change`; the socket thread is its only user."""

    __slots__ = (
        "_ahead_s",
        "_busy_seen",
        "_clock",
        "_config",
        "_death",
        "_ends_ns",
        "_final_seen",
        "_on_change",
        "_ready_polls",
        "_timing",
        "_unseen",
        "asked_by",
        "expected_s",
        "file",
        "file_bytes",
        "history",
        "host_path",
        "id",
        "path",
        "reason",
        "request_id",
        "state",
        "subject",
    )

    def __init__(
        self,
        *,
        capture_id: str,
        request_id: str,
        subject: Subject,
        config: Config,
        timing: Timing,
        asked_by: str,
        expected_s: float,
        clock: Clock,
        on_change: Callable[["Capture"], None],
    ) -> None:
        self.id = capture_id
        self.request_id = request_id
        self.subject = subject
        self.asked_by = asked_by
        self.expected_s = expected_s
        self.path = subject.path
        self.host_path = ""
        self.reason = ""
        self.file: TraceFile | None = None
        self.file_bytes = 0
        self._config: Config | None = config
        self._timing = timing
        self._clock = clock
        self._on_change = on_change
        self._ends_ns: int | None = None  # monotonic; set at delivery
        self._ahead_s: float | None = None  # from delivery to the start time, where there is one
        self._busy_seen = False
        self._final_seen = False
        self._ready_polls = 0
        self._death = ""
        self._unseen = ""
        self.state = CaptureState.PENDING
        self.history = [Transition(self.state, clock.wall_ns(), f"asked for by {asked_by}")]

    @property
    def is_pending(self) -> bool:
        """Whether the config still waits for a poll."""
        return self.state is CaptureState.PENDING

    @property
    def asked_wall_ns(self) -> int:
        """When it was asked for, Unix ns."""
        return self.history[0].wall_ns

    @property
    def longest_s(self) -> float | None:
        """The longest that an obedient trainer takes from delivery to its file, in s; None when its end is not known (iterations)."""
        return self._timing.longest_s

    @property
    def paths(self) -> tuple[str, ...]:
        """The names that its final file may have, as the process sees them, the one asked for first; () when it is over."""
        return (self.subject.path, *self._config.fallback_paths(self.subject.pid)) if self._config is not None else ()

    @property
    def may_be_replaced(self) -> bool:
        """Whether the trainer took an iteration config and then polled ready so often that it never began."""
        return (
            self.state is CaptureState.DELIVERED
            and self._timing.longest_s is None
            and not self._busy_seen
            and self._ready_polls >= READY_POLLS_TO_REPLACE
        )

    # --- facts -----------------------------------------------------------------------------------------------------

    def on_poll(self, *, ready: bool, uid: int) -> str | None:
        """The trainer polled; `ready` is the activities bit. Returns the config when this poll is to be answered with it."""
        if self.state is CaptureState.PENDING:
            return self._deliver(uid) if ready else None
        if self.state.is_final:
            return None
        if not ready:
            self._busy_seen = True
            self._ready_polls = 0
            if self.state is CaptureState.DELIVERED:
                self._move(CaptureState.RECORDING, "it polled without the activities bit")
        else:
            self._count_ready_poll()
        return None

    def _deliver(self, uid: int) -> str | None:
        assert self._config is not None
        text = self._config.render(self.id)
        if uid != self.subject.uid:
            # The process changed its user since it was asked for: what was meant for the one is not for the other.
            self._finish(
                CaptureState.FAILED, f"the process polled as uid {uid}, but was uid {self.subject.uid} when asked"
            )
            return None
        wall_ms = self._clock.wall_ns() // 1_000_000
        start_ms = self._timing.start_time_ms
        if start_ms and start_ms < wall_ms:
            late_s = (wall_ms - start_ms) / 1000
            self._finish(CaptureState.EXPIRED, f"its next poll came {late_s:.1f} s after the start time")
            return None
        if start_ms:
            self._ahead_s = (start_ms - wall_ms) / 1000
        if self._timing.longest_s is not None:
            wait_ms = max(start_ms - wall_ms, 0) if start_ms else 0
            self._ends_ns = self._clock.monotonic_ns() + wait_ms * 1_000_000 + int(self._timing.longest_s * 1e9)
        self._ready_polls = 0
        self._move(CaptureState.DELIVERED, "it polled, and the config was sent in the reply")
        return text

    def _count_ready_poll(self) -> None:
        if self._final_seen:
            return
        # Without a known end (iterations) only a trainer that was seen profiling can be seen to be done.
        over = self._busy_seen if self._ends_ns is None else self._clock.monotonic_ns() >= self._ends_ns
        if over or self._timing.longest_s is None:
            self._ready_polls += 1
        if over and self._ready_polls >= READY_POLLS_TO_GIVE_UP:
            seen = "it recorded" if self._busy_seen else "it was not seen recording"
            ended = f"{seen}, and polled ready again {self._ready_polls} times after the expected end"
            why = self._blind or f"no file was seen: {self._why_no_file()}"
            self._finish(CaptureState.FAILED, f"{ended}; {why}")

    def _why_no_file(self) -> str:
        """The likeliest reasons, when the trainer alone knows."""
        timing, ahead_s = self._timing, self._ahead_s
        if not self._busy_seen and ahead_s is not None and ahead_s < timing.warmup_s + timing.interval_s + _LOOP_S:
            return (
                f"the config was sent {ahead_s:.1f} s before the start. On a busy machine it is read a poll "
                f"({timing.interval_s:.0f} s) late, and then the warm-up of {timing.warmup_s:.0f} s does not fit any more "
                "(its own log says whether): try again"
            )
        return "it refused the config or could not write (its own log says which)"

    @property
    def _blind(self) -> str:
        """What to say in place of "no file is there", when that cannot be told; else ""."""
        why = self._unseen if self.subject.host_pid else "its pid is unverified"
        return f"its files cannot be seen from here ({why}): look for {self.path} yourself" if why else ""

    def on_reply_failed(self, error: str) -> None:
        """The reply with the config did not reach the trainer's socket; the next poll gets it."""
        if self.state is CaptureState.DELIVERED:
            self._ends_ns = None
            self._move(CaptureState.PENDING, f"the reply did not get through: {error}")

    def on_observation(self, observation: Observation) -> None:
        """The trace watch saw a file of this capture."""
        if self.state.is_final or self.is_pending:
            return
        match observation:
            case TemporarySeen(size_bytes=size_bytes):
                if size_bytes > self.file_bytes:
                    self._ready_polls = 0  # it grows: the trainer is still writing
                self._grow(size_bytes)
                if self.state is CaptureState.DELIVERED:
                    self._move(CaptureState.RECORDING, "its temporary file appeared")
            case FinalSeen(path=path, host_path=host_path, size_bytes=size_bytes):
                self._final_seen = True
                self._place(path, host_path)
                self._grow(size_bytes)
            case Checked(file=file, path=path, host_path=host_path):
                self._place(path, host_path)
                self.file = file
                self.file_bytes = file.size_bytes
                if file.memory_snapshot:
                    self._move(CaptureState.WRITTEN, "the memory snapshot begins and ends as a pickle does")
                    return
                self.reason = "" if file.events else "the trace is empty: nothing ran in this process while it recorded"
                self._move(CaptureState.WRITTEN, f"the file was read to its last byte: {file.events} events")
            case Invalid(path=path, reason=reason, was_read=was_read):
                what = "is not a whole trace" if was_read else "may be whole, but was not checked"
                self._finish(CaptureState.FAILED, f"{path} {what}: {reason}")
            case Unseen(reason=reason):
                self._unseen = reason
            case NothingThere():
                self._nothing_there()

    def on_death(self, fact: str) -> None:
        """The process has ended. A capture that was delivered fails only when the last look finds no file (NothingThere)."""
        if self.state.is_final:
            return
        if self.is_pending:
            self._finish(CaptureState.FAILED, f"{fact} before it took the config")
        elif not self._death:
            self._death = (
                f"{fact} while {'recording' if self.state is CaptureState.RECORDING else 'the config was with it'}"
            )
            self._on_change(self)

    def _nothing_there(self) -> None:
        if self._death and not self._final_seen:
            rest = f" (a temporary file of {self.file_bytes} bytes was left)" if self.file_bytes else ""
            left = f"; {self._blind}" if self._blind else f", and left no complete file{rest}"
            self._finish(CaptureState.FAILED, f"{self._death}{left}")

    def on_left(self, fact: str) -> None:
        """The trainer was dropped without a death seen, so nothing more will be heard of it."""
        if self.is_pending:
            self._finish(CaptureState.EXPIRED, f"{fact}: the config was withdrawn")
        elif not self.state.is_final and not self._final_seen:
            left = f"; {self._blind}" if self._blind else ", and no complete file was there"
            self._finish(CaptureState.FAILED, f"{fact}{left}")

    def on_replaced(self, asked_by: str) -> None:
        """A new request takes its place (only while `may_be_replaced`)."""
        self._finish(
            CaptureState.FAILED,
            f"it never began in {self._ready_polls} ready polls (no optimizer step, or the config was refused), "
            f"and a new request by {asked_by} took its place",
        )

    # --- views -----------------------------------------------------------------------------------------------------

    def info(self) -> CaptureInfo:
        """As views and the wire see it."""
        subject = self.subject
        return CaptureInfo(
            id=self.id,
            request_id=self.request_id,
            pid=subject.pid,
            host_pid=subject.host_pid,
            uid=subject.uid,
            state=self.state,
            path=self.path,
            host_path=self.host_path,
            reason=self.reason,
            job=subject.job,
            rank=subject.rank,
            world_size=subject.world_size,
            name=subject.name,
            history=tuple(self.history),
            file=self.file,
            file_bytes_so_far=self.file_bytes,
            expected_s=self.expected_s,
        )

    def _place(self, path: str, host_path: str) -> None:
        self.path = path
        self.host_path = host_path

    def _grow(self, size_bytes: int) -> None:
        if size_bytes != self.file_bytes:
            self.file_bytes = size_bytes
            self._on_change(self)

    def _finish(self, state: CaptureState, reason: str) -> None:
        self.reason = reason
        self._move(state, reason)

    def _move(self, state: CaptureState, fact: str) -> None:
        self.state = state
        if state.is_final:
            self._config = None
        if len(self.history) >= _MOST_TRANSITIONS:
            del self.history[1]  # a reply that fails at every poll must not fill memory; the request itself stays
        self.history.append(Transition(state, self._clock.wall_ns(), fact))
        self._on_change(self)
