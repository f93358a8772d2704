"""Trace requests end to end on fakes: arming, delivery, following, handing out."""

import asyncio
import os
from typing import Any

import msgspec
import pytest

from dynolog.model.capture import CaptureState
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import Caller, TraceOutcome, Transport
from dynolog.model.trainer import TrainerState
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.profiling.observations import Checked, FinalSeen, NothingThere, TemporarySeen
from dynolog.profiling.request_log import MOST_FINISHED
from fakes.profiling import CONFIG, FILE, ITERATIONS, FakeService, facts

USER = Caller(transport=Transport.UNIX, uid=1000)
OTHER = Caller(transport=Transport.UNIX, uid=1001)


def states(service: FakeService, outcome: TraceOutcome) -> list[CaptureState]:
    (progress,) = service.service.progress(outcome.request_id)
    return [capture.state for capture in progress.captures]


def refusal(service: FakeService, **request: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        service.ask(**request)
    return caught.value


def test_a_request_goes_from_pending_to_written(service: FakeService) -> None:
    service.trainer(facts(10, RANK=2), job=5)
    outcome = service.ask(job_id=5)
    assert outcome.triggered == (10,)
    (capture,) = outcome.captures
    assert (capture.path, capture.rank, capture.job, capture.state) == ("/tmp/t_10.json", 2, "5", CaptureState.PENDING)
    text = service.poll(10, job=5)
    assert text is not None
    assert text.startswith(CONFIG)
    assert f"REQUEST_TRACE_ID={capture.id}\n" in text
    assert service.watch.watched[capture.id] == (10, ("/tmp/t_10.json", "/tmp/libkineto_activities_10.json"))
    assert service.poll(10, job=5) == ""
    service.poll(10, job=5, mask=1)
    assert service.service.trainers()[0].state is TrainerState.BUSY
    service.watch.report(capture.id, FinalSeen(capture.path, capture.path, 900))
    service.watch.report(capture.id, Checked(FILE, capture.path, capture.path))
    (progress,) = service.service.progress(outcome.request_id)
    assert progress.done
    assert [step.state for step in progress.captures[0].history] == [
        CaptureState.PENDING,
        CaptureState.DELIVERED,
        CaptureState.RECORDING,
        CaptureState.WRITTEN,
    ]


def test_a_second_request_is_told_who_is_busy_and_since_when(service: FakeService) -> None:
    service.trainer(facts(10), uid=1000)
    first = service.ask(USER)
    service.clock.pass_s(42)
    second = service.ask()
    assert (second.busy, second.matched, second.triggered, second.request_id) == (1, (10,), (), "")
    assert second.not_traced[0].code == "busy"
    assert "uid 1000, 42 s ago, is still pending" in second.not_traced[0].error
    service.poll(10, uid=1000)
    assert "delivered" in service.ask().not_traced[0].error
    service.end(10)
    service.watch.report(first.captures[0].id, NothingThere())
    service.trainer(facts(10), uid=1000, socket=1)
    assert service.ask().triggered == (10,)


def test_two_requests_at_once_arm_only_one(service: FakeService) -> None:
    """The check of the path takes a while; whoever is armed meanwhile wins."""
    service.trainer(facts(10))
    service.meanwhile = lambda: arm_behind_its_back(service)
    outcome = service.ask()
    assert (outcome.triggered, outcome.busy) == ((), 1)


def arm_behind_its_back(service: FakeService) -> None:
    (trainer,) = service.desk.registry
    service.desk.arm(
        service.desk.new_request(), trainer, "/tmp/t.json", KinetoConfig.parse(CONFIG), asked_by="uid 5", expected_s=1.0
    )


def test_a_trainer_that_ends_during_the_check_is_said_to_be_gone(service: FakeService) -> None:
    service.trainer(facts(10))
    service.meanwhile = lambda: service.end(10)
    assert service.reasons(service.ask()) == {10: "gone"}


def test_a_path_that_cannot_work_is_refused_for_that_trainer_only(service: FakeService) -> None:
    service.trainer(facts(10, KINETO_ONDEMAND_TRACE_DIR="/traces"), uid=1000)
    service.trainer(msgspec.structs.replace(facts(11), file_view="mnt:[1] 24 /"))
    service.refusals[10] = "outside /traces"
    outcome = service.ask()
    assert outcome.triggered == (11,)
    assert [(entry.code, entry.error) for entry in outcome.not_traced] == [("path", "outside /traces")]
    assert service.destinations[0].trace_dir == "/traces"
    assert service.destinations[0].uid == 1000
    assert [destination.view for destination in service.destinations] == ["", "mnt:[1] 24 /"]


def test_the_group_of_a_request_is_told_with_its_progress(service: FakeService) -> None:
    service.trainer(facts(10))
    outcome = service.ask(config=CONFIG + "REQUEST_GROUP_TRACE_ID=g7\n")
    (progress,) = service.service.progress(outcome.request_id)
    assert progress.group_id == "g7"


def test_a_config_that_cannot_work_is_refused_at_once(service: FakeService) -> None:
    service.trainer(facts(10))
    assert refusal(service, config="ACTIVITIES_LOG_FILE=t.json\n").code == "bad_config"
    assert refusal(service, job="x").code == "bad_request"
    assert refusal(service, pids=tuple(range(1, 20000))).code == "bad_request"


@pytest.mark.parametrize("ahead_s", [-100, -1, 0, 5, 10])
def test_a_start_time_that_is_past_or_too_soon_gets_a_proposal_that_works(service: FakeService, ahead_s: int) -> None:
    service.trainer(facts(10))
    start_ms = service.clock.wall_ns() // 10**6 + ahead_s * 1000
    error = refusal(service, config=CONFIG.replace("TIME=0", f"TIME={start_ms}"))
    assert error.code == "start_time"
    proposed = error.sentence.partition("use ")[2].split()[0]
    assert service.ask(config=CONFIG.replace("TIME=0", f"TIME={proposed}")).triggered == (10,)


def test_a_start_time_that_passed_before_the_poll_expires_the_capture_at_that_poll(service: FakeService) -> None:
    service.trainer(facts(10))
    start_ms = service.clock.wall_ns() // 10**6 + 20_000
    outcome = service.ask(config=CONFIG.replace("TIME=0", f"TIME={start_ms}"))
    service.clock.pass_s(30)
    assert states(service, outcome) == [CaptureState.PENDING]
    assert service.poll(10) == ""
    assert states(service, outcome) == [CaptureState.EXPIRED]


def test_a_dry_run_triggers_nothing(service: FakeService) -> None:
    service.trainer(facts(10))
    outcome = service.ask(dry_run=True)
    assert (outcome.triggered, outcome.request_id, outcome.captures) == ((10,), "", ())
    assert service.poll(10) == ""
    assert service.service.progress("") == ()


def test_a_request_may_have_a_file_for_each_process(service: FakeService) -> None:
    """Names with ranks, by host pid; the others write the config's file. What is no file is refused as a whole."""
    service.trainer(facts(10))
    service.trainer(facts(11))
    outcome = service.ask(log_files={10: "/tmp/gpu1_rank0.json", 99: "/tmp/other.json"})
    assert [capture.path for capture in outcome.captures] == ["/tmp/gpu1_rank0_10.json", "/tmp/t_11.json"]
    assert "ACTIVITIES_LOG_FILE=/tmp/gpu1_rank0.json\n" in (service.poll(10) or "")
    assert "ACTIVITIES_LOG_FILE=/tmp/t.json\n" in (service.poll(11) or "")
    service.trainer(facts(12))
    assert refusal(service, log_files={12: "/tmp/a.json\nPROFILE_START_TIME=1"}).code == "bad_config"
    assert refusal(service, log_files={12: "relative.json"}).code == "bad_config"


def test_how_long_it_takes_is_said_from_what_was_seen(service: FakeService) -> None:
    service.trainer(facts(10))
    service.clock.pass_s(5)
    service.poll(10)
    service.clock.pass_s(2)
    outcome = service.ask(dry_run=True)
    assert outcome.expected_s == pytest.approx(3 + 1 + 5 + 0.5 + 1)
    text = " ".join(outcome.notes)
    assert "poll every 5.0 s" in text
    assert "KINETO_CONFIG" in text
    assert "--warmup-s 0" in text
    outcome = service.ask(config=CONFIG + "ACTIVITIES_WARMUP_PERIOD_SECS=0\n", dry_run=True)
    assert outcome.expected_s == pytest.approx(3 + 1 + 0.5 + 1)
    assert "--warmup-s" not in " ".join(outcome.notes)


def test_iterations_say_that_ranks_may_start_apart(service: FakeService) -> None:
    for pid in (10, 11):
        service.trainer(facts(pid))
    notes = " ".join(service.ask(config=ITERATIONS, dry_run=True).notes)
    assert "multiple of 10" in notes
    assert "not all were seen polling twice" in notes


def test_iterations_are_not_said_to_wait_for_anything_but_the_next_poll(service: FakeService) -> None:
    service.trainer(facts(10))
    service.clock.pass_s(2)
    service.poll(10)
    service.clock.pass_s(0.5)
    (said,) = [note for note in service.ask(config=ITERATIONS, dry_run=True).notes if "recording begins" in note]
    assert "an iteration after the next poll, which comes within 1.5 s (they poll every 2.0 s)" in said
    assert "at the earliest" not in said
    assert "after 3 iterations" in said


def test_a_lost_reply_is_sent_again(service: FakeService) -> None:
    service.trainer(facts(10))
    outcome = service.ask()
    text = service.poll(10)
    assert text
    service.lose_reply(10)
    assert states(service, outcome) == [CaptureState.PENDING]
    assert service.watch.watched == {}
    assert service.poll(10) == text


def test_the_config_goes_to_the_socket_that_asks(service: FakeService) -> None:
    service.trainer(facts(10))
    service.ask()
    assert service.poll(10, socket=5)
    assert service.poll(10) == ""


def test_a_config_is_not_given_to_another_uid_of_that_pid(service: FakeService) -> None:
    service.trainer(facts(10), uid=1000)
    outcome = service.ask(USER)
    assert service.poll(10, uid=1001) == ""
    assert states(service, outcome) == [CaptureState.FAILED]


def test_a_death_is_followed_by_a_last_look(service: FakeService) -> None:
    service.trainer(facts(10))
    outcome = service.ask()
    service.poll(10)
    service.poll(10, mask=1)
    capture_id = outcome.captures[0].id
    service.watch.report(capture_id, TemporarySeen(77))
    service.end(10)
    assert states(service, outcome) == [CaptureState.RECORDING]
    assert service.watch.last_looks == [capture_id]
    service.watch.report(capture_id, NothingThere())
    (progress,) = service.service.progress(outcome.request_id)
    assert progress.captures[0].reason == (
        "the process 10 ended while recording, and left no complete file (a temporary file of 77 bytes was left)"
    )
    assert service.watch.watched == {}


def test_a_silent_trainer_keeps_a_delivered_capture_until_its_process_ends(service: FakeService) -> None:
    for pid in (10, 11):
        service.trainer(facts(pid))
    outcome = service.ask()
    service.poll(10)
    service.fall_silent()
    assert states(service, outcome) == [CaptureState.DELIVERED, CaptureState.EXPIRED]
    assert [info.host_pid for info in service.service.trainers()] == [10]
    service.end(10)
    service.watch.report(outcome.captures[0].id, NothingThere())
    assert states(service, outcome)[0] is CaptureState.FAILED


def test_waiting_returns_at_the_next_change_and_at_once_when_done(service: FakeService) -> None:
    service.trainer(facts(10))
    outcome = service.ask()
    waiting = service.loop.create_task(service.service.wait(outcome.request_id, 0, 60))
    service.loop.run_until_complete(asyncio.sleep(0))
    assert not waiting.done()
    service.poll(10)
    progress = service.loop.run_until_complete(waiting)
    assert (progress.version, progress.captures[0].state, progress.done) == (1, CaptureState.DELIVERED, False)
    again = service.loop.run_until_complete(service.service.wait(outcome.request_id, progress.version, 0.0))
    assert again.version == progress.version
    service.watch.report(outcome.captures[0].id, Checked(FILE, "/tmp/t_10.json", ""))
    done = service.loop.run_until_complete(service.service.wait(outcome.request_id, 99, 60))
    assert done.done


def test_changes_of_a_crowd_are_told_together(service: FakeService) -> None:
    pids = range(100, 200)
    for pid in pids:
        service.trainer(facts(pid))
    outcome = service.ask()
    waiting = service.loop.create_task(service.service.wait(outcome.request_id, 0, 60))
    service.loop.run_until_complete(asyncio.sleep(0))
    for pid in pids:
        service.poll(pid)
        service.loop.run_until_complete(asyncio.sleep(0))
    assert service.loop.run_until_complete(waiting).version == len(pids)


def test_a_job_whose_trainers_have_several_users_is_warned_of(service: FakeService) -> None:
    service.trainer(facts(10), uid=1000, job=5)
    service.trainer(facts(11), uid=1001, job=5)
    outcome = service.ask(job_id=5)
    assert any("several users (uids 1000, 1001)" in note for note in outcome.notes)
    assert len(outcome.warnings) == 1  # the note on when the files are there is none


def test_closing_lets_waiters_go(service: FakeService) -> None:
    service.trainer(facts(10))
    outcome = service.ask()
    waiting = service.loop.create_task(service.service.wait(outcome.request_id, 0, 60))
    service.loop.run_until_complete(asyncio.sleep(0))
    service.desk.log.request(outcome.request_id).release()
    assert not service.loop.run_until_complete(waiting).done


def test_an_unknown_request_is_not_found(service: FakeService) -> None:
    with pytest.raises(RequestError) as caught:
        service.service.progress("nope")
    assert caught.value.code == "not_found"


def written(service: FakeService) -> str:
    service.trainer(facts(10), uid=1000)
    capture_id = service.ask(USER).captures[0].id
    service.poll(10, uid=1000)
    service.watch.report(capture_id, Checked(FILE, "/tmp/t_10.json", ""))
    return capture_id


def test_a_trace_that_replaces_an_earlier_one_is_warned_of(service: FakeService) -> None:
    """The name has the pid of the process, so that only a second trace of it has the same."""
    written(service)
    assert service.ask(USER, dry_run=True).warnings == (
        "/tmp/t_10.json: the earlier trace of that name is replaced: choose another --log-file to keep it",
    )
    service.trainer(facts(11), uid=1000)
    (warning,) = service.ask(USER).warnings
    assert "/tmp/t_11.json" not in warning


def test_a_written_trace_is_opened_for_its_owner(service: FakeService) -> None:
    capture_id = written(service)
    found = service.loop.run_until_complete(service.service.open_written(capture_id, USER))
    os.close(found.fd)
    assert (found.size_bytes, found.sha256, found.capture.id) == (FILE.size_bytes, FILE.sha256, capture_id)


def open_code(service: FakeService, capture_id: str, caller: Caller) -> str:
    with pytest.raises(RequestError) as caught:
        service.loop.run_until_complete(service.service.open_written(capture_id, caller))
    return caught.value.code


def test_a_trace_is_not_opened_for_others_or_before_it_is_written(service: FakeService) -> None:
    capture_id = written(service)
    assert open_code(service, capture_id, OTHER) == "forbidden"
    assert open_code(service, "nope", USER) == "not_found"
    service.watch.open_error = FileNotFoundError(2, "No such file or directory")
    assert open_code(service, capture_id, USER) == "not_found"
    service.trainer(facts(11), uid=1000)
    pending = service.ask(USER, pids=(11,)).captures[0].id
    assert open_code(service, pending, USER) == "not_written"


def test_old_finished_requests_are_forgotten_and_active_ones_never(service: FakeService) -> None:
    service.trainer(facts(9))
    active = service.ask(pids=(9,))
    service.trainer(facts(10), socket=0)
    first = service.ask(pids=(10,))
    service.end(10)
    for number in range(MOST_FINISHED):
        service.poll(10, socket=number + 1)
        service.ask(pids=(10,))
        service.end(10)
    assert states(service, active) == [CaptureState.PENDING]
    assert len(service.service.progress("")) == MOST_FINISHED + 1
    with pytest.raises(RequestError):
        service.service.progress(first.request_id)


def test_iterations_that_never_began_make_room_for_a_new_request(service: FakeService) -> None:
    service.trainer(facts(10))
    first = service.ask(config=ITERATIONS)
    for _ in range(5):
        service.poll(10)
    assert service.ask(config=ITERATIONS).busy == 1
    for _ in range(10):
        service.poll(10)
    second = service.ask()
    assert second.triggered == (10,)
    assert states(service, first) == [CaptureState.FAILED]
    assert service.poll(10)


def test_two_containers_that_write_the_same_name_are_warned_of(service: FakeService) -> None:
    service.trainer(facts(500, inner=(1,), namespace=8), 1)
    service.trainer(facts(600, inner=(1,), namespace=9), 1)
    outcome = service.ask()
    assert outcome.triggered == (1, 1)
    assert any("several containers write /tmp/t_1.json" in note for note in outcome.notes)


def test_a_memory_snapshot_without_a_gpu_is_warned_of(service: FakeService) -> None:
    """A15: on a PyTorch for the CPU it leaves an empty file, and the process stays busy for ever. A GPU may be opened late."""
    memory = CONFIG + "PROFILE_MEMORY=true\nPROFILE_MEMORY_DURATION_MSECS=500\n"
    for pid in (10, 11):
        service.trainer(facts(pid))
    service.reader.processes[11] = facts(11, gpu=True)
    (said,) = [note for note in service.ask(config=memory, dry_run=True).notes if "no GPU open" in note]
    assert said.startswith("pids 10 have")
    assert not [note for note in service.ask(dry_run=True).notes if "GPU" in note]


def test_4000_trainers_are_triggered_at_once(service: FakeService) -> None:
    for pid in range(10_000, 14_000):
        service.reader.processes[pid] = facts(pid, ancestors=((40,), (4,), (1,)), RANK=pid - 10_000)
        service.poll(pid, pid, 40, 4, 1, job=5)
    service.settle()
    # What it costs is measured by the benchmarks.
    assert len(service.ask(job_id=5, process_limit=0).captures) == 4000
