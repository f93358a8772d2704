"""dyno gputrace and trace as processes: the original's lines, following, fetching, and every way to end."""

import gzip
import hashlib
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from dynolog.model.capture import CaptureInfo, CaptureState, Operation, TraceFile, Transition
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import NotTraced, TraceOutcome
from fakes.dyno_process import run_dyno, run_on_terminal, start_dyno
from fakes.framed_server import frame, framed_server, original_daemon
from fakes.rpc_daemon import running_daemon, running_server
from fakes.services import FakeServices, capture

S = 1_000_000_000
CONTENT = b'{"traceEvents": []}' * 40_000
PENDING = Transition(CaptureState.PENDING, 100 * S, "asked")
WRITTEN = Transition(CaptureState.WRITTEN, 103 * S, "the file is whole")
FILE = TraceFile(
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    events=3456,
    longest=(Operation("aten::mm", 12_300.0),),
)
CONFIG_LINES = [
    "Kineto config = ",
    "ACTIVITIES_LOG_FILE=/tmp/t.json",
    "PROFILE_START_TIME=0",
    "ACTIVITIES_DURATION_MSECS=500",
    "PROFILE_REPORT_INPUT_SHAPES=false",
    "PROFILE_WITH_STACK=false",
    "PROFILE_WITH_FLOPS=false",
    "PROFILE_WITH_MODULES=false",
]


def pending(pid: int = 4242) -> CaptureInfo:
    return capture(pid, history=(PENDING,), expected_s=12.0)


def written(pid: int = 4242, **changes: object) -> CaptureInfo:
    return capture(pid, **{"state": CaptureState.WRITTEN, "history": (PENDING, WRITTEN), "file": FILE} | changes)


def services_with(*captures: CaptureInfo, **outcome: object) -> FakeServices:
    """Services that take any request as `r1` with these captures."""
    services = FakeServices()
    pids = tuple(one.pid for one in captures)
    fields: dict[str, object] = {"request_id": "r1", "matched": pids, "triggered": pids, "captures": captures}
    services.traces.outcome = TraceOutcome(**(fields | outcome))  # type: ignore[arg-type] # only tests of this file call it
    services.traces.publish(*captures)
    return services


def test_the_original_daemons_answer_is_printed_as_the_original_prints_it() -> None:
    with framed_server(original_daemon([71, 72])) as server:
        done = run_dyno(
            "gputrace", "--log-file", "/tmp/t.json", "--job-id", "7", "--pids", "1,2", "--port", str(server.port)
        )
    reply = (
        '{"activityProfilersBusy":0,"activityProfilersTriggered":[71,72],"eventProfilersBusy":0,'
        '"eventProfilersTriggered":[],"processesMatched":[71,72]}'
    )
    assert done.stdout.splitlines() == [
        *CONFIG_LINES,
        f"response length = {len(reply)}",
        f"response = {reply}",
        "Matched 2 processes",
        "Trace output files will be written to:",
        "    /tmp/t_71.json",
        "    /tmp/t_72.json",
    ]
    assert (done.returncode, done.stderr) == (0, "")
    (request,) = server.requests
    assert (request["fn"], request["job_id"], request["pids"]) == ("setKinetOnDemandRequest", 7, [1, 2])
    assert request["process_limit"] == 4194304  # all of them: 0 would trigger none there


def test_the_original_cannot_be_followed_and_that_is_said() -> None:
    with framed_server(original_daemon([71])) as server:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--port", str(server.port))
    assert done.returncode == 0
    assert "cannot tell when the files are written" in done.stderr


@pytest.mark.parametrize("words", [["--dry-run"], ["--name", "python"], ["--ranks", "0-3"], ["--job-id", "90210_2"]])
def test_what_the_original_would_ignore_is_not_sent_to_it(words: list[str]) -> None:
    with framed_server(original_daemon([71])) as server:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", *words, "--port", str(server.port))
    assert done.returncode == 1
    assert "Nothing was sent" in done.stderr
    assert [request["fn"] for request in server.requests] == ["getStatus"]


def test_no_match_is_exit_code_1_with_the_reason() -> None:
    """A01: never silent, and never a success, with or without --fail-on-no-process."""
    services = FakeServices()
    services.traces.outcome = TraceOutcome(
        no_match_code="no_trainer_registered", no_match_reason="No trainer has registered\x1b[2J."
    )
    with running_daemon(services) as port:
        for words in ([], ["--fail-on-no-process"], ["--wait"]):
            done = run_dyno("gputrace", "--log-file", "/tmp/t.json", *words, "--port", str(port))
            assert done.returncode == 1
            assert done.stdout.splitlines()[-3:] == [
                "No processes were matched, please check --job-id or --pids flags",
                r"No trainer has registered\x1b[2J.",
                "`dyno doctor --pid PID`, typed on its machine, says what keeps a process from registering.",
            ]
        as_json = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--json", "--port", str(port))
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["no_match_code"] == "no_trainer_registered"
    with framed_server(original_daemon([])) as server:
        assert run_dyno("gputrace", "--log-file", "/tmp/t.json", "--port", str(server.port)).returncode == 1


def test_all_options_reach_the_daemon() -> None:
    services = services_with(pending())
    with running_daemon(services) as port:
        done = run_dyno(
            *("gputrace", "--port", str(port), "--log_file", "/tmp/t.json", "--iterations", "3"),
            *("--profile-start-iteration-roundup", "10", "--record-shapes", "--with_stacks", "--with-flops"),
            *("--with-modules", "--profile-memory", "--warmup-s", "0", "--activities", "cpu_op,kernel"),
            *("--job-id", "90210_2", "--name", "python", "--ranks", "0,2-3", "--process-limit", "5"),
            *("--include-launchers", "--no-wait"),
        )
    assert done.returncode == 0, done.stderr
    ((request, _),) = services.traces.requests
    assert request.config.split("\n") == [
        "ACTIVITIES_LOG_FILE=/tmp/t.json",
        "PROFILE_START_ITERATION=0",
        "PROFILE_START_ITERATION_ROUNDUP=10",
        "ACTIVITIES_ITERATIONS=3",
        "PROFILE_REPORT_INPUT_SHAPES=true",
        "PROFILE_PROFILE_MEMORY=true",
        "PROFILE_WITH_STACK=true",
        "PROFILE_WITH_FLOPS=true",
        "PROFILE_WITH_MODULES=true",
        "ACTIVITIES_WARMUP_PERIOD_SECS=0",
        "ACTIVITY_TYPES=cpu_op,kernel",
    ]
    assert (request.job, request.job_id) == ("90210_2", -1)
    assert (request.names, request.ranks) == (("python",), (0, 2, 3))
    assert (request.process_limit, request.include_launchers, request.dry_run) == (5, True, False)
    assert done.stdout.splitlines()[-1] == f"Follow it with: dyno --port {port} trace r1"


def test_who_is_left_out_and_why_and_how_long_it_takes() -> None:
    services = services_with(
        pending(7),
        matched=(7, 6),
        not_traced=(NotTraced(pid=6, host_pid=60, code="launcher", error="it starts the others"),),
        notes=("a 1 s poll interval makes it 2 s",),
        expected_s=12.0,
    )
    with running_daemon(services) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--port", str(port))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-7:-1] == [
        "Matched 2 processes",
        "Trace output files will be written to:",
        "    /tmp/t_7.json",
        "Not traced:",
        "    pid 6, host pid 60: it starts the others (launcher)",
        "note: a 1 s poll interval makes it 2 s",
    ]


def test_a_process_that_could_not_be_traced_is_exit_code_1() -> None:
    busy = NotTraced(pid=6, host_pid=6, code="busy", error="request r0 records")
    services = services_with(matched=(6,), triggered=(), not_traced=(busy,))
    with running_daemon(services) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--port", str(port))
    assert done.returncode == 1
    assert "request r0 records (busy)" in done.stdout


def test_a_dry_run_lists_what_would_be_written_and_follows_nothing() -> None:
    services = services_with(request_id="", matched=(6, 7), triggered=(7,), expected_s=7.0)
    with running_daemon(services) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--dry-run", "--wait", "--port", str(port))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-4:] == [
        "Matched 2 processes",
        "Trace output files would be written to:",
        "    /tmp/t_7.json",
        "Expected to take about 7.0 s",
    ]


def test_when_all_are_refused_no_file_is_promised() -> None:
    refused = NotTraced(pid=6, host_pid=6, code="path", error="it may not write there")
    services = services_with(request_id="", matched=(6,), triggered=(), not_traced=(refused,))
    with running_daemon(services) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--port", str(port))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-3:] == [
        "Matched 1 processes",
        "Not traced:",
        "    pid 6: it may not write there (path)",
    ]


def test_another_users_processes_on_a_shared_machine_are_no_failure() -> None:
    others = NotTraced(pid=6, host_pid=6, code="forbidden", error="it belongs to uid 7")
    with running_daemon(services_with(pending(7), not_traced=(others,))) as port:
        assert run_dyno("gputrace", "--log-file", "/tmp/t.json", "--port", str(port)).returncode == 0


def test_a_refusal_is_the_daemons_sentence() -> None:
    services = FakeServices()
    services.traces.outcome = RequestError("too_soon", "that is too soon: 1700000000000 would do")
    with running_daemon(services) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--port", str(port))
        as_json = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--json", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == "dyno gputrace: that is too soon: 1700000000000 would do\n"
    assert json.loads(as_json.stdout)["code"] == "too_soon"
    with framed_server(lambda _: frame({"status": "failed with a bad config"})) as server:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--port", str(server.port))
    assert (done.returncode, done.stderr) == (1, "dyno gputrace: failed with a bad config\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--log-file", "t.json"], "must be absolute"),
        (["--log-file", "/tmp/a\nACTIVITIES_DURATION_MSECS=9"], "cannot be printed"),
        (["--log-file", "/tmp/../t.json"], "'..'"),
        (["--log-file", "/t.json", "--activities", "nonsense"], "nonsense"),
        (["--log-file", "/t.json", "--gzip"], "--fetch"),
        (["--log-file", "/t.json", "--fetch", "/tmp/x", "--no-wait"], "--no-wait"),
        (["--log-file", "/t.json", "--wait-timeout", "3", "--no-wait"], "--no-wait"),
        (["--log-file", "/t.json", "--duration-ms", "0"], "--duration-ms"),
    ],
)
def test_what_cannot_work_is_usage_and_nothing_is_sent(words: list[str], said: str) -> None:
    with framed_server(original_daemon([71])) as server:
        done = run_dyno("gputrace", *words, "--port", str(server.port))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert server.requests == []


def test_wait_follows_to_the_checked_file() -> None:
    services = services_with(pending())
    with running_server(services) as server:
        process = start_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--port", str(server.server.port))
        assert process.stdout is not None
        while "pending: asked" not in process.stdout.readline():
            assert process.poll() is None
        server.run(services.traces.publish, written())
        output, error = process.communicate(timeout=10)
    assert (process.returncode, error) == (0, "")
    assert output.splitlines() == [
        "   3.0 s  pid 4242: written: the file is whole",
        "/tmp/t_4242.json (pid 4242): 760.0 kB, 3,456 events",
        "    longest: aten::mm 12.3 ms",
        "1 process: 1 written, in 3.0 s",
    ]


@pytest.mark.parametrize(
    "end",
    [
        capture(4242, state=CaptureState.FAILED, reason="it died"),
        capture(4242, state=CaptureState.EXPIRED, reason="it left"),
        written(file=TraceFile(size_bytes=1000, sha256="", events=0), reason="a launcher"),
    ],
    ids=["failed", "expired", "empty"],
)
def test_an_end_without_a_good_file_is_exit_code_1(end: CaptureInfo) -> None:
    with running_daemon(services_with(end)) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--port", str(port))
        later = run_dyno("trace", "r1", "--port", str(port))
    assert done.returncode == later.returncode == 1
    assert end.reason in done.stdout
    assert end.reason in later.stdout


def test_json_with_wait_has_the_answer_and_the_end_in_one_object() -> None:
    with running_daemon(services_with(written())) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--json", "--port", str(port))
    answer = json.loads(done.stdout)
    assert answer["request_id"] == "r1"
    assert answer["processesMatched"] == [4242]
    assert answer["files"] == ["/tmp/t_4242.json"]
    assert answer["progress"]["captures"][0]["state"] == "written"
    assert done.stdout.count("\n") == 1


def test_ctrl_c_says_what_goes_on_and_is_130() -> None:
    with running_daemon(services_with(pending())) as port:
        process = start_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait", "--port", str(port))
        assert process.stdout is not None
        while "pending: asked" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=10)
    assert process.returncode == 130
    assert f"request r1 goes on in the daemon (1 pending): follow it with `dyno --port {port} trace r1`" in error


def test_ctrl_c_before_the_answer_says_that_it_may_have_been_taken() -> None:
    asked, release = threading.Event(), threading.Event()

    def slow(request: dict[str, object]) -> None:
        asked.set()
        release.wait(10)

    with framed_server(slow) as server:
        process = start_dyno("gputrace", "--log-file", "/tmp/t.json", "--port", str(server.port))
        assert asked.wait(10)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=10)
        release.set()
    assert process.returncode == 130
    assert "it may have taken the request" in error


def test_time_up_is_exit_code_1_and_says_how_to_go_on() -> None:
    with running_daemon(services_with(pending())) as port:
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--wait-timeout", "0.1", "--port", str(port))
    assert done.returncode == 1
    assert f"dyno --port {port} trace r1" in done.stderr


def test_fetch_brings_checked_files(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_bytes(CONTENT)
    here = tmp_path / "here"
    services = services_with(written())
    services.traces.files["c4242"] = str(there)
    with running_daemon(services) as port:
        words = ("trace", "r1", "--fetch", str(here), "--port", str(port))
        done = run_dyno("gputrace", "--log-file", "/tmp/t.json", "--fetch", str(here), "--port", str(port))
        again = run_dyno(*words)
        (here / "t_4242.json").write_text("mine")
        refused = run_dyno(*words)
        packed = run_dyno("trace", "r1", "--fetch", str(tmp_path / "packed"), "--gzip", "--json", "--port", str(port))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{here}/t_4242.json: fetched, 760.0 kB, SHA-256 checked"
    assert again.stdout.splitlines()[-1] == f"{here}/t_4242.json: is here already"
    assert refused.returncode == 1
    assert "nothing was overwritten" in refused.stderr
    assert os.listdir(here) == ["t_4242.json"]
    (fetched,) = json.loads(packed.stdout)["fetched"]
    assert fetched["path"] == f"{tmp_path}/packed/t_4242.json.gz"
    assert gzip.decompress(Path(fetched["path"]).read_bytes()) == CONTENT


def test_a_path_from_the_daemon_does_not_lead_elsewhere(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_bytes(CONTENT)
    services = services_with(written(path="/tmp/../../x\x1b[2J/..\\evil.json"))
    services.traces.files["c4242"] = str(there)
    with running_daemon(services) as port:
        done = run_dyno("trace", "r1", "--fetch", str(tmp_path / "here"), "--port", str(port))
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path / "here") == ["evil.json"]
    assert "\x1b" not in done.stdout + done.stderr


def test_trace_lists_what_the_daemon_remembers() -> None:
    with running_daemon(services_with(written())) as port:
        some = run_dyno("trace", "--port", str(port))
        unknown = run_dyno("trace", "r9", "--port", str(port))
        usage = run_dyno("trace", "--wait", "--port", str(port))
    with running_daemon(FakeServices()) as port:
        none = run_dyno("trace", "--port", str(port))
    assert some.stdout.splitlines()[1].startswith("r1 ")
    assert "/tmp/t_4242.json" in some.stdout
    assert (unknown.returncode, usage.returncode, none.returncode) == (1, 2, 0)
    assert "r9" in unknown.stderr
    assert "remembers no trace request" in none.stdout


def test_on_a_terminal_it_waits_and_draws() -> None:
    with running_daemon(services_with(written())) as port:
        code, output = run_on_terminal("gputrace", "--log-file", "/tmp/t.json", "--port", str(port))
    assert code == 0
    assert "1 process: 1 written, in 3.0 s" in output
    assert "Matched 1 processes, request r1" in output
    assert "response" not in output  # that is for programs


def test_on_a_terminal_no_match_is_one_reason_and_what_to_type() -> None:
    services = FakeServices()
    services.traces.outcome = TraceOutcome(
        no_match_code="no_trainer_registered", no_match_reason="None has registered."
    )
    with running_daemon(services) as port:
        code, output = run_on_terminal("gputrace", "--log-file", "/tmp/t.json", "--port", str(port))
    assert code == 1
    assert output.splitlines()[-2:] == [
        "None has registered.",
        "`dyno doctor --pid PID`, typed on its machine, says what keeps a process from registering.",
    ]
    assert "response" not in output
    assert "--job-id or --pids" not in output  # none was given


def test_options_that_do_nothing_are_said_and_the_request_goes_on() -> None:
    with framed_server(original_daemon([71])) as server:
        words = ["gputrace", "--log-file", "/tmp/t.json", "--port", str(server.port)]
        done = run_dyno(*words, "--profile-start-iteration-roundup", "10", "--host-interval-ms", "50")
        quiet = run_dyno(*words, "--profile-start-iteration-roundup", "10", "--iterations", "3")
    assert done.stderr.splitlines() == [
        "note: --profile-start-iteration-roundup has no effect without --iterations",
        "note: --host-interval-ms has no effect without --fetch or --with-host",
    ]
    assert (done.returncode, quiet.returncode, quiet.stderr) == (0, 0, "")
