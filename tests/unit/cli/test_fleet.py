"""Subcommands on many hosts: tables with a host column, one JSON object, and exit codes that say who answered."""

import contextlib
import gzip
import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynolog.cli.main import main
from dynolog.fleet import manifest
from dynolog.fleet.clocks import ClockOffset
from dynolog.fleet.host_fold import folded
from dynolog.fleet.hostlist import parse_hosts
from dynolog.fleet.targets import HostSet
from dynolog.model.capture import CaptureState, TraceFile
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.model.trace_request import NotTraced, TraceOutcome
from dynolog.model.trainer import TrainerInfo
from fakes.framed_server import FramedServer, framed_server, original_daemon
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices, capture, trainer

FILE = TraceFile(size_bytes=900, sha256="ab", events=3, duration_us=5.0)


class Three:
    """Two daemons of ours and an original one."""

    def __init__(
        self, services: tuple[FakeServices, FakeServices], ports: tuple[int, int], original: FramedServer
    ) -> None:
        self.services = services
        self.ports = ports
        self.original = original
        self.ours = f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"
        self.all = f"{self.ours},127.0.0.1:{original.port}"


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Three]:
    monkeypatch.chdir(tmp_path)  # where a manifest goes that has no other place
    services = FakeServices(), FakeServices()
    with contextlib.ExitStack() as stack:
        ports = stack.enter_context(running_daemon(services[0])), stack.enter_context(running_daemon(services[1]))
        yield Three(services, ports, stack.enter_context(framed_server(original_daemon([44]))))


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def rank(number: int, pid: int) -> TrainerInfo:
    return trainer(pid, rank=number, world_size=4, job="7", job_id=7, poll_interval_s=2.0)


def ready_to_trace(three: Three, **outcome: Any) -> None:
    """Two ranks on each of the two hosts."""
    for index, services in enumerate(three.services):
        services.traces.registered = (rank(2 * index, 10), rank(2 * index + 1, 11))
        services.traces.outcome = TraceOutcome(**({"matched": (10, 11), "triggered": (10, 11)} | outcome))


def test_status_has_a_line_for_each_host_and_the_clocks(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--hosts", three.all]) == 0
    header, *lines, end = capsys.readouterr().out.splitlines()
    assert end == "3 of 3 hosts ok"
    assert header.split() == ["HOST", "STATE", "ROUND", "TRIP", "CLOCK"]
    assert [line.split()[0] for line in lines] == three.all.split(",")
    assert "±" in lines[0]
    assert lines[2].split()[-1] == "-"


def test_a_clock_that_is_off_is_said_below_the_table(
    three: Three, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    off = ClockOffset(offset_ns=2_000_000_000, uncertainty_ns=1000)
    monkeypatch.setattr("dynolog.cli.fleet.tables.clock_offset", lambda answer: off)
    assert main(["status", "--hosts", f"{three.ours},{nobody()}"]) == 1
    *_, warning, end = capsys.readouterr().out.splitlines()
    assert warning.startswith("warning: the clocks of 3 hosts are off, by +2.00 to +2.00 s: 127.0.0.1:")
    assert end == "2 of 3 hosts ok"


def test_verbose_status_says_who_is_who(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--hosts", three.all, "status", "--verbose"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "0.0.0" in lines[1]
    assert "original" in lines[3]


def test_who_gave_no_answer_is_said_with_the_reason_and_the_exit_code(
    three: Three, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = nobody()
    assert main(["version", "--hosts", f"{three.ours},{gone}"]) == 1
    said = capsys.readouterr()
    assert "1 of 3 hosts gave no answer" in said.err
    assert f"{gone}: no daemon listens there" in said.err
    assert main(["version", "--hosts", gone]) == 3


def test_json_is_a_list_by_host(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    gone = nobody()
    assert main(["version", "--json", "--hosts", f"{three.ours},{gone}"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["asked"], answer["answered"]) == (3, 2)
    assert [host["outcome"] for host in answer["hosts"]] == ["answered", "answered", "unreachable"]
    assert "version" in answer["hosts"][0]["reply"]
    assert answer["hosts"][2]["code"] == "unreachable"


def test_versions_that_are_mixed_are_said(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--hosts", three.all]) == 0
    assert "Versions: " in capsys.readouterr().out


def test_trainers_of_all_hosts_stand_in_the_order_of_their_ranks(
    three: Three, capsys: pytest.CaptureFixture[str]
) -> None:
    three.services[0].traces.registered = (rank(3, 10), rank(0, 11))
    three.services[1].traces.registered = (rank(2, 12), rank(1, 13))
    assert main(["ps", "--hosts", three.ours]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[1] for line in lines] == ["11", "13", "12", "10"]
    assert main(["ps", "--hosts", three.all]) == 1
    assert "original dynolog does, which tells nothing about that" in capsys.readouterr().err


def test_no_trainer_anywhere_is_exit_code_1(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps", "--hosts", three.ours]) == 1
    assert "No trainer is registered on the hosts that answered." in capsys.readouterr().out


def test_a_daemon_without_ipc_is_said_because_nothing_can_register_there(
    three: Three, capsys: pytest.CaptureFixture[str]
) -> None:
    three.services[1].traces.ipc_enabled = False
    three.services[0].traces.registered = (rank(0, 10),)
    assert main(["ps", "--hosts", three.ours]) == 0
    assert f"127.0.0.1:{three.ports[1]}: the daemon runs without --enable_ipc_monitor" in capsys.readouterr().out


def test_metrics_are_filtered_on_every_host(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--filter", "cpu", "--hosts", three.ours]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[1:3] for line in lines] == [["cpu_u", "12.500"]] * 2
    assert main(["metrics", "--filter", "nothing", "--hosts", three.ours]) == 1


def test_exporters_and_dcgm_work_on_many(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exporters", "--hosts", three.ours]) == 1
    assert capsys.readouterr().out == f"{three.ours}: no exporter is on\n"
    for services in three.services:
        services.gpus.answer = True
    assert main(["dcgm-pause", "--hosts", three.ours]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["HOST", "DONE"]


def test_a_pause_that_one_host_could_not_do_is_exit_code_1(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    """The profiler that was to have the counters would fail there."""
    three.services[0].gpus.answer = True
    assert main(["dcgm-pause", "--hosts", three.ours]) == 1
    assert (
        f"Nothing was done on 127.0.0.1:{three.ports[1]}: the daemon does not profile a GPU" in capsys.readouterr().out
    )


def test_gpus_of_many_hosts_are_one_table(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    """A host without GPUs to show says why."""
    three.services[0].gpus.source = GpuStatus(
        enabled=True, backend="nvml", notes=("GPUs are read with nvml",), expected=2, seen=1
    )
    three.services[0].gpus.listed = (GpuDevice(subject="0", labels={"device": "0"}, values={"gpu_power_draw": 300.0}),)
    assert main(["gpus", "--hosts", three.ours]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["HOST", "GPU", "NAME"]
    assert " 300 W " in lines[1]
    assert lines[2].endswith(": 1 of 2 GPUs answer")
    assert "The daemon does not monitor GPUs" in lines[3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["watch", "--hosts", "a"], "it works on one daemon"),
        (["status", "--hosts", "a", "--hostname", "b"], "leave --hostname and --unix out"),
        (["status", "--hosts", "n[1"], "a bracket is not closed"),
        (["status", "--hostfile", "/no/such/file"], "No such file"),
        (["metrics", "--list", "--hosts", "a"], "one daemon's catalogue"),
        (["ps", "--k8s-namespace", "train"], "give --k8s-job or --k8s-selector too"),
        (["gputrace", "--hosts", "a"], "--log-file"),
        (["gputrace", "--log-file", "/t.json", "--sample", "3"], "--sample is for many hosts"),
        (["gputrace", "--hosts", "a", "--log-file", "/t/", "--name-template", "{rank}.json"], "--name-template"),
        (["gputrace", "--hosts", "a", "--log-file", "t.json"], "must be absolute"),
        (["gputrace", "--resume", "/no/such/manifest"], "cannot be read"),
        (["gputrace", "--resume", "/m", "--hosts", "a"], "leave the options that name hosts out"),
    ],
)
def test_what_cannot_be_meant_is_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


# --- gputrace ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--hosts", "--hostfile", "--slurm-job", "--discover"])
def test_an_option_left_empty_by_a_script_never_means_this_host(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gputrace", f"{option}=", "--log-file", "/t/"]) == 2
    assert f"{option} is empty" in capsys.readouterr().err


def trace(three: Three, *words: str, hosts: str = "") -> int:
    return main(["gputrace", "--hosts", hosts or three.ours, "--log-file", "/t/", "--job-id", "7", *words])


def test_a_dry_run_prints_what_would_be_traced_where(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    ready_to_trace(three)
    assert trace(three, "--dry-run") == 0
    out = capsys.readouterr().out
    assert "4 processes on 2 hosts to trace" in out
    assert " 0-1 " in out
    assert "Dry run: nothing was triggered" in out
    assert all(request.dry_run for services in three.services for request, _ in services.traces.requests)


def test_what_daemons_warn_of_is_said_before_anything_starts(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    ready_to_trace(three, warnings=("its files cannot be followed",), notes=("they poll every 5 s",))
    assert trace(three, "--dry-run") == 0
    out = capsys.readouterr().out
    labels = ",".join(f"127.0.0.1-{port}" for port in sorted(three.ports))
    assert "their" not in out
    assert "they poll" not in out
    assert out.count("its files cannot be followed") == 1
    assert f"warning: {folded(labels.split(','))}: its files cannot be followed" in out


def test_one_daemon_under_two_names_is_asked_once(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    """`gpu1` and `gpu1.cluster`: both names answer, with the same processes."""
    here = [msgspec.structs.replace(rank(number, 10 + number), start_time_ticks=7000 + number) for number in (0, 1)]
    for services in three.services:
        services.traces.registered = tuple(here)
        services.traces.outcome = TraceOutcome(matched=(10, 11), triggered=(10, 11), request_id="r1")
    assert trace(three, "--no-wait") in (0, 1)
    out = capsys.readouterr().out
    assert "2 processes on 1 host to trace" in out
    assert f"127.0.0.1-{three.ports[1]} is 127.0.0.1-{three.ports[0]} under another name" in out
    asked = [[request for request, _ in services.traces.requests if not request.dry_run] for services in three.services]
    assert [len(requests) for requests in asked] == [1, 0]


def test_ctrl_c_before_anything_started_says_so(
    three: Three, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynolog.cli.fleet.gputrace.survey_hosts", interrupted)
    assert trace(three) == 130
    assert "nothing was started" in capsys.readouterr().err


def test_gpus_are_shown_and_stand_in_the_manifest_where_they_are_known(
    three: Three, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    held = (("2",), ("0", "1", "3/gi5"))
    three.services[0].traces.registered = tuple(
        msgspec.structs.replace(one, gpus=gpus)
        for one, gpus in zip(three.services[0].traces.registered, held, strict=True)
    )
    assert trace(three, "--no-wait") == 0
    header, first, second, *_ = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["HOST", "MATCHED", "TRACED", "RANKS", "GPUS"]
    assert first.split()[3:5] == ["0-1", "0-2,3/gi5"]
    assert second.split()[3:5] == ["2-3", "-"]
    written = json.loads((tmp_path / "manifest.json").read_bytes())
    assert [process["gpus"] for process in written["processes"]] == [["2"], ["0", "1", "3/gi5"], [], []]


def test_ranks_are_told_to_the_daemons(three: Three) -> None:
    ready_to_trace(three)
    trace(three, "--only-ranks", "0,2", "--dry-run")
    assert three.services[0].traces.requests[0][0].ranks == (0, 2)


def test_gpus_are_asked_for_in_phase_one_and_processes_named_in_phase_two(three: Three) -> None:
    ready_to_trace(three)
    trace(three, "--gpu", "0,1", "--gpu", "3", "--no-wait")
    asked = [request for request, _ in three.services[0].traces.requests]
    assert (asked[0].gpus, asked[0].dry_run) == (("0", "1", "3"), True)
    assert all(request.gpus == () and request.pids for request in asked[1:])


def test_too_few_hosts_start_nothing(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    ready_to_trace(three)
    assert trace(three, "--require", "80%", hosts=f"{three.ours},{nobody()}") == 1
    assert "2 of 3 hosts have a process that can be traced, and --require asks for 80%" in capsys.readouterr().err
    assert trace(three, "--require", "60%", "--dry-run", hosts=f"{three.ours},{nobody()}") == 1
    assert all(request.dry_run for services in three.services for request, _ in services.traces.requests)


def test_all_are_given_one_start_time_and_one_group(
    three: Three, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    path = tmp_path / "m.json"
    assert trace(three, "--no-wait", "--manifest", str(path), "--warmup-s", "0") == 0
    configs = [
        dict(line.split("=") for line in services.traces.requests[-1][0].config.splitlines())
        for services in three.services
    ]
    written = json.loads(path.read_bytes())
    assert {config["REQUEST_GROUP_TRACE_ID"] for config in configs} == {written["group_id"]}
    starts = [int(config["PROFILE_START_TIME"]) for config in configs]
    assert abs(starts[0] - starts[1]) <= 50
    assert abs(starts[0] - written["start_wall_ns"] / 1e6) <= 50
    assert starts[0] > written["created_wall_ns"] / 1e6 + 3000  # 2 s for the poll, 1 s to be accepted, 1 s to spare
    assert f"dyno gputrace --resume {path}" in capsys.readouterr().out
    assert [process["outcome"] for process in written["processes"]] == ["pending"] * 4


@pytest.mark.parametrize(("given", "rounded"), [([], "10"), (["--profile-start-iteration-roundup", "16"], "16")])
def test_iterations_are_rounded_up_beyond_a_poll_interval(
    three: Three, tmp_path: Path, given: list[str], rounded: str
) -> None:
    """Polls every 2 s and a second to be accepted are 6 iterations of 500 ms."""
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    words = ["--iterations", "3", "--step-ms", "500", "--no-wait", "--manifest", str(tmp_path / "m")]
    assert trace(three, *words, *given) == 0
    config = three.services[0].traces.requests[-1][0].config
    assert f"PROFILE_START_ITERATION_ROUNDUP={rounded}\n" in config
    assert "PROFILE_START_TIME" not in config


def test_an_iteration_that_is_to_be_measured_starts_nothing_in_a_dry_run(
    three: Three, capsys: pytest.CaptureFixture[str]
) -> None:
    ready_to_trace(three)
    assert trace(three, "--iterations", "3", "--auto-roundup", "--dry-run") == 0
    assert "which is measured when it starts" in capsys.readouterr().out
    assert all(request.dry_run for services in three.services for request, _ in services.traces.requests)


def test_an_iteration_that_cannot_be_measured_starts_nothing(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    """One process of each host is asked for a short trace of its steps; when none gives one, that is the end."""
    failed = capture(10, state=CaptureState.FAILED, reason="the disk is full")
    ready_to_trace(three, request_id="r1", captures=(failed,))
    assert trace(three, "--iterations", "3", "--auto-roundup") == 1
    assert "cannot tell how long an iteration takes: the disk is full: say --step-ms" in capsys.readouterr().err
    for services in three.services:
        (request,) = [request for request, _ in services.traces.requests if not request.dry_run]
        assert "ACTIVITY_TYPES=user_annotation" in request.config
        assert len(request.pids) == 1
        (file,) = request.log_files.values()
        assert file.startswith("/t/7/steps-g")


@pytest.mark.parametrize("words", [[], ["--iterations", "3", "--step-ms", "5"]])
def test_measuring_is_for_iterations_whose_time_is_not_said(three: Three, words: list[str]) -> None:
    assert trace(three, "--auto-roundup", *words) == 2
    assert not three.services[0].traces.requests


def test_a_round_up_that_is_too_small_is_refused(three: Three, capsys: pytest.CaptureFixture[str]) -> None:
    ready_to_trace(three)
    assert trace(three, "--iterations", "3", "--step-ms", "5", "--profile-start-iteration-roundup", "100") == 2
    assert "600 iterations of 5 ms pass in one poll interval" in capsys.readouterr().err
    assert all(request.dry_run for services in three.services for request, _ in services.traces.requests)


@pytest.mark.parametrize(
    ("found_by", "sent"),
    [("90210", (90210, "90210")), ("90210_2", (-1, "90210_2")), ("90210_[1-3]", (-1, "90210_[1-3]"))],
)
def test_hosts_that_were_found_by_a_job_trace_only_that_job(
    three: Three, monkeypatch: pytest.MonkeyPatch, found_by: str, sent: tuple[int, str]
) -> None:
    ready_to_trace(three)
    found = HostSet(targets=parse_hosts(three.ours, 1778), job=found_by)
    monkeypatch.setattr("dynolog.cli.fleet.many_hosts.find_hosts", lambda *_: found)
    assert main(["gputrace", "--hosts", "x", "--log-file", "/t/", "--dry-run"]) == 0
    request, _ = three.services[0].traces.requests[0]
    assert (request.job_id, request.job) == sent


def test_a_manifest_that_cannot_be_written_for_a_while_ends_nothing(
    three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is full after the requests were sent; at the end there is room again."""
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    for services in three.services:
        services.traces.publish(*(capture(pid, state=CaptureState.WRITTEN, file=FILE) for pid in (10, 11)))
    write_whole, calls = manifest.write_whole, iter(range(100))

    def write(path: str, data: bytes) -> None:
        if next(calls) == 2:
            raise OSError(28, "No space left on device")
        write_whole(path, data)

    monkeypatch.setattr(manifest, "write_whole", write)
    monkeypatch.setattr("dynolog.fleet.manifest.ManifestFile.touch", manifest.ManifestFile.attempt)
    assert trace(three, "--wait", "--manifest", str(tmp_path / "m")) == 0
    assert "No space left on device" in capsys.readouterr().err
    assert json.loads((tmp_path / "m").read_bytes())["state"] == "done"


def test_a_manifest_that_cannot_be_written_to_the_end_still_leaves_the_summary(
    three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is full from the moment the requests were sent: the reason is told once, and the exit code says it."""
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    for services in three.services:
        services.traces.publish(*(capture(pid, state=CaptureState.WRITTEN, file=FILE) for pid in (10, 11)))
    write_whole, calls = manifest.write_whole, iter(range(100))

    def write(path: str, data: bytes) -> None:
        if next(calls) > 0:
            raise OSError(28, "No space left on device")
        write_whole(path, data)

    monkeypatch.setattr(manifest, "write_whole", write)
    assert trace(three, "--wait", "--manifest", str(tmp_path / "m")) == 1
    said = capsys.readouterr()
    assert said.err.count("No space left on device") == 1
    assert "4 processes on 2 hosts: 4 written" in said.out


def test_original_daemons_are_traced_without_being_followed(
    three: Three, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    for services in three.services:
        done = (capture(pid, state=CaptureState.WRITTEN, file=FILE) for pid in (10, 11))
        services.traces.publish(*done)
    assert trace(three, "--wait", "--manifest", str(tmp_path / "m"), hosts=three.all) == 0
    out = capsys.readouterr().out
    assert "1 host with the original C++ dynolog" in out
    assert "5 processes on 3 hosts: 4 written, 1 unknown" in out
    assert "/127.0.0.1-" in three.original.requests[-1]["config"]


def test_what_one_process_missed_is_exit_code_1(
    three: Three, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = NotTraced(pid=11, host_pid=11, code="busy", error="it is busy with another trace")
    ready_to_trace(three, request_id="r1", triggered=(10,), captures=(capture(10),), not_traced=(left_out,))
    for services in three.services:
        services.traces.publish(capture(10, state=CaptureState.WRITTEN, file=FILE))
    assert trace(three, "--wait", "--json", "--manifest", str(tmp_path / "m")) == 1
    processes = json.loads(capsys.readouterr().out)["processes"]
    assert [process["outcome"] for process in processes] == ["written", "not_traced"] * 2
    assert processes[1]["reason"] == "it is busy with another trace"


def test_files_of_all_hosts_are_fetched_and_told_their_rank(three: Three, tmp_path: Path) -> None:
    """Two files of one name are kept apart, and a second time nothing is fetched again."""
    ready_to_trace(three, request_id="r1", captures=(capture(10),), triggered=(10,), matched=(10,))
    for index, services in enumerate(three.services):
        path = tmp_path / f"on_host{index}.json"
        path.write_text(json.dumps({"host": index, "traceEvents": []}))
        file = TraceFile(size_bytes=path.stat().st_size, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), events=1)
        services.traces.files["c10"] = str(path)
        services.traces.publish(capture(10, state=CaptureState.WRITTEN, file=file, path="/t/same.json"))
    fetched = tmp_path / "fetched"
    assert trace(three, "--fetch", str(fetched)) == 0
    traces = [json.loads(path.read_bytes()) for path in sorted(fetched.glob("same_*.json"))]
    assert sorted(one["host"] for one in traces) == [0, 1]
    assert sorted(one["distributedInfo"]["rank"] for one in traces) == [0, 2]
    before = [services.traces.fetches for services in three.services]
    assert [len(one) for one in before] == [1, 1]
    assert main(["gputrace", "--resume", str(fetched / "manifest.json"), "--fetch", str(fetched)]) == 0
    assert [len(services.traces.fetches) for services in three.services] == [1, 1]


def test_resuming_keeps_the_counters_of_the_host(
    three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They come with --fetch, whether it is the first command or a later one that fetches."""
    asked: list[bool] = []
    monkeypatch.setattr(
        "dynolog.cli.fleet.fetch_all.fetch_group",
        lambda file, fan_out, options, as_json: asked.append(options.with_host),
    )
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    for services in three.services:
        services.traces.publish(*(capture(pid, state=CaptureState.WRITTEN, file=FILE) for pid in (10, 11)))
    here = tmp_path / "here"
    trace(three, "--fetch", str(here))
    main(["gputrace", "--resume", f"{here}/manifest.json", "--fetch", str(here)])
    assert asked == [True, True]


def test_files_that_could_not_be_fetched_are_said_with_what_to_type(
    three: Three, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their daemons forgot them, or the names are taken: what is not here can be had later."""
    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    for services in three.services:
        services.traces.publish(*(capture(pid, state=CaptureState.WRITTEN, file=FILE) for pid in (10, 11)))
    here = tmp_path / "here"
    assert trace(three, "--fetch", str(here)) == 1
    again = f"`dyno gputrace --resume {here}/manifest.json --fetch {here}`, or another directory there"
    assert f"dyno: 4 files not fetched: try again with {again}" in capsys.readouterr().err


def test_ctrl_c_while_files_are_fetched_says_that_the_traces_have_ended(
    three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    ready_to_trace(three, request_id="r1", captures=(capture(10), capture(11)))
    for services in three.services:
        services.traces.publish(*(capture(pid, state=CaptureState.WRITTEN, file=FILE) for pid in (10, 11)))
    monkeypatch.setattr("dynolog.cli.fleet.fetch_all.fetch_group", interrupted)
    assert trace(three, "--fetch", str(tmp_path / "here")) == 130
    assert "the traces have ended, but not all are fetched" in capsys.readouterr().err


def test_a_fetched_file_is_compressed_after_it_was_completed(three: Three, tmp_path: Path) -> None:
    ready_to_trace(three, request_id="r1", captures=(capture(10),), triggered=(10,), matched=(10,))
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": []}')
    file = TraceFile(size_bytes=path.stat().st_size, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), events=1)
    three.services[0].traces.files["c10"] = str(path)
    three.services[0].traces.publish(capture(10, state=CaptureState.WRITTEN, file=file, path="/t/x.json"))
    fetched = tmp_path / "fetched"
    assert trace(three, "--fetch", str(fetched), "--gzip", hosts=three.ours.split(",")[0]) == 0
    assert sorted(entry.name for entry in fetched.iterdir()) == ["manifest.json", "x.json.gz"]
    assert main(["gputrace", "--resume", str(fetched / "manifest.json"), "--fetch", str(fetched), "--gzip"]) == 0
    assert len(three.services[0].traces.fetches) == 1
    assert json.loads(gzip.decompress((fetched / "x.json.gz").read_bytes()))["distributedInfo"]["rank"] == 0
