"""Launchers, workers and their helpers."""

from typing import Any

import pytest

from dynolog.profiling.trainer import Trainer
from fakes.profiling import FakeService, facts

PARENT: dict[str, Any] = {"command": "python train.py"}


def family(service: FakeService, helpers: int = 2) -> None:
    """A process 10 and others that it started, which import PyTorch again; nothing says who is what."""
    service.trainer(facts(10, **PARENT))
    for pid in range(11, 11 + helpers):
        service.trainer(facts(pid, ancestors=((10,), (1,)), command="python -c spawn_main() --multiprocessing-fork"))


def chosen(service: FakeService, **request: Any) -> list[int]:
    return list(service.ask(dry_run=True, **request).triggered)


def test_a_process_that_waits_for_those_it_started_is_their_launcher(service: FakeService) -> None:
    """It used some seconds of CPU to import PyTorch, and then none."""
    family(service)
    service.clock.pass_s(30)
    service.reader.processes[10] = facts(10, cpu_s=4, **PARENT)
    assert chosen(service) == [11, 12]
    assert service.reasons(service.ask(dry_run=True)) == {10: "launcher"}


def test_a_process_that_computes_is_no_launcher_of_those_that_load_its_data(service: FakeService) -> None:
    family(service)
    service.clock.pass_s(30)
    service.reader.processes[10] = facts(10, cpu_s=25, **PARENT)
    assert chosen(service) == [10, 11, 12]
    assert chosen(service, process_limit=1) == [10]


def test_a_launcher_that_runs_for_weeks_uses_hours_of_cpu_and_stays_one(service: FakeService) -> None:
    family(service)
    service.clock.pass_s(14 * 86400)
    service.poll(10, 10)
    for pid in (11, 12):
        service.poll(pid, pid)
    service.reader.processes[10] = facts(10, cpu_s=3600, **PARENT)
    assert chosen(service) == [11, 12]


def test_cpu_time_from_before_the_first_look_does_not_count(service: FakeService) -> None:
    """A daemon that was restarted meets a launcher that once imported a great deal."""
    service.trainer(facts(10, cpu_s=500, **PARENT))
    service.trainer(facts(11, ancestors=((10,), (1,))))
    service.clock.pass_s(30)
    assert chosen(service) == [11]


def test_torchrun_stays_a_launcher_however_busy_it_is(service: FakeService) -> None:
    command = "python /opt/bin/torchrun train.py"
    service.trainer(facts(10, command=command))
    service.trainer(facts(11, ancestors=((10,),)))
    service.clock.pass_s(30)
    service.reader.processes[10] = facts(10, cpu_s=30, command=command)
    assert chosen(service, process_limit=1) == [11]


def test_a_helper_gets_a_place_after_every_process_that_trains(service: FakeService) -> None:
    for rank in range(2):
        service.trainer(facts(20 + rank, RANK=rank))
        service.trainer(facts(30 + rank, ancestors=((20 + rank,), (1,)), RANK=rank))
    assert chosen(service, process_limit=2) == [20, 21]
    assert chosen(service, process_limit=3) == [20, 21, 30]


def test_views_learn_that_it_works_by_a_second_look(service: FakeService) -> None:
    """`dyno ps` asks nobody: the registry looks once more, 20 s after others were seen below it."""
    family(service)
    assert [info.host_pid for info in service.service.trainers() if info.launcher] == [10]
    service.clock.pass_s(30)
    service.reader.processes[10] = facts(10, cpu_s=25, **PARENT)
    registry = service.desk.registry
    parent = next(trainer for trainer in registry if trainer.host_pid == 10)
    registry.look_again(parent)
    service.loop.run_until_complete(registry.inspector.wait({parent.serial}, 5))
    assert not any(info.launcher for info in service.service.trainers())


def test_a_second_look_at_one_that_has_ended_is_left_out(service: FakeService) -> None:
    family(service)
    registry = service.desk.registry
    parent = next(trainer for trainer in registry if trainer.host_pid == 10)
    service.end(10)
    reads = service.reader.reads
    registry.look_again(parent)
    service.settle()
    assert service.reader.reads == reads


def second_looks(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Host pids of those who are to be looked at once more, from now on."""
    planned: list[int] = []
    later = service.loop.call_later

    def plan(delay_s: float, call: Any, *arguments: Any) -> Any:
        planned.extend(one.host_pid for one in arguments if isinstance(one, Trainer))
        return later(delay_s, call, *arguments)

    monkeypatch.setattr(service.loop, "call_later", plan)
    return planned


def test_where_there_are_gpus_one_without_is_looked_at_once_more(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most open theirs after they have registered."""
    planned = second_looks(service, monkeypatch)
    service.desk.registry.has_gpus = False
    service.trainer(facts(10))
    assert planned == []
    service.desk.registry.has_gpus = True
    service.trainer(facts(11))
    service.trainer(facts(12, gpus=("0",)))
    registry = service.desk.registry
    registry.look_again(next(trainer for trainer in registry if trainer.host_pid == 11))
    service.loop.run_until_complete(registry.inspector.wait({trainer.serial for trainer in registry}, 5))
    assert planned == [11]
