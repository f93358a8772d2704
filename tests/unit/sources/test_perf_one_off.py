"""A single count: sums over targets, scaled by each one's own times, and what could not be counted."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.perf_event.attributes import EventSpec
from dynolog.sources.perf_event.group import Target
from dynolog.sources.perf_event.one_off import EventCount, OneOff
from fakes.perf_kernel import FakePerfKernel

CYCLES = EventSpec(name="cycles", type=0, config=0)
FAULTS = EventSpec(name="page-faults", type=1, config=2)
ENERGY = EventSpec(name="energy", type=17, config=2, scale=0.5, unit="Joules", cpus=(0,))


def on_cpus(event: EventSpec) -> list[Target]:
    return [Target(cpu=cpu) for cpu in (0, 1) if event.cpus is None or cpu in event.cpus]


def counted(kernel: FakePerfKernel, *events: EventSpec, seconds: float = 2.0) -> list[EventCount]:
    counters = OneOff(kernel, events, on_cpus)
    counters.start()
    kernel.advance(seconds)
    counts = counters.stop()
    counters.close()
    assert not kernel.open_counters, "every descriptor is closed"
    return counts


def test_counts_of_all_cpus_are_added_and_scaled_to_their_unit() -> None:
    kernel = FakePerfKernel({(0, 0): 1000, (17, 2): 80})
    cycles, energy = counted(kernel, CYCLES, ENERGY)
    assert (cycles.count, cycles.targets, cycles.running_ratio) == (4000, 2, 1.0)
    assert (energy.count, energy.targets, energy.event.unit) == (80, 1, "Joules")


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=2))
def test_each_target_is_scaled_by_its_own_times(shares: list[float]) -> None:
    """E04: the shares of two CPUs differ; their sum is right all the same."""
    kernel = FakePerfKernel({(0, 0): 1e9})
    kernel.share = lambda counter: shares[counter.cpu]
    (cycles,) = counted(kernel, CYCLES)
    assert cycles.count == pytest.approx(4e9, rel=1e-6)
    assert cycles.running_ratio == pytest.approx(sum(shares) / 2, rel=1e-6)


def test_an_event_that_never_had_a_counter_has_no_count() -> None:
    """E01, E02: 0 of 0 is not 0, and half of the CPUs are not the machine."""
    kernel = FakePerfKernel({(0, 0): 1000})
    kernel.share = lambda counter: float(counter.cpu)
    (cycles,) = counted(kernel, CYCLES)
    assert cycles.count is None
    assert cycles.running_ratio == 0.5


def test_a_refusal_costs_only_its_event() -> None:
    """E08: a machine without the event still counts the others."""
    cycles, faults = counted(FakePerfKernel({(1, 2): 3}), CYCLES, FAULTS)
    assert cycles.count is None
    assert cycles.refusal is not None
    assert cycles.refusal.errno == errno.ENOENT
    assert faults.count == 12


def test_where_the_kernels_part_is_forbidden_the_users_is_counted() -> None:
    """E07: perf_event_paranoid=2."""
    kernel = FakePerfKernel({(0, 0): 1000})
    kernel.refuse = lambda attr, cpu, cgroup: 0 if attr.excludes_kernel else errno.EACCES
    (cycles,) = counted(kernel, CYCLES)
    assert cycles.count == 4000
    assert cycles.user_mode_only


def test_descriptors_that_run_out_are_a_refusal_and_nothing_stays_open() -> None:
    kernel = FakePerfKernel({(0, 0): 1000})
    kernel.most_open = 1
    (cycles,) = counted(kernel, CYCLES)
    assert cycles.count is None
    assert cycles.refusal is not None
    assert cycles.refusal.errno == errno.EMFILE


def test_a_thread_that_never_ran_has_counted_nothing() -> None:
    (cycles,) = counted(FakePerfKernel({(0, 0): 1000}), CYCLES, seconds=0.0)
    assert cycles.count == 0
    assert cycles.running_ratio is None
