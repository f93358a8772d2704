"""Who the trainers are: identity, arrival, departure."""

import asyncio
import gc
import threading
import tracemalloc

import pytest

from dynolog.profiling.inspector import MOST_STALLED_OF_USER, STALL_S
from dynolog.profiling.registry import SILENT_S
from fakes.profiling import FakeRoom, facts


def pids(room: FakeRoom) -> list[int]:
    return [trainer.host_pid for trainer in room.desk.registry]


def test_a_first_poll_is_answered_before_anything_is_read(room: FakeRoom) -> None:
    assert room.poll(100) == ""
    assert pids(room) == [100]


def test_two_containers_that_both_say_pid_1_are_two_trainers(room: FakeRoom) -> None:
    room.poll(500, 1)
    room.poll(600, 1)
    assert pids(room) == [500, 600]


def test_one_process_with_two_sockets_is_one_trainer(room: FakeRoom) -> None:
    room.poll(500, socket=1)
    room.clock.pass_s(1)
    room.poll(500, socket=2)
    (trainer,) = room.desk.registry
    assert trainer.polls == 2
    assert trainer.interval_ns is None  # two sockets say nothing about the interval of one


def test_the_interval_follows_the_polls_of_one_socket(room: FakeRoom) -> None:
    room.poll(500)
    room.clock.pass_s(5)
    room.poll(500)
    (trainer,) = room.desk.registry
    assert trainer.interval_ns == 5e9


def test_a_process_that_ends_leaves_at_once(room: FakeRoom) -> None:
    room.poll(500)
    room.poll(501)
    room.end(500)
    assert pids(room) == [501]
    assert set(room.processes.tokens.values()) == {501}


def test_a_reused_pid_is_a_new_trainer_even_before_the_death_was_noticed(room: FakeRoom) -> None:
    room.poll(500, job=1)
    (old,) = room.desk.registry
    room.processes.end(500)  # nobody has looked yet
    room.poll(500, job=2, socket=1)
    (new,) = room.desk.registry
    assert new is not old
    assert (new.polls, new.job.wire_id) == (1, 2)


def test_without_pidfds_the_start_time_tells_a_reused_pid(room: FakeRoom) -> None:
    room.processes.forbidden = True
    room.reader.processes[500] = facts(500, start=1)
    room.poll(500)
    room.settle()
    (old,) = room.desk.registry
    room.poll(500, socket=1)
    assert list(room.desk.registry) == [old]
    room.reader.processes[500] = facts(500, start=2)
    room.poll(500, socket=2)
    (new,) = room.desk.registry
    assert new is not old
    assert any("pidfd_open" in notice for notice in room.desk.registry.notices)


def test_a_process_that_has_ended_already_does_not_register(room: FakeRoom) -> None:
    room.processes.missing.add(500)
    assert room.poll(500) == ""
    assert pids(room) == []


def test_one_that_does_not_poll_for_60_s_leaves_and_not_before(room: FakeRoom) -> None:
    room.poll(500)
    room.clock.pass_s(SILENT_S - 1)
    room.poll(501)
    room.desk.registry.sweep()
    assert pids(room) == [500, 501]
    room.clock.pass_s(1)
    room.desk.registry.sweep()
    assert pids(room) == [501]
    assert room.poll(500) == ""
    assert pids(room) == [501, 500]


def test_a_sender_whose_pid_is_hidden_is_known_by_its_address_and_uid(room: FakeRoom) -> None:
    room.poll(1, host_pid=0, socket=1)
    room.poll(1, host_pid=0, socket=2)
    room.poll(1, host_pid=0, socket=2, uid=7)
    room.poll(1, host_pid=0, socket=2)
    assert [(trainer.verified, trainer.uid, trainer.polls) for trainer in room.desk.registry] == [
        (False, 0, 1),
        (False, 0, 2),
        (False, 7, 1),
    ]
    room.fall_silent()
    assert pids(room) == []


def test_hidden_senders_cannot_fill_memory(room: FakeRoom) -> None:
    for socket in range(5000):
        room.poll(1, host_pid=0, socket=socket)
    assert len(room.desk.registry) == 4096
    assert any("unverified" in notice for notice in room.desk.registry.notices)


def test_a_registration_answers_how_many_share_the_gpu_and_job(room: FakeRoom) -> None:
    assert room.register(1, gpu=0, job=5) == 1
    assert room.register(2, gpu=0, job=5) == 2
    assert room.register(3, gpu=0, job=6) == 1
    assert room.register(4, gpu=1, job=5) == 1
    assert room.register(2, gpu=0, job=5) == 2
    room.poll(2, job=9)  # a poll that says another job moves nobody between GPUs
    room.end(2)
    assert room.register(1, gpu=0, job=5) == 1


def test_a_claimed_pid_is_believed_only_where_the_kernel_agrees(room: FakeRoom) -> None:
    room.reader.processes = {500: facts(500, inner=(7,)), 501: facts(501, inner=(8,)), 502: facts(502)}
    room.poll(500, 7)
    room.poll(501, 7)
    room.poll(502, 7)
    room.settle()
    assert [trainer.pid for trainer in room.desk.registry] == [7, 8, 502]


def test_details_come_from_the_process_and_only_the_needed_ones(room: FakeRoom) -> None:
    room.reader.processes[500] = facts(
        500,
        command="/usr/bin/python3 -u -W ignore train.py --lr 1",
        RANK=3,
        LOCAL_RANK=1,
        SLURM_NTASKS=8,
        SLURM_PROCID=9,
        SLURM_ARRAY_JOB_ID=90210,
        SLURM_ARRAY_TASK_ID=2,
    )
    room.poll(500, job=90213)
    room.settle()
    (trainer,) = room.desk.registry
    info = trainer.info(room.clock.now_ns)
    assert (info.rank, info.local_rank, info.world_size, info.job, info.job_id) == (3, 1, 8, "90210_2", 90213)
    assert trainer.details is not None
    assert {"python3", "train.py", "train"} <= set(trainer.details.names)


def test_a_look_that_hangs_costs_only_the_details_of_that_process(room: FakeRoom) -> None:
    held = threading.Event()
    reading = threading.Event()

    def hang(pid: int) -> None:
        if pid == 500:
            reading.set()
            held.wait(10)

    room.reader.hang = hang
    room.reader.processes = {500: facts(500), 501: facts(501)}
    room.poll(500)
    assert reading.wait(5)
    assert room.poll(501) == ""
    room.clock.pass_s(STALL_S)
    room.desk.registry.inspector.look_for_stall()
    room.settle()
    first, second = room.desk.registry
    assert (first.details, second.details is not None) == (None, True)
    assert any("/proc/500" in notice for notice in room.desk.registry.notices)
    # Nobody waits for it, and it is not looked at again as long as it hangs.
    inspector = room.desk.registry.inspector
    inspector.ask(first.serial, 500, 0)
    room.loop.run_until_complete(asyncio.wait_for(inspector.wait({first.serial}, 60), 5))
    held.set()
    room.loop.run_until_complete(room.desk.registry.inspector.wait((), 0))
    while first.details is None:
        room.loop.run_until_complete(_turn())
    assert room.desk.registry.notices == ()


def test_a_user_whose_processes_hang_takes_the_looks_of_no_other(room: FakeRoom) -> None:
    """A process can put its arguments where reading them never returns, and have as many children as it likes."""
    hanging = range(600, 600 + 2 * MOST_STALLED_OF_USER)
    held = threading.Event()
    reading: set[int] = set()
    changed = threading.Condition()

    def hang(pid: int) -> None:
        if pid in hanging:
            with changed:
                reading.add(pid)
                changed.notify_all()
            held.wait(10)

    room.reader.hang = hang
    room.reader.processes = {pid: facts(pid) for pid in (*hanging, 500)}
    inspector = room.desk.registry.inspector
    for pid in hanging:
        room.poll(pid, uid=1000)
    room.poll(500, uid=2000)
    for count in range(1, MOST_STALLED_OF_USER + 1):
        with changed:
            assert changed.wait_for(lambda count=count: len(reading) == count, 5)  # type: ignore[misc]
        room.clock.pass_s(STALL_S)
        inspector.look_for_stall()
    room.settle()
    honest = next(trainer for trainer in room.desk.registry if trainer.host_pid == 500)
    assert honest.details is not None
    assert len(reading) == MOST_STALLED_OF_USER
    assert all(trainer.inspected for trainer in room.desk.registry), "nobody waits for the others"
    assert any("of the same user hang" in notice for notice in room.desk.registry.notices)
    held.set()


async def _turn() -> None:
    return None


def test_a_process_that_cannot_be_read_stays_a_trainer(room: FakeRoom) -> None:
    room.poll(500)
    room.settle()
    (trainer,) = room.desk.registry
    assert trainer.inspected
    assert trainer.pid == 500


def test_trainers_take_2_kb_each_and_give_it_back(room: FakeRoom) -> None:
    count = 1000
    command = "python train.py " + " ".join(f"--option-{number} value" for number in range(20))

    def register(first: int) -> None:
        for pid in range(first, first + count):
            ancestors = tuple((pid % 50 + 1000 + depth,) for depth in range(8))
            room.reader.processes[pid] = facts(
                pid, ancestors=ancestors, command=command, RANK=pid, SLURM_JOB_ID=90210, SLURM_STEP_ID=0
            )
            room.poll(pid, pid, *(chain[0] for chain in ancestors), job=90210)
        room.settle()
        room.reader.processes.clear()

    def leave(first: int) -> None:
        for pid in range(first, first + count):
            room.end(pid)

    tracemalloc.start()
    try:
        empty = tracemalloc.get_traced_memory()[0]
        register(100_000)
        each = (tracemalloc.get_traced_memory()[0] - empty) / count
        leave(100_000)
        register(200_000)
        leave(200_000)
        # Tables keep the size of the largest crowd, so what is left must not grow with the next one.
        gc.collect()  # what hangs in cycles goes when the collector runs, which may be before one look and after the other
        once = tracemalloc.get_traced_memory()[0]
        register(300_000)
        leave(300_000)
        gc.collect()
        left = (tracemalloc.get_traced_memory()[0] - once) / count
        assert len(room.desk.registry) == 0
    finally:
        tracemalloc.stop()
    assert each <= 2048, f"{each:.0f} bytes each"
    assert left <= 50, f"{left:.0f} bytes left of each"


@pytest.mark.parametrize("mask", [0, 1, 2, 3])
def test_ready_is_the_activities_bit(room: FakeRoom, mask: int) -> None:
    room.poll(500, mask=mask)
    (trainer,) = room.desk.registry
    assert trainer.ready == bool(mask & 2)
