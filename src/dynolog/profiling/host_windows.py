"""When the host is to be sampled beside a capture: from a little before it can begin to record until its file is there."""

from typing import Protocol

import msgspec

from dynolog.model.clock import Clock
from dynolog.profiling.captures import Capture
from dynolog.profiling.kineto_config import KinetoConfig, Mode

# Before the recording can begin, and after it should have ended.
_LEAD_NS = 500_000_000
_MARGIN_NS = 1_000_000_000
# For iterations, whose end nobody knows; the sampler ends every wish after its longest anyway.
_UNKNOWN_END_NS = 600 * 10**9
_NS_PER_MS = 1_000_000


class HostSampler(Protocol):
    """Samples the host for whoever wants it (pipeline.host_burst)."""

    def arm(self, key: str, interval_ns: int) -> None:
        """Samples will be wanted."""
        ...

    def window(self, key: str, begin_in_ns: int, end_in_ns: int) -> None:
        """From when to when, counted from now."""
        ...

    def done(self, key: str) -> None:
        """No more are wanted."""
        ...


class NoHostSampler:
    """For a daemon without one."""

    def arm(self, key: str, interval_ns: int) -> None:
        """Nothing is sampled."""

    def window(self, key: str, begin_in_ns: int, end_in_ns: int) -> None:
        """Nothing is sampled."""

    def done(self, key: str) -> None:
        """Nothing is sampled."""


class _Plan(msgspec.Struct, frozen=True):
    """When recording begins after delivery; `longest_s` is None for iterations, which wait for neither a start time nor the warm-up."""

    start_time_ms: int
    warmup_s: float
    longest_s: float | None


class HostWindows:
    """Follows captures on the socket thread; the sampler has a thread of its own."""

    def __init__(self, sampler: HostSampler, clock: Clock) -> None:
        self._sampler = sampler
        self._clock = clock
        self._plans: dict[str, _Plan] = {}
        self._begun: set[str] = set()

    def arm(self, capture: Capture, config: KinetoConfig, interval_ms: int) -> None:
        """Sample beside this capture, once it is delivered."""
        if capture.state.is_final:
            return
        longest_s = None if config.mode is Mode.ITERATIONS else capture.longest_s
        self._plans[capture.id] = _Plan(config.start_time_ms, config.effective_warmup_s, longest_s)
        self._sampler.arm(capture.id, interval_ms * _NS_PER_MS)

    def on_change(self, capture: Capture) -> None:
        """Every change of every capture."""
        plan = self._plans.get(capture.id)
        if plan is None:
            return
        if capture.state.is_final:
            del self._plans[capture.id]
            self._begun.discard(capture.id)
            self._sampler.done(capture.id)
        elif capture.is_pending:
            self._begun.discard(capture.id)  # the reply did not get through
        elif capture.id not in self._begun:
            self._begun.add(capture.id)
            self._sampler.window(capture.id, *self._window_ns(plan))

    def _window_ns(self, plan: _Plan) -> tuple[int, int]:
        """From a delivery that is now: recording begins when the warm-up is over, or at the start time; iterations may begin at once."""
        if plan.longest_s is None:
            return 0, _UNKNOWN_END_NS
        to_start_ns = 0
        if plan.start_time_ms:
            to_start_ns = max(plan.start_time_ms * _NS_PER_MS - self._clock.wall_ns(), 0)
        begin_in_ns = max(int(plan.warmup_s * 1e9), to_start_ns) - _LEAD_NS
        return begin_in_ns, to_start_ns + int(plan.longest_s * 1e9) + _MARGIN_NS
