"""A live process that is no trainer: what is said of it, to whom, and what a look that hangs costs."""

import threading

import pytest

from dynolog.model.trace_request import Caller, Transport
from dynolog.profiling.unregistered import why_unregistered
from dynolog.sources.process import ProcessFacts, ProcessStat
from fakes.profiling import FakeService

HERE, ELSEWHERE = 4026531840, 4026539999


def process(*, known: bool = True, net: int = HERE, uid: int = 1000, **environment: str) -> ProcessFacts:
    return ProcessFacts(
        stat=ProcessStat(80295, "python", 1, 7),
        environment=environment,
        environment_is_known=known,
        uid=uid,
        net_namespace=net,
    )


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (process(), "KINETO_USE_DAEMON is not in the environment"),
        (process(known=False), ""),
        (process(KINETO_USE_DAEMON="0"), "once it has imported PyTorch"),
        (process(KINETO_USE_DAEMON="1", KINETO_DAEMON_INIT_DELAY_S="300"), "INIT_DELAY_S=300 makes it wait"),
        (process(KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR="/run/dyno", net=ELSEWHERE), "--ipc_socket_dir"),
        (process(KINETO_USE_DAEMON="1", net=ELSEWHERE), "--ipc_namespaces"),
        (process(KINETO_USE_DAEMON="1", net=0), "once it has imported PyTorch"),
    ],
)
def test_what_its_environment_shows(facts: ProcessFacts, says: str) -> None:
    """A02, A04, A07, A16. libkineto takes KINETO_USE_DAEMON=0 for on, so no value of it is called off."""
    said = why_unregistered(facts, HERE)
    assert says in said
    assert bool(says) == bool(said)


def test_the_reason_of_an_empty_match_has_it(service: FakeService) -> None:
    service.reader.processes[80295] = process()
    outcome = service.ask(pids=(80294, 80295))
    assert outcome.no_match_code == "no_trainer_registered"
    assert outcome.no_match_reason.endswith(
        "Pid 80295: KINETO_USE_DAEMON is not in the environment that it was started with."
    )


def test_another_users_environment_is_not_told(service: FakeService) -> None:
    service.reader.processes[80295] = process(uid=1000)
    stranger, owner = (Caller(transport=Transport.UNIX, uid=uid) for uid in (1001, 1000))
    assert "Pid 80295" not in service.ask(stranger, pids=(80295,)).no_match_reason
    assert "Pid 80295" in service.ask(owner, pids=(80295,)).no_match_reason


def test_a_look_that_hangs_costs_one_thread_and_half_a_second_once(service: FakeService) -> None:
    service.reader.processes[80295] = process()
    release, entered = threading.Event(), []

    def hang(_: int) -> None:
        entered.append(threading.get_ident())
        release.wait(10)

    service.reader.hang = hang
    for _ in range(3):
        assert service.ask(pids=(80295,)).no_match_code == "no_trainer_registered"
    assert len(entered) == 1
    release.set()
