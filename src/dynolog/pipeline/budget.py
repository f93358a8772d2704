"""The CPU budget: when the daemon costs too much, its costliest collectors are read less often. Pure."""

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

MINUTE_NS = 60_000_000_000
# Looking more often adds nothing to an average over a minute.
_SPACING_NS = 950_000_000
# Timers are late by a little; a minute is a minute.
_ALMOST = 0.98
MOST_STRETCH = 64
# A collector that costs less than this share of the budget is not the reason, and is left alone.
_WORTHWHILE_SHARE = 0.1
# Intervals return only when the daemon would then still be this far below the budget, so that they do not swing.
_RETURN_SHARE = 0.7


class Cost(msgspec.Struct, frozen=True):
    """A collector's cost in percent of a core at its present interval, which is `stretch` times the configured one."""

    name: str
    pct: float
    stretch: int


class CpuUsage:
    """CPU time over the last minute, from a reading now and then."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()

    def observe(self, now_ns: int, cpu_ns: int) -> None:
        """CPU time used since some fixed moment, at this time."""
        samples = self._samples
        samples.append((now_ns, cpu_ns))
        # The oldest one kept is the last that is a minute old.
        while len(samples) > 2 and now_ns - samples[1][0] >= MINUTE_NS * _ALMOST:
            samples.popleft()

    def is_due(self, now_ns: int) -> bool:
        """Whether the last observation was long enough ago for another one."""
        return not self._samples or now_ns - self._samples[-1][0] >= _SPACING_NS

    @property
    def span_ns(self) -> int:
        """How long the observations reach back."""
        return self._samples[-1][0] - self._samples[0][0] if self._samples else 0

    @property
    def pct(self) -> float:
        """Percent of one core over that span; 0 before there is a span."""
        span_ns = self.span_ns
        return 100 * (self._samples[-1][1] - self._samples[0][1]) / span_ns if span_ns else 0.0


def stretched(usage_pct: float, budget_pct: float, costs: Iterable[Cost]) -> dict[str, int]:
    """New stretches that should bring the usage below the budget: the costliest is doubled, again and again. {} when none can help."""
    now = {cost.name: cost for cost in costs}
    changes: dict[str, int] = {}
    while usage_pct > budget_pct:
        candidates = [
            cost for cost in now.values() if cost.stretch < MOST_STRETCH and cost.pct > budget_pct * _WORTHWHILE_SHARE
        ]
        if not candidates:
            break
        costliest = max(candidates, key=lambda cost: cost.pct)
        usage_pct -= costliest.pct / 2
        changes[costliest.name] = costliest.stretch * 2
        now[costliest.name] = Cost(costliest.name, costliest.pct / 2, costliest.stretch * 2)
    return changes


def returned(usage_pct: float, budget_pct: float, costs: Iterable[Cost]) -> dict[str, int]:
    """The one collector whose interval can be halved again with room to spare, the cheapest first; {} when none can."""
    cheapest = min((cost for cost in costs if cost.stretch > 1), key=lambda cost: cost.pct, default=None)
    if cheapest is None or usage_pct + cheapest.pct > budget_pct * _RETURN_SHARE:
        return {}
    return {cheapest.name: cheapest.stretch // 2}


class CpuBudget:
    """Decides from a minute of usage, then looks at a whole new minute before it decides again."""

    def __init__(self) -> None:
        self.usage = CpuUsage()
        self._decided_ns: int | None = None

    def is_due(self, now_ns: int) -> bool:
        """Whether it is time to decide again; at most about once a second."""
        return self.usage.is_due(now_ns)

    def decide(self, now_ns: int, cpu_ns: int, budget_pct: float, costs: Sequence[Cost]) -> dict[str, int]:
        """Stretches to change, by collector. `budget_pct` 0 means no limit."""
        self.usage.observe(now_ns, cpu_ns)
        if self._decided_ns is None:
            self._decided_ns = now_ns
        if budget_pct <= 0:
            return {cost.name: 1 for cost in costs if cost.stretch > 1}
        if min(self.usage.span_ns, now_ns - self._decided_ns) < MINUTE_NS * _ALMOST:
            return {}
        choose = stretched if self.usage.pct > budget_pct else returned
        changes = choose(self.usage.pct, budget_pct, costs)
        if changes:
            self._decided_ns = now_ns
        return changes
