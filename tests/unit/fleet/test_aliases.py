"""One daemon under several names."""

import pytest

from dynolog.fleet.aliases import without_aliases
from dynolog.fleet.host_call import HostAnswer, Outcome
from dynolog.fleet.survey import Candidate, Survey
from dynolog.fleet.targets import FleetTarget
from dynolog.model.trainer import TrainerInfo
from fakes.services import trainer


def survey(host: str, *trainers: TrainerInfo) -> Survey:
    target = FleetTarget(host=host)
    candidates = tuple(Candidate(trainer=one, log_file="/t/x.json") for one in trainers)
    return Survey(target=target, answer=HostAnswer(target=target, outcome=Outcome.ANSWERED), candidates=candidates)


def test_the_same_processes_are_those_of_one_daemon() -> None:
    first, second = trainer(10, start_time_ticks=5), trainer(11, start_time_ticks=6)
    kept, said = without_aliases([survey("a", first, second), survey("b", second, first), survey("c", first)])
    assert [one.target.host for one in kept] == ["a", "c"]
    assert said == ["b is a under another name: it is asked once"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (trainer(10, start_time_ticks=5), trainer(10, start_time_ticks=6)),  # another boot, by chance the same pid
        (trainer(10, start_time_ticks=5), trainer(11, start_time_ticks=5)),
        (trainer(10, start_time_ticks=0), trainer(10, start_time_ticks=0)),  # nothing known of its start
        (trainer(10, start_time_ticks=5, host_pid=0), trainer(10, start_time_ticks=5, host_pid=0)),
    ],
)
def test_what_may_be_two_hosts_stays_two(one: TrainerInfo, other: TrainerInfo) -> None:
    assert len(without_aliases([survey("a", one), survey("b", other)])[0]) == 2


def test_hosts_with_nothing_to_trace_are_not_compared() -> None:
    assert len(without_aliases([survey("a"), survey("b")])[0]) == 2
