"""Which backend reads the GPUs now: choosing one, changing to another, and retrying what failed. One thread uses it.

A failure is said once, costs a growing delay (an interval or 5 s, doubled up to 10 min), and never ends anything else.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from dynolog.model.clock import Clock
from dynolog.model.errors import SourceUnavailable
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_candidate import LASTING_NS, SECOND_NS, Candidate
from dynolog.sources.gpu_child import ChildFailed, GpuChild
from dynolog.sources.gpu_presence import vendors
from dynolog.sources.gpu_registry import AUTO, BACKENDS, NONE, Entry
from dynolog.sources.gpu_wire import Done, Open, Pause, Raised, Reply, Request, Resume, Sample, Sampled, Unavailable
from dynolog.sources.host_files import HostFiles

_log = logging.getLogger(__name__)
# A backend that lasted is waited for so long (a host engine that restarts) before another one is taken.
_LOYALTY_NS = 60 * SECOND_NS
_PRESENCE_NS = 60 * SECOND_NS
# Drivers that must first wake eight devices up take long; the deadline of one reading is for devices that are awake.
OPENING_FACTOR = 6


class Child(Protocol):
    """What is used of gpu_child.GpuChild."""

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Raises ChildFailed."""
        ...

    def close(self) -> None:
        """End it."""
        ...

    def kill(self) -> None:
        """From any thread."""
        ...

    @property
    def is_stuck(self) -> bool:
        """Whether it cannot be ended."""
        ...


class GpuAccess:
    """Gives samples, from whatever backend works. `options.backend` may be `auto`."""

    def __init__(
        self,
        options: GpuOptions,
        deadline_s: float,
        clock: Clock,
        make_child: Callable[[str], Child] = GpuChild,
    ) -> None:
        self._options = options
        self._deadline_s = deadline_s
        self._clock = clock
        self._make_child = make_child
        self._host = HostFiles(options.root_dir)
        self._is_auto = options.backend == AUTO
        self._candidates = [Candidate(entry, options.interval_s) for entry in _order(options.backend)]
        self._vendors: frozenset[str] | None = None
        self._vendors_until_ns = 0
        self._child: Child | None = None
        self._stuck: Child | None = None
        self._current: Candidate | None = None
        self._loyal_until_ns = 0
        self.notes: tuple[str, ...] = ()
        # What is wanted, also of a child that is not there yet.
        self._want_paused = False

    @property
    def backend(self) -> str:
        """The backend that is open; "" for none."""
        return self._current.name if self._child is not None and self._current is not None else ""

    def sample(self) -> Sampled:
        """A sample; opens a backend when none is. Raises SourceUnavailable, the same sentence as long as nothing changes."""
        now_ns = self._clock.monotonic_ns()
        if self._child is None:
            self._open_one(self._due(now_ns))
        elif better := self._better(now_ns):
            self._change_to(better)
        reply = self._ask(Sample())
        if not isinstance(reply, Sampled):
            error = SourceUnavailable(self.backend, "its answer is not a sample")
            self.close()
            raise self._lost(error)
        return reply

    def set_paused(self, paused: bool) -> bool:
        """Pause or resume profiling, now and in every child to come; False when there is nothing to pause or to resume."""
        if self._child is None:
            was_paused, self._want_paused = self._want_paused, paused and self._want_paused
            return was_paused
        if not paused:
            self._want_paused = False
        reply = self._ask(Pause() if paused else Resume())
        done = isinstance(reply, Done) and reply.ok
        self._want_paused = paused and done
        return done

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def kill(self) -> None:
        """Kill the child, because nobody waits for it any more. From any thread."""
        if (child := self._child) is not None:
            child.kill()

    # --- choosing -----------------------------------------------------------------------------------------------------

    def _due(self, now_ns: int) -> list[Candidate]:
        """Those to be tried now, in order. Raises SourceUnavailable when there are none, with what each said last."""
        if not self._candidates:
            raise SourceUnavailable("gpu", "--gpu_backend=none")
        self._wait_for_stuck()
        candidates = self._candidates
        if self._current is not None and now_ns < self._loyal_until_ns:
            candidates = [self._current]
        due = [one for one in candidates if one.not_before_ns <= now_ns and self._is_here(one, now_ns)]
        if not due:
            raise self._nothing()
        return due

    def _better(self, now_ns: int) -> list[Candidate]:
        """Those before the present one in the order whose time has come again."""
        assert self._current is not None
        before = self._candidates[: self._candidates.index(self._current)]
        return [one for one in before if one.not_before_ns <= now_ns and self._is_here(one, now_ns)]

    def _is_here(self, candidate: Candidate, now_ns: int) -> bool:
        """Whether the machine has devices of that maker; anything goes for a backend that was asked for by name."""
        options = self._options
        if not self._is_auto or (candidate.name == "dcgm" and options.dcgm_standalone_address not in ("", AUTO)):
            return True
        if now_ns >= self._vendors_until_ns:
            self._vendors, self._vendors_until_ns = vendors(self._host), now_ns + _PRESENCE_NS
        if self._vendors is None or candidate.entry.vendor in self._vendors:
            return True
        candidate.error = SourceUnavailable(candidate.name, f"no {candidate.entry.maker} device is in this machine")
        return False

    def _nothing(self) -> SourceUnavailable:
        """Why nothing can be opened: of the one that is waited for, or of all."""
        is_loyal = self._current is not None and self._clock.monotonic_ns() < self._loyal_until_ns
        candidates = [self._current] if is_loyal and self._current is not None else self._candidates
        errors = [one.error for one in candidates if one.error is not None]
        if len(errors) == 1:
            return errors[0]
        reasons = "; ".join(map(str, errors))
        if any(error.remedy for error in errors):
            return SourceUnavailable("GPUs", "no backend works here", reasons)
        return SourceUnavailable(
            "GPUs", f"no backend works here ({reasons})", "where there is no GPU, leave --enable_gpu_monitor out"
        )

    def _open_one(self, candidates: Sequence[Candidate]) -> None:
        """Open the first that can be. Raises SourceUnavailable when none can."""
        for candidate in candidates:
            self._current = candidate
            if (child := self._opened(candidate)) is not None:
                self._child = child
                self._settle(candidate)
                return
        raise self._nothing()

    def _change_to(self, better: Sequence[Candidate]) -> None:
        """Take one that is better when it can be opened; the present one serves until then."""
        for candidate in better:
            if (child := self._opened(candidate)) is not None:
                self.close()
                self._child, self._current = child, candidate
                self._settle(candidate)
                return
            candidate.leave_alone(self._clock.monotonic_ns())

    def _settle(self, candidate: Candidate) -> None:
        """A backend was opened: say it, and leave the others alone for a while."""
        now_ns = self._clock.monotonic_ns()
        candidate.opened_ns, candidate.error = now_ns, None
        self._loyal_until_ns = 0
        before = self._candidates[: self._candidates.index(candidate)]
        for one in before:
            one.leave_alone(now_ns)
        why = "; ".join(str(one.error) for one in before if one.error is not None)
        note = f"GPUs are read with {candidate.name}" + (f" ({why})" if why else "")
        if self.notes != (note,):
            self.notes = (note,)
            _log.info("%s", note)
        if self._want_paused:
            self.set_paused(True)

    # --- children -----------------------------------------------------------------------------------------------------

    def _opened(self, candidate: Candidate) -> Child | None:
        """A child with the backend open, or None and why not in its `error`."""
        options = Open(_with_backend(self._options, candidate))
        try:
            child = self._make_child(candidate.name)
        except OSError as error:
            self._failed(candidate, SourceUnavailable(candidate.name, f"no process for it: {error.strerror}"))
            return None
        try:
            _raise_bad(candidate.name, child.ask(options, self._deadline_s * OPENING_FACTOR))
        except ChildFailed as error:
            self._leave(child)
            self._failed(candidate, SourceUnavailable(candidate.name, str(error)))
            return None
        except SourceUnavailable as error:
            child.close()
            self._failed(candidate, error, quiet=True)
            return None
        return child

    def _ask(self, request: Request) -> Reply:
        assert self._child is not None
        assert self._current is not None
        try:
            reply = self._child.ask(request, self._deadline_s)
            _raise_bad(self._current.name, reply)
        except ChildFailed as error:
            self._leave(self._child)
            raise self._lost(SourceUnavailable(self._current.name, str(error))) from error
        except SourceUnavailable as error:
            self._child.close()
            raise self._lost(error) from error
        return reply

    def _lost(self, error: SourceUnavailable) -> SourceUnavailable:
        """The backend that worked does so no more. One that crashes soon after every opening is not waited for."""
        assert self._current is not None
        self._child = None
        now_ns = self._clock.monotonic_ns()
        self._current.lasted = now_ns - self._current.opened_ns >= LASTING_NS
        self._failed(self._current, error)
        if self._is_auto and self._current.lasted:
            self._loyal_until_ns = now_ns + _LOYALTY_NS
        return error

    def _failed(self, candidate: Candidate, error: SourceUnavailable, *, quiet: bool = False) -> None:
        delay_ns = candidate.failed(self._clock.monotonic_ns(), error)
        # What was never there is said by the collector, once.
        if not quiet or candidate.lasted:
            _log.warning("%s; it is tried again in %g s", error, delay_ns / SECOND_NS)

    def _leave(self, child: Child) -> None:
        """Keep the one that could not be killed, so that there is never a second."""
        if child.is_stuck:
            self._stuck = child

    def _wait_for_stuck(self) -> None:
        if self._stuck is not None:
            if self._stuck.is_stuck:
                raise SourceUnavailable(
                    "gpu",
                    "a process was killed and does not end: it hangs in the driver",
                    "look at the kernel log; no other one is started before it has ended",
                )
            self._stuck = None


def _order(backend: str) -> tuple[Entry, ...]:
    if backend == AUTO:
        return BACKENDS
    if backend == NONE:
        return ()
    return tuple(entry for entry in BACKENDS if entry.name == backend) or (Entry(backend, backend, "", ""),)


def _with_backend(options: GpuOptions, candidate: Candidate) -> GpuOptions:

    return msgspec.structs.replace(options, backend=candidate.name)


def _raise_bad(backend: str, reply: Reply) -> None:
    """Raise SourceUnavailable for an answer that says what went wrong."""
    match reply:
        case Unavailable(source, reason, remedy):
            raise SourceUnavailable(source, reason, remedy)
        case Raised(error):
            raise SourceUnavailable(backend, f"its backend failed: {error}")
