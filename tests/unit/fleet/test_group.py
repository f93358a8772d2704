"""A trace of several hosts against real RPC servers on scripted services: survey, plan, trigger, follow, manifest."""

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.fleet.fan_out import FanOutOptions
from dynolog.fleet.follow import follow_hosts
from dynolog.fleet.manifest import HostEntry, Manifest, ManifestFile, ProcessEntry, read_manifest
from dynolog.fleet.manifest_place import manifest_path
from dynolog.fleet.naming import name_template
from dynolog.fleet.plan import Choice, Plan, labelled, make_plan, manifest_of, requests_of
from dynolog.fleet.survey import Survey, survey_hosts
from dynolog.fleet.targets import FleetTarget, HostsError
from dynolog.fleet.trigger import trigger
from dynolog.model.capture import CaptureState, TraceFile, Transition
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import NotTraced, TraceOutcome
from dynolog.rpc.messages import SetKinetOnDemandRequest
from fakes.framed_server import frame, framed_server, original_daemon
from fakes.rpc_daemon import running_daemon, running_server
from fakes.services import FakeServices, capture, trainer

CONFIG = "ACTIVITIES_LOG_FILE=/t/all.json\nACTIVITIES_DURATION_MSECS=5"
REQUEST = SetKinetOnDemandRequest(config=CONFIG, job_id=7)
OPTIONS = FanOutOptions(timeout_s=2)
NAMES = name_template("/t")
FILE = TraceFile(size_bytes=900, sha256="ab", events=3, duration_us=5.0)


def silence(_: object) -> None:
    """Longer than anybody waits here."""
    threading.Event().wait(1.0)


def target(port: int, label: str) -> FleetTarget:
    return FleetTarget(host="127.0.0.1", port=port, label=label)


def survey(*targets: FleetTarget) -> list[Survey]:
    return survey_hosts(targets, REQUEST, NAMES, OPTIONS)


@contextlib.contextmanager
def two_ranks(**outcome: object) -> Iterator[tuple[FakeServices, int]]:
    """A daemon with ranks 0 and 1 of job 7, which says what `outcome` says."""
    services = FakeServices()
    services.traces.registered = (
        trainer(11, rank=1, job="7", job_id=7, world_size=4, poll_interval_s=2.0),
        trainer(10, rank=0, job="7", job_id=7, world_size=4, poll_interval_s=1.0),
    )
    services.traces.outcome = TraceOutcome(**({"matched": (10, 11), "triggered": (10, 11)} | outcome))  # type: ignore[arg-type]
    with running_daemon(services) as port:
        yield services, port


def manifest_for(plan: Plan) -> Manifest:
    return manifest_of(plan, group_id="g1", job="7", config=CONFIG, originals_reason="it is original")


def test_phase_one_says_what_would_be_traced_and_triggers_nothing() -> None:
    with two_ranks() as (services, port):
        (found,) = survey(target(port, "a"))
    assert [candidate.trainer.rank for candidate in found.candidates] == [0, 1]
    assert [candidate.log_file for candidate in found.candidates] == ["/t/7/a_rank0.json", "/t/7/a_rank1.json"]
    assert found.slowest_poll_s == 2.0
    assert found.offset is not None
    ((request, _),) = services.traces.requests
    assert request.dry_run
    assert request.log_files == {10: "/t/7/a_rank0.json", 11: "/t/7/a_rank1.json"}  # checked as they will be written


def test_an_original_daemon_is_never_sent_a_dry_run_which_it_would_carry_out() -> None:
    with framed_server(original_daemon([44])) as original:
        (found,) = survey(target(original.port, "o"))
    assert found.original
    assert found.can_start
    assert [request["fn"] for request in original.requests] == ["getStatus"]


def test_a_host_that_was_silent_in_phase_one_is_not_asked_again() -> None:
    with framed_server(silence) as mute:
        surveys = survey_hosts([target(mute.port, "m")], REQUEST, NAMES, FanOutOptions(timeout_s=0.3))
        plan = make_plan(surveys, Choice())
        assert requests_of(plan, REQUEST, lambda _: CONFIG) == {}
        assert len(mute.requests) <= 1
    assert manifest_for(plan).hosts[0].outcome == "silent"


def test_two_containers_with_one_pid_are_told_apart_by_the_hosts() -> None:
    services = FakeServices()
    services.traces.registered = (
        trainer(1, host_pid=501, job="7", job_id=7, rank=0),
        trainer(1, host_pid=502, job="7", job_id=7, rank=1),
        trainer(1, host_pid=503, job="8", job_id=8, rank=0),
        trainer(1, host_pid=504, job="7", job_id=7, rank=2),
    )
    services.traces.outcome = TraceOutcome(
        matched=(1, 1, 1), triggered=(1, 1), not_traced=(NotTraced(pid=1, host_pid=501, code="busy", error="busy"),)
    )
    with running_daemon(services) as port:
        (found,) = survey(target(port, "a"))
    assert [candidate.trainer.host_pid for candidate in found.candidates] == [502, 504]


def test_a_clock_that_was_measured_in_a_crowd_is_measured_again_and_the_better_one_counts() -> None:
    waits = iter((0.1, 0.0))

    def handle(request: dict[str, Any]) -> bytes | None:
        match request["fn"]:
            case "getStatus":
                threading.Event().wait(next(waits))
                return frame({"status": 1, "wall_ns": time.time_ns()})
            case "listProcesses":
                return frame({"ipc_enabled": True, "trainers": [], "wall_ns": 1})
            case _:
                return original_daemon([])(request)

    with framed_server(handle) as server:
        (found,) = survey(target(server.port, "a"))
    assert found.offset is not None
    assert found.offset.uncertainty_ns < 45_000_000
    assert [request["fn"] for request in server.requests][-1] == "getStatus"


def test_phase_two_asks_for_exactly_the_chosen_each_with_its_file() -> None:
    with two_ranks() as (services, port), framed_server(original_daemon([44])) as original:
        plan = make_plan(survey(target(port, "a"), target(original.port, "o")), Choice())
        manifest = manifest_for(plan)
        services.traces.outcome = TraceOutcome(
            request_id="r1",
            matched=(10, 11),
            triggered=(10,),
            captures=(capture(10, rank=0),),
            not_traced=(NotTraced(pid=11, host_pid=11, code="path", error="the disk is full"),),
        )
        trigger(manifest, requests_of(plan, REQUEST, lambda one: f"{CONFIG}\n#{one.target.name}"), OPTIONS)
    request, _ = services.traces.requests[-1]
    assert (request.pids, request.dry_run, request.job_id) == ((10, 11), False, 7)
    assert request.config.endswith("#a")
    assert request.log_files == {10: "/t/7/a_rank0.json", 11: "/t/7/a_rank1.json"}
    assert original.requests[-1]["config"].endswith("#o")
    first, second, third = manifest.processes
    assert (first.outcome, first.capture_id, first.world_size) == ("pending", "c10", 4)
    assert (second.outcome, second.reason) == ("not_traced", "the disk is full")
    assert (third.host, third.pid, third.outcome) == ("o", 44, "unknown")
    assert "cannot tell" in third.reason


def test_a_choice_leaves_original_daemons_out_because_they_would_trace_all() -> None:
    with two_ranks() as (_, port), framed_server(original_daemon([44])) as original:
        surveys = survey(target(port, "a"), target(original.port, "o"))
        plan = make_plan(surveys, Choice(one_per_host=True))
    assert list(requests_of(plan, REQUEST, lambda _: CONFIG)) == ["a"]
    manifest = manifest_for(plan)
    assert manifest.hosts[1].error == "it is original"
    assert [process.rank for process in manifest.processes] == [0]


@pytest.mark.parametrize(
    ("answers", "outcome", "words"),
    [
        (RequestError("busy", "too many requests"), "not_traced", "too many requests"),
        (TraceOutcome(no_match_reason="they have all ended"), "not_traced", "they have all ended"),
    ],
)
def test_what_phase_two_refuses_is_said_of_each_process(
    answers: TraceOutcome | Exception, outcome: str, words: str
) -> None:
    with two_ranks() as (services, port):
        plan = make_plan(survey(target(port, "a")), Choice())
        manifest = manifest_for(plan)
        services.traces.outcome = answers
        trigger(manifest, requests_of(plan, REQUEST, lambda _: CONFIG), OPTIONS)
    assert [(process.outcome, process.reason) for process in manifest.processes] == [(outcome, words)] * 2


def test_a_daemon_that_does_not_acknowledge_may_be_tracing() -> None:
    """Silence after the request was sent is not a refusal."""
    manifest = asked("x")
    manifest.processes[0].outcome = "planned"
    with framed_server(silence) as mute:
        manifest.hosts[0].port = mute.port
        trigger(manifest, {"x": REQUEST}, FanOutOptions(timeout_s=0.2))
    assert manifest.processes[0].outcome == "unknown"
    assert "may be tracing" in manifest.processes[0].reason


def test_ctrl_c_in_phase_two_keeps_what_was_acknowledged() -> None:
    """The manifest then says of the others that they were asked, and no more."""
    manifest = asked("a", request_id="")
    manifest.hosts.append(HostEntry(host="127.0.0.1", label="m"))
    manifest.processes = [
        ProcessEntry(host="a", pid=10, host_pid=10),
        ProcessEntry(host="a", pid=11, host_pid=11, outcome="not_traced", reason="busy"),
        ProcessEntry(host="m", pid=10, host_pid=10),
    ]
    services = FakeServices()
    services.traces.outcome = TraceOutcome(request_id="r1", matched=(10,), triggered=(10,), captures=(capture(10),))

    def press_ctrl_c(_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.5)

    with running_daemon(services) as port, framed_server(press_ctrl_c) as mute:
        manifest.hosts[0].port, manifest.hosts[1].port = port, mute.port
        with pytest.raises(KeyboardInterrupt):
            # One at a time, so that the first has answered before the second interrupts.
            trigger(manifest, {"a": REQUEST, "m": REQUEST}, FanOutOptions(timeout_s=5, fanout=1))
    assert [host.request_id for host in manifest.hosts] == ["r1", ""]
    assert [process.outcome for process in manifest.processes] == ["pending", "not_traced", "asked"]


# --- following ---------------------------------------------------------------------------------------------------------


def asked(label: str, port: int = 1, request_id: str = "r1") -> Manifest:
    host = HostEntry(host="127.0.0.1", port=port, label=label, request_id=request_id)
    process = ProcessEntry(host=label, pid=10, host_pid=10, rank=0, outcome="pending", capture_id="c10")
    return Manifest(group_id="g1", hosts=[host], processes=[process])


def test_each_change_is_seen_and_the_end_has_all_facts() -> None:
    services = FakeServices()
    services.traces.publish(capture(10))
    seen: list[str] = []
    with running_server(services) as server:
        manifest = asked("a", server.server.port)

        def changed() -> None:
            seen.append(manifest.processes[0].outcome)
            if seen[-1] == "pending":
                server.run(services.traces.publish, capture(10, state=CaptureState.RECORDING))
            elif seen[-1] == "recording":
                history = (Transition(CaptureState.WRITTEN, 123, "seen"),)
                server.run(
                    services.traces.publish,
                    capture(10, state=CaptureState.WRITTEN, file=FILE, history=history, path="/t/x"),
                )

        # What the callback asks of the server's thread needs that thread, not this one.
        follow_hosts(manifest, OPTIONS, changed)
    (process,) = manifest.processes
    assert seen == ["pending", "recording", "written"]
    assert (process.size_bytes, process.sha256, process.events, process.path) == (900, "ab", 3, "/t/x")
    assert process.times == {"written": 123}
    assert process.is_good


def test_what_was_not_written_at_once_is_written_a_moment_later(tmp_path: Path) -> None:
    """Nothing more changes after the last change, and the file must still come to say it."""
    services = FakeServices()
    services.traces.publish(capture(10))
    with running_server(services) as server:
        file = ManifestFile(asked("a", server.server.port), str(tmp_path / "m"), every_s=0.1)
        file.save()  # so that the next is too early
        written: list[str] = []

        def tick() -> None:
            file.settle()
            written.append(read_manifest(file.path).processes[0].path)
            server.run(services.traces.publish, capture(10, state=CaptureState.FAILED))

        follow_hosts(file.manifest, OPTIONS, file.touch, on_tick=tick)
    assert written[0] == "/tmp/t_10.json"


def test_a_daemon_that_goes_away_is_given_up_after_a_while_and_what_is_not_known_is_said() -> None:
    manifest = asked("a", port=9)
    manifest.processes[0].outcome = "recording"
    follow_hosts(manifest, FanOutOptions(timeout_s=0.2), lambda: None, outage_s=0)
    assert manifest.hosts[0].outcome == "lost"
    assert manifest.processes[0].outcome == "unknown"
    assert "it was recording" in manifest.processes[0].reason


# --- what was never acknowledged ----------------------------------------------------------------------------------------


def unacknowledged(port: int, outcome: str = "unknown") -> Manifest:
    manifest = asked("a", port, request_id="")
    (process,) = manifest.processes
    process.outcome, process.capture_id = outcome, ""
    manifest.created_wall_ns = time.time_ns()
    return manifest


@pytest.mark.parametrize("outcome", ["unknown", "asked", "planned"])
def test_a_request_that_was_not_acknowledged_is_found_by_its_group_and_followed(outcome: str) -> None:
    """The daemon took it, and only its answer was lost; a request of another group is not ours."""
    services = FakeServices()
    services.traces.publish(capture(10, state=CaptureState.FAILED, reason="another's"), request_id="r0", group_id="g0")
    services.traces.publish(capture(10), group_id="g1")
    with running_server(services) as server:
        manifest = unacknowledged(server.server.port, outcome)

        def changed() -> None:
            if manifest.processes[0].outcome == "pending":
                done = capture(10, state=CaptureState.WRITTEN, file=FILE)
                server.run(lambda: services.traces.publish(done, group_id="g1"))

        follow_hosts(manifest, OPTIONS, changed)
    (process,) = manifest.processes
    assert (process.outcome, process.capture_id, process.events) == ("written", "c10", 3)
    assert manifest.hosts[0].request_id == "r1"


@pytest.mark.parametrize(
    ("uptime_s", "outcome", "words"),
    [(3600.0, "not_traced", "did not get the request"), (0.5, "unknown", "or was restarted since")],
)
def test_a_request_that_its_daemon_does_not_know_was_not_taken_unless_it_was_restarted(
    uptime_s: float, outcome: str, words: str
) -> None:
    services = FakeServices()
    daemon = services.status.daemon
    own = msgspec.structs.replace(daemon.own, uptime_s=uptime_s)
    services.status.daemon = msgspec.structs.replace(daemon, own=own)
    with running_daemon(services) as port:
        manifest = unacknowledged(port)
        follow_hosts(manifest, OPTIONS, lambda: None)
    assert manifest.processes[0].outcome == outcome
    assert words in manifest.processes[0].reason


def test_a_daemon_that_stays_silent_leaves_it_unknown() -> None:
    manifest = unacknowledged(9)
    manifest.processes[0].reason = "it may be tracing"
    follow_hosts(manifest, FanOutOptions(timeout_s=0.2), lambda: None, outage_s=0)
    assert (manifest.processes[0].outcome, manifest.processes[0].reason) == ("unknown", "it may be tracing")
    assert manifest.hosts[0].outcome == "refused" or manifest.hosts[0].error


def test_what_a_daemon_refused_or_an_original_traced_is_not_asked_for() -> None:
    with framed_server(original_daemon([])) as server:
        refused, original = unacknowledged(server.port, "not_traced"), unacknowledged(server.port)
        original.hosts[0].original = True
        follow_hosts(refused, OPTIONS, lambda: None)
        follow_hosts(original, OPTIONS, lambda: None)
        assert server.requests == []


def test_a_daemon_that_was_restarted_knows_nothing_of_the_request() -> None:
    with running_daemon(FakeServices()) as port:
        manifest = asked("a", port)
        follow_hosts(manifest, OPTIONS, lambda: None)
    assert manifest.processes[0].outcome == "unknown"
    assert "restarted" in manifest.processes[0].reason


def test_time_up_leaves_it_as_it_stands() -> None:
    services = FakeServices()
    services.traces.publish(capture(10))
    with running_daemon(services) as port:
        manifest = asked("a", port)
        follow_hosts(manifest, OPTIONS, lambda: None, wait_timeout_s=0.05)
    assert manifest.processes[0].outcome == "pending"


def test_what_has_ended_is_not_asked_for_again() -> None:
    with framed_server(original_daemon([])) as server:
        manifest = asked("a", server.port)
        manifest.processes[0].outcome = "written"
        follow_hosts(manifest, OPTIONS, lambda: None)
        assert server.requests == []


# --- the manifest ------------------------------------------------------------------------------------------------------


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "manifest.json")
    manifest = asked("a")
    ManifestFile(manifest, path).save()
    assert read_manifest(path) == manifest
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]
    assert json.loads((tmp_path / "manifest.json").read_text())["processes"][0]["rank"] == 0


def test_it_is_not_written_for_every_change(tmp_path: Path) -> None:
    file = ManifestFile(asked("a"), str(tmp_path / "m"), every_s=1000)
    file.touch()
    file.manifest.state = "done"
    file.touch()
    assert read_manifest(file.path).state == "asking"
    file.save()
    assert read_manifest(file.path).state == "done"


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    with pytest.raises(HostsError, match="cannot be written"):
        ManifestFile(asked("a"), str(tmp_path / "none" / "m")).save()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"group_id": "g"}', '{"group_id":"g","hosts":[],"processes":[],"format":"x"}']
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m").write_text(text)
    with pytest.raises(HostsError):
        read_manifest(str(tmp_path / "m"))


def test_a_manifest_of_another_trace_is_never_overwritten(tmp_path: Path) -> None:
    directory = str(tmp_path)
    first = manifest_path(asked("a"), "", directory, "/nowhere")
    assert first == f"{directory}/manifest.json"
    ManifestFile(asked("a"), first).save()
    assert manifest_path(asked("a"), "", directory, "/nowhere") == first
    other = asked("a")
    other.group_id = "g2"
    assert manifest_path(other, "", "", directory) == f"{directory}/manifest-g2.json"
    assert manifest_path(other, "/x/y", directory, directory) == "/x/y"
    assert manifest_path(other, "", "", "/nowhere").startswith("./manifest")


def test_labels_are_all_different() -> None:
    targets = [FleetTarget(host="a"), FleetTarget(host="a", port=1779), FleetTarget(host="b", label="c")]
    assert [one.name for one in labelled(targets)] == ["a-1778", "a-1779", "c"]
