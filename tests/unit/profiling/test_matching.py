"""Which trainers a request means, through the whole service on fakes."""

from typing import Any

import pytest

from dynolog.model.trace_request import Caller, Transport
from fakes.profiling import FakeService, facts

USER = Caller(transport=Transport.UNIX, uid=1000)


def chosen(service: FakeService, caller: Caller | None = None, **request: Any) -> list[int]:
    """Host pids that a dry run would trigger."""
    outcome = service.ask(dry_run=True, **request) if caller is None else service.ask(caller, dry_run=True, **request)
    assert len(outcome.triggered) == len(service.destinations) or not outcome.triggered
    return [destination.host_pid for destination in service.destinations] if outcome.triggered else []


def torchrun(service: FakeService, *, job: int = 0) -> None:
    """A torchrun 40 with ranks 41..44 and one dataloader worker 51 of rank 0."""
    service.trainer(facts(40, ancestors=((4,), (1,)), command="python /opt/bin/torchrun train.py"), 40, 4, 1, job=job)
    for rank in range(4):
        service.trainer(facts(41 + rank, ancestors=((40,), (4,), (1,)), RANK=rank), 41 + rank, 40, 4, 1, job=job)
    service.trainer(facts(51, ancestors=((41,), (40,), (4,), (1,)), RANK=0), 51, 41, 40, job=job)


def test_a_capture_says_its_rank_and_of_how_many(service: FakeService) -> None:
    service.trainer(facts(10, RANK=1, WORLD_SIZE=2))
    service.trainer(facts(11))
    assert [(one.rank, one.world_size) for one in service.ask().captures] == [(1, 2), (None, None)]


def test_no_pids_and_pid_0_mean_every_process_of_the_job(service: FakeService) -> None:
    """A11."""
    for pid, job in ((10, 5), (11, 5), (12, 6), (13, 0)):
        service.trainer(facts(pid), job=job)
    for pids in ((), (0,)):
        assert chosen(service, job_id=5, pids=pids) == [10, 11]
    assert chosen(service) == [13]


def test_the_job_must_be_equal_even_when_the_pid_is_named(service: FakeService) -> None:
    service.trainer(facts(10), job=5)
    outcome = service.ask(pids=(10,))
    assert outcome.no_match_code == "job_not_found"
    assert "registered in job 5: give it as --job-id" in outcome.no_match_reason


def test_64_bits_of_the_job_count(service: FakeService) -> None:
    service.trainer(facts(10), job=2**40 + 5)
    assert chosen(service, job_id=2**40 + 5) == [10]
    assert service.ask(job_id=5).no_match_code == "job_not_found"


def test_a_text_job_wins_over_the_number(service: FakeService) -> None:
    """H01."""
    for task in (1, 2):
        slurm: dict[str, Any] = {
            "SLURM_JOB_ID": 90210 + task,
            "SLURM_ARRAY_JOB_ID": 90210,
            "SLURM_ARRAY_TASK_ID": task,
            "SLURM_STEP_ID": 0,
        }
        service.trainer(facts(10 + task, **slurm), job=90210 + task)
    assert chosen(service, job="90210_2", job_id=90211) == [12]
    assert chosen(service, job="90210") == [11, 12]
    assert chosen(service, job="90210.0") == [11, 12]
    assert service.ask(job="90210.1").no_match_code == "job_not_found"


def test_a_pid_means_the_process_and_its_descendants(service: FakeService) -> None:
    torchrun(service)
    assert chosen(service, pids=(42,)) == [42]
    assert chosen(service, pids=(4,)) == [41, 42, 43, 44, 51]
    assert chosen(service, pids=(1,)) == [41, 42, 43, 44, 51]


def test_launchers_are_left_out_and_said_to_be(service: FakeService) -> None:
    torchrun(service)
    outcome = service.ask(dry_run=True)
    assert outcome.matched == (40, 41, 42, 43, 44, 51)
    assert outcome.triggered == (41, 42, 43, 44, 51)
    assert service.reasons(outcome) == {40: "launcher"}
    assert chosen(service, include_launchers=True) == [40, 41, 42, 43, 44, 51]
    assert chosen(service, pids=(40,)) == [40, 41, 42, 43, 44, 51]


def test_an_ancestor_of_another_match_is_a_launcher_unless_it_works_itself(service: FakeService) -> None:
    service.trainer(facts(10, command="python launch.py"))
    service.trainer(facts(11, ancestors=((10,),)))
    assert chosen(service) == [11]
    service.end(10)
    service.trainer(facts(10, command="python train.py", gpu=True), socket=1)
    assert chosen(service) == [10, 11]


@pytest.mark.parametrize(
    "command",
    [
        "/opt/venv/bin/python /opt/venv/bin/torchrun --nproc_per_node 8 train.py",
        "python -m torch.distributed.run train.py",
        "python /usr/local/bin/accelerate launch train.py",
        "/usr/bin/python3 -u /usr/bin/accelerate-launch train.py",
        "python -m accelerate.commands.launch train.py",
        "python -u -m deepspeed.launcher.launch --world_info=e30= train.py",
    ],
)
def test_a_launcher_is_known_before_its_workers_have_registered(service: FakeService, command: str) -> None:
    """A08: asked for too early, it must not be the one that is traced."""
    service.trainer(facts(10, command=command))
    outcome = service.ask(dry_run=True)
    assert service.reasons(outcome) == {10: "launcher"}
    service.trainer(facts(12, command="python train.py --launcher accelerate"))
    assert chosen(service) == [12]


def test_views_say_who_is_a_launcher(service: FakeService) -> None:
    torchrun(service)
    assert [info.host_pid for info in service.service.trainers() if info.launcher] == [40]


def test_a_pid_inside_one_namespace_is_found(service: FakeService) -> None:
    service.trainer(facts(500, inner=(7,), ancestors=((400, 1), (1,)), namespace=8), 7, 1)
    service.trainer(facts(501), 501)
    assert chosen(service, pids=(7,)) == [500]
    assert chosen(service, pids=(1,)) == [500]  # process 1 of the container; that of the host is everybody's ancestor
    assert chosen(service, pids=(500,)) == [500]


def test_a_pid_that_fits_two_namespaces_is_ambiguous_unless_a_host_pid_decides(service: FakeService) -> None:
    """A09: two pods can both own pid 7."""
    service.trainer(facts(500, inner=(7,), namespace=8), 7)
    service.trainer(facts(600, inner=(7,), namespace=9), 7)
    outcome = service.ask(pids=(7,))
    assert outcome.no_match_code == "ambiguous"
    assert "500, 600" in outcome.no_match_reason
    assert [entry.code for entry in outcome.not_traced] == ["ambiguous"]
    service.trainer(facts(7), 7)
    assert chosen(service, pids=(7,)) == [7]
    assert chosen(service, pids=(500,)) == [500]


def test_two_processes_of_one_namespace_are_not_ambiguous(service: FakeService) -> None:
    for pid, inside in ((500, 7), (501, 8)):
        service.trainer(facts(pid, inner=(inside,), ancestors=((400, 2), (300, 1)), namespace=8), inside, 2, 1)
    assert chosen(service, pids=(2,)) == [500, 501]


def test_nobody_is_matched_by_what_it_claims_to_be(service: FakeService) -> None:
    service.trainer(facts(10), 10)
    service.trainer(facts(66, inner=()), 10, 10, uid=1001)
    service.trainer(facts(67), 99, 10, uid=1001)
    assert chosen(service, pids=(10,)) == [10]
    assert service.ask(pids=(99,)).no_match_code == "pid_dead"


def test_unverified_trainers_are_found_by_their_claim_when_nothing_else_fits(service: FakeService) -> None:
    service.poll(7, 7, 1, host_pid=0, socket=1)
    outcome = service.ask(pids=(7,))
    assert outcome.triggered == (7,)
    assert any("only what they say themselves" in note for note in outcome.notes)
    service.poll(7, 7, 1, host_pid=0, socket=2)
    assert service.ask(pids=(7,)).no_match_code == "ambiguous"


def test_names_are_the_process_the_program_or_the_script(service: FakeService) -> None:
    service.trainer(facts(10, name="pt_main_thread", command="/usr/bin/python3 -m bench.train --x"))
    service.trainer(facts(11, command="python -u eval.py"))
    for name in ("pt_main_thread", "python3", "bench.train"):
        assert chosen(service, names=(name,)) == [10]
    for name in ("eval.py", "eval"):
        assert chosen(service, names=(name,)) == [11]
    assert service.ask(names=("train.py",)).no_match_code == "no_name_or_rank"


def test_ranks_come_from_the_trainer_s_environment(service: FakeService) -> None:
    service.trainer(facts(10, RANK=0, SLURM_PROCID=9))
    service.trainer(facts(11, SLURM_PROCID=3))
    service.trainer(facts(12))
    assert chosen(service, ranks=(0, 3)) == [10, 11]
    outcome = service.ask(ranks=(9,))
    assert outcome.no_match_code == "no_name_or_rank"
    assert "rank 9" in outcome.no_match_reason


def test_the_limit_prefers_who_holds_a_gpu_then_who_has_a_rank_then_leaves(service: FakeService) -> None:
    """A08: 6 → 90 → 355 → {389, 390} with a limit must give the two workers."""
    chain: tuple[tuple[int, ...], ...] = ()
    for pid in (6, 90, 355):
        service.trainer(facts(pid, ancestors=chain))
        chain = ((pid,), *chain)
    service.trainer(facts(389, ancestors=chain, gpu=True))
    service.trainer(facts(390, ancestors=chain, gpu=True))
    outcome = service.ask(dry_run=True, process_limit=2, include_launchers=True)
    assert outcome.triggered == (389, 390)
    assert service.reasons(outcome) == {6: "limit", 90: "limit", 355: "limit"}
    assert chosen(service, process_limit=1) == [389]


def test_a_limit_of_0_means_all_and_ranks_are_taken_in_order(service: FakeService) -> None:
    for rank in (3, 1, 2, 0):
        service.trainer(facts(10 + rank, RANK=rank))
    assert chosen(service, process_limit=2) == [10, 11]
    assert sorted(chosen(service, process_limit=0)) == [10, 11, 12, 13]


def test_who_holds_a_gpu_is_looked_at_again_when_the_limit_matters(service: FakeService) -> None:
    for pid in (10, 11):
        service.trainer(facts(pid))
    service.reader.processes[11] = facts(11, gpu=True)  # opened after its first poll
    assert chosen(service, process_limit=1) == [11]


def test_a_user_traces_only_its_own_trainers(service: FakeService) -> None:
    service.trainer(facts(10), uid=1000)
    service.trainer(facts(11), uid=1001)
    assert chosen(service, USER) == [10]
    outcome = service.ask(USER, dry_run=True)
    assert service.reasons(outcome) == {}
    assert "1 matching trainers of other users were left alone" in outcome.notes
    outcome = service.ask(USER, dry_run=True, pids=(10, 11))
    assert (outcome.triggered, service.reasons(outcome)) == ((10,), {11: "forbidden"})
    outcome = service.ask(USER, pids=(11,))
    assert outcome.no_match_code == "forbidden"
    assert outcome.matched == ()
    assert chosen(service, Caller(transport=Transport.REMOTE, authenticated=True)) == [10, 11]
    assert service.ask(Caller(transport=Transport.LOOPBACK, uid=None)).no_match_code == "forbidden"


def test_an_empty_match_says_why(service: FakeService) -> None:
    """A01."""
    assert service.ask().no_match_code == "no_trainer_registered"
    service.reader.processes[80295] = facts(80295)
    outcome = service.ask(pids=(80295,))
    assert (outcome.no_match_code, outcome.request_id) == ("no_trainer_registered", "")
    assert "KINETO_USE_DAEMON=1" in outcome.no_match_reason
    assert service.ask(pids=(80296,)).no_match_code == "pid_dead"
    service.trainer(facts(10), job=5)
    outcome = service.ask(pids=(80295,), job_id=5)
    assert outcome.no_match_code == "pid_not_registered"
    assert "KINETO_USE_DAEMON=1" in outcome.no_match_reason
    assert "job 5: pid 10" in outcome.no_match_reason
    service.reader.processes[80296] = facts(80296)
    assert "pids 80295, 80296 have not registered" in service.ask(pids=(80295, 80296), job_id=5).no_match_reason
    assert service.ask(job_id=6).no_match_code == "job_not_found"


def test_a_parent_of_a_trainer_in_another_job_says_which_job(service: FakeService) -> None:
    """The pid of `timeout python train.py` is a natural thing to name."""
    service.trainer(facts(10, ancestors=((9,), (1,))), job=5)
    service.reader.processes[9] = facts(9)
    outcome = service.ask(pids=(9,))
    assert outcome.no_match_code == "job_not_found"
    assert "processes below it are registered in job 5: give it as --job-id" in outcome.no_match_reason
