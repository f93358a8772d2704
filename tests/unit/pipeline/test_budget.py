"""The CPU budget: whom it stretches, when it lets go, and that it does not swing."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.pipeline.budget import MINUTE_NS, MOST_STRETCH, Cost, CpuBudget, CpuUsage, returned, stretched

SECOND = 1_000_000_000
costs_lists = st.lists(
    st.tuples(st.floats(0, 50), st.integers(0, 6)).map(lambda pair: (pair[0], 2 ** pair[1])), max_size=8
).map(lambda pairs: [Cost(f"c{number}", pct, stretch) for number, (pct, stretch) in enumerate(pairs)])


def test_the_costliest_collector_is_stretched_and_no_other() -> None:
    costs = [Cost("cpu", 0.2, 1), Cost("process", 0.9, 1), Cost("disk", 0.3, 1)]
    assert stretched(1.3, 1.0, costs) == {"process": 2}


def test_doubling_goes_on_until_the_estimate_is_within_the_budget() -> None:
    """4 + 0.5 %: 4 → 2 → 1 → 0.5, and the other as costly one once."""
    assert stretched(4.5, 1.0, [Cost("process", 4.0, 1), Cost("cpu", 0.5, 1)]) == {"process": 8}
    assert stretched(4.5, 0.9, [Cost("process", 4.0, 1), Cost("cpu", 0.5, 1)]) in (
        {"process": 16},
        {"process": 8, "cpu": 2},
    )


def test_collectors_that_cost_little_are_left_alone_when_something_else_is_the_cause() -> None:
    assert stretched(50.0, 1.0, [Cost("cpu", 0.05, 1), Cost("disk", 0.02, 1)]) == {}


def test_one_interval_at_a_time_returns_and_only_with_room_to_spare() -> None:
    costs = [Cost("process", 0.4, 4), Cost("disk", 0.1, 2), Cost("cpu", 0.01, 1)]
    assert returned(0.55, 1.0, costs) == {"disk": 1}
    assert returned(0.65, 1.0, costs) == {}
    assert returned(0.2, 1.0, costs[2:]) == {}


@given(st.floats(0, 200), st.floats(0.01, 100), costs_lists)
def test_a_stretch_only_grows_and_has_an_end(usage: float, budget: float, costs: Sequence[Cost]) -> None:
    before = {cost.name: cost.stretch for cost in costs}
    for name, stretch in stretched(usage, budget, costs).items():
        assert before[name] < stretch <= MOST_STRETCH


@given(st.floats(0, 200), st.floats(0.01, 100), costs_lists)
def test_what_has_returned_is_not_stretched_again_at_the_usage_that_was_foreseen(
    usage: float, budget: float, costs: Sequence[Cost]
) -> None:
    by_name = {cost.name: cost for cost in costs}
    for name, stretch in returned(usage, budget, costs).items():
        cost = by_name[name]
        after = [*(other for other in costs if other.name != name), Cost(name, cost.pct * 2, stretch)]
        assert stretched(usage + cost.pct, budget, after) == {}


def test_usage_is_over_the_last_minute() -> None:
    usage = CpuUsage()
    for second in range(300):
        usage.observe(second * SECOND, min(second, 200) * SECOND // 100)  # 1 % until 200 s, then nothing
        if second == 100:
            assert usage.pct == pytest.approx(1.0)
    assert usage.pct == 0
    assert usage.span_ns == pytest.approx(MINUTE_NS, rel=0.05)


def test_many_looks_a_second_cost_no_memory() -> None:
    usage = CpuUsage()
    for number in range(100_000):
        now_ns = number * SECOND // 100
        if usage.is_due(now_ns):
            usage.observe(now_ns, number * 1_000_000)
    assert len(usage._samples) < 70
    assert usage.pct == pytest.approx(10)


class Load:
    """A daemon whose collector costs 20 ms a reading at 1 s: 2 % of a core, less when stretched."""

    def __init__(self) -> None:
        self.budget = CpuBudget()
        self.now_s = 0
        self.cpu_ns = 0
        self.stretch = 1
        self.reading_ns = 20_000_000
        self.changes: list[tuple[int, int]] = []

    def run(self, seconds: int, budget_pct: float = 1.0) -> None:
        for _ in range(seconds):
            self.now_s += 1
            if self.now_s % self.stretch == 0:
                self.cpu_ns += self.reading_ns
            cost = Cost("process", 100 * self.reading_ns / SECOND / self.stretch, self.stretch)
            for stretch in self.budget.decide(self.now_s * SECOND, self.cpu_ns, budget_pct, [cost]).values():
                self.stretch = stretch
                self.changes.append((self.now_s, stretch))


def test_nothing_is_decided_before_a_whole_minute_was_seen() -> None:
    load = Load()
    load.run(58)
    assert load.changes == []
    load.run(5)
    assert load.changes[0][1] == 2


def test_it_settles_and_does_not_swing() -> None:
    load = Load()
    load.run(3600)
    assert len(load.changes) <= 2
    assert load.stretch in (2, 4)


def test_it_returns_when_the_load_has_gone() -> None:
    load = Load()
    load.run(180)
    assert load.stretch > 1
    load.reading_ns = 1_000_000
    load.run(300)
    assert load.stretch == 1


def test_a_budget_of_0_is_no_limit_and_takes_stretches_back() -> None:
    load = Load()
    load.run(180)
    assert load.stretch > 1
    load.run(1, budget_pct=0.0)
    assert load.stretch == 1
    load.run(180, budget_pct=0.0)
    assert load.stretch == 1
