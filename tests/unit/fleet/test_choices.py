"""Which processes, when, and by whose clock."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.choose import one_per_host, sample
from dynolog.fleet.clocks import ClockOffset, clock_offset
from dynolog.fleet.host_call import HostAnswer, Outcome
from dynolog.fleet.start_time import iterations_in_a_poll, lead_s, roundup_for, start_on_host_ns
from dynolog.fleet.survey import Candidate, Survey
from dynolog.fleet.targets import FleetTarget
from fakes.services import trainer

S = 1_000_000_000
TARGET = FleetTarget(host="gpu1")


def host(*ranks: int | None) -> list[Candidate]:
    return [Candidate(trainer=trainer(100 + index, rank=rank), log_file="") for index, rank in enumerate(ranks)]


def ranks(chosen: list[list[Candidate]]) -> list[list[int | None]]:
    return [[one.trainer.rank for one in of_host] for of_host in chosen]


def survey(*intervals_s: float | None, elapsed_s: float = 0.0, offset: ClockOffset | None = None) -> Survey:
    candidates = tuple(
        Candidate(trainer=trainer(pid, poll_interval_s=interval_s), log_file="")
        for pid, interval_s in enumerate(intervals_s, 1)
    )
    answer = HostAnswer(target=TARGET, outcome=Outcome.ANSWERED)
    return Survey(target=TARGET, answer=answer, candidates=candidates, elapsed_s=elapsed_s, offset=offset)


def test_one_per_host_is_the_lowest_rank() -> None:
    assert ranks(one_per_host([host(3, 1, 2), [], host(None, 9), host(None)])) == [[1], [], [9], [None]]


def test_a_sample_is_spread_over_the_hosts_and_begins_with_the_lowest_ranks() -> None:
    cluster = [host(0, 1), host(2, 3), host(4, 5), host(6, 7)]
    assert ranks(sample(cluster, 2)) == [[0], [], [4], []]
    assert ranks(sample(cluster, 5)) == [[0, 1], [2], [4], [6]]
    assert ranks(sample(cluster, 99)) == ranks([sorted(one, key=lambda c: c.trainer.rank or 0) for one in cluster])


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(1, 20))
def test_a_sample_has_the_size_that_was_asked_for_and_no_host_is_ahead_by_two(sizes: list[int], count: int) -> None:
    cluster = [host(*range(size)) for size in sizes]
    taken = [len(of_host) for of_host in sample(cluster, count)]
    assert sum(taken) == min(count, sum(sizes))
    for mine, size in zip(taken, sizes, strict=True):
        assert mine == size or mine >= max(taken) - 1


def test_the_start_is_far_enough_ahead_for_the_slowest_poll_the_warm_up_and_the_slowest_host() -> None:
    """5 s (libkineto's own where it is not seen) + 1 s + 3 s + 0.5 s + 2 × 2 ms + 1 s."""
    assert lead_s([survey(1.0, 2.0, elapsed_s=0.5), survey(None)], 3) == pytest.approx(5 + 1 + 3 + 0.5 + 0.004 + 1)
    assert lead_s([survey(1.0)], 0) == pytest.approx(1 + 1 + 0.002 + 1)


def test_with_many_processes_one_answer_may_be_read_a_poll_late() -> None:
    few, many = [survey(*[5.0] * 63)], [survey(*[5.0] * 32)] * 2
    assert lead_s(few, 5) == pytest.approx(5 + 1 + 5 + 0.002 + 1)
    assert lead_s(many, 5) == pytest.approx(2 * 5 + 1 + 5 + 0.004 + 1)


def test_the_round_up_exceeds_the_iterations_of_a_poll() -> None:
    assert iterations_in_a_poll([survey(1.0), survey(5.0)], 20) == 300
    assert [roundup_for(number) for number in (0, 9, 10, 300, 499, 500, 1999)] == [10, 10, 20, 500, 500, 1000, 2000]


def answer(sent_ns: int, received_ns: int, wall_ns: int) -> HostAnswer:
    body = msgspec.json.encode({"status": 1, "wall_ns": wall_ns} if wall_ns else {"status": 1})
    return HostAnswer(
        target=TARGET, outcome=Outcome.ANSWERED, body=body, sent_wall_ns=sent_ns, received_wall_ns=received_ns
    )


def test_an_offset_is_against_the_middle_of_the_round_trip() -> None:
    offset = clock_offset(answer(100 * S, 100 * S + 40_000_000, 102 * S))
    assert offset == ClockOffset(offset_ns=2 * S - 20_000_000, uncertainty_ns=20_000_000)
    assert offset.is_off
    assert str(offset) == "+1980.0 ±20.0 ms"
    assert start_on_host_ns(500 * S, survey(1.0, offset=offset)) == 502 * S - 20_000_000


def test_a_difference_within_the_measurement_is_none() -> None:
    offset = clock_offset(answer(100 * S, 101 * S, 100 * S + 900_000_000))
    assert offset == ClockOffset(offset_ns=400_000_000, uncertainty_ns=500_000_000)
    assert not offset.is_off
    assert start_on_host_ns(500 * S, survey(1.0, offset=offset)) == 500 * S
    assert not ClockOffset(offset_ns=-90_000_000, uncertainty_ns=0).is_off
    assert ClockOffset(offset_ns=-101_000_000, uncertainty_ns=0).is_off


def test_a_daemon_that_tells_no_time_has_no_offset() -> None:
    assert clock_offset(answer(S, S, 0)) is None
    assert start_on_host_ns(9, survey(1.0)) == 9


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**9), st.floats(0, 1))
def test_the_true_offset_is_within_the_uncertainty_wherever_the_daemon_looked(
    true_ns: int, trip_ns: int, when: float
) -> None:
    sent_ns = 10**15
    offset = clock_offset(answer(sent_ns, sent_ns + trip_ns, sent_ns + int(trip_ns * when) + true_ns))
    assert offset is not None
    assert abs(offset.offset_ns - true_ns) <= offset.uncertainty_ns + 1
