"""dyno as a process against a real RPC server: what it prints and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from dynolog.model.record import Record
from fakes.dyno_process import DYNO, run_dyno, run_on_terminal, start_dyno
from fakes.framed_server import frame, framed_server, original_daemon
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices, trainer


def test_status_prints_what_the_original_prints() -> None:
    with running_daemon(FakeServices()) as port:
        done = run_dyno("status", "--port", str(port))
    assert done.stdout == 'response length = 12\nresponse = {"status":1}\n'
    assert (done.returncode, done.stderr) == (0, "")


def test_status_on_a_terminal_is_told_in_words_too() -> None:
    with running_daemon(FakeServices()) as port:
        code, output = run_on_terminal("status", "--port", str(port))
    assert code == 0
    assert output.splitlines() == [
        "response length = 12",
        'response = {"status":1}',
        f"A dynolog answers on localhost:{port}: `dyno --port {port} status --verbose` says more.",
    ]


@pytest.mark.parametrize(
    ("words", "reply"), [(["status"], {}), (["version"], {"status": 1}), (["status", "--json"], {})]
)
def test_an_answer_to_another_question_is_shown_and_a_failure(words: list[str], reply: dict[str, object]) -> None:
    with framed_server(lambda _: frame(reply)) as server:
        done = run_dyno(*words, "--port", str(server.port))
    assert json.loads(done.stdout.splitlines()[-1].removeprefix("response = ")) == reply
    assert done.returncode == 1
    assert "is not understood" in done.stderr


def test_version_prints_what_the_original_prints() -> None:
    with running_daemon(FakeServices()) as port:
        done = run_dyno("--port", str(port), "version")
    first, second = done.stdout.splitlines()
    assert first == f"response length = {len(second.removeprefix('response = '))}"
    assert set(json.loads(second.removeprefix("response = "))) == {"version"}


def test_status_verbose_goes_on_after_the_two_lines() -> None:
    services = FakeServices()
    services.traces.registered = (trainer(4242),)
    with running_daemon(services) as port:
        done = run_dyno("status", "--verbose", "--port", str(port))
    assert done.stdout.startswith('response length = 12\nresponse = {"status":1}\ndynolog 0.0.0 on node1, pid 77')
    assert "python train.py" in done.stdout
    assert done.returncode == 0


def test_status_of_a_failing_gpu_source_is_said() -> None:
    services = FakeServices()
    services.status.status = 0
    with running_daemon(services) as port:
        done = run_dyno("status", "--port", str(port))
    assert '{"status":0}' in done.stdout
    assert "GPU" in done.stdout


@pytest.mark.parametrize(
    "words", [["status"], ["status", "-v"], ["version"], ["ps"], ["metrics"], ["metrics", "--list"], ["trace"]]
)
def test_json_is_one_object_and_nothing_else(words: list[str]) -> None:
    services = FakeServices()
    services.traces.registered = (trainer(4242, name="ev\x1b[2Jil"),)
    with running_daemon(services) as port:
        done = run_dyno(*words, "--json", "--port", str(port))
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), dict)
    assert done.stdout.count("\n") == 1
    assert done.stdout.rstrip("\n").isprintable()
    assert done.stderr == ""


def test_no_daemon_is_exit_code_3_and_one_line_that_says_what_to_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = run_dyno("status", "--port", str(port))
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "dynolog --enable_ipc_monitor" in done.stderr
    as_json = run_dyno("--json", "ps", "--port", str(port))
    assert as_json.returncode == 3
    assert json.loads(as_json.stdout)["code"] == "cannot_reach"


def test_a_daemon_that_does_not_answer_is_exit_code_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = run_dyno("status", "--port", str(silent.getsockname()[1]), "--timeout", "0.2")
    assert done.returncode == 3
    assert "0.2 s" in done.stderr


def test_ps_lists_trainers_or_says_how_to_get_one() -> None:
    services = FakeServices()
    with running_daemon(services) as port:
        none = run_dyno("ps", "--port", str(port))
        services.traces.ipc_enabled = False
        off = run_dyno("ps", "--port", str(port))
        services.traces.registered = (trainer(4242, command="python \x1b]0;x\x07 train.py"),)
        some = run_dyno("ps", "--port", str(port))
        other = run_dyno("ps", "--port", str(port), "--pids", "1")
    assert (none.returncode, off.returncode, some.returncode, other.returncode) == (1, 1, 0, 1)
    assert "KINETO_USE_DAEMON=1" in none.stdout
    assert "--enable_ipc_monitor" in off.stdout
    assert r"python \x1b]0;x\x07 train.py" in some.stdout
    assert "No trainer" in other.stdout


def test_functions_that_the_original_lacks_are_said_to_be_missing() -> None:
    with framed_server(original_daemon([])) as server:
        for words in (["ps"], ["metrics"], ["trace"], ["watch"]):
            done = run_dyno(*words, "--port", str(server.port))
            assert done.returncode == 3
            assert "original C++ dynolog" in done.stderr
        done = run_dyno("status", "--verbose", "--port", str(server.port))
    assert done.returncode == 0
    assert "no more of itself" in done.stdout


def test_metrics_filters_and_says_when_nothing_matches() -> None:
    with running_daemon(FakeServices()) as port:
        every = run_dyno("metrics", "--port", str(port))
        some = run_dyno("metrics", "--filter", "cpu_*", "--port", str(port))
        none = run_dyno("metrics", "--filter", "nothing", "--port", str(port))
        listed = run_dyno("metrics", "--list", "--filter", "up", "--port", str(port))
    assert "uptime" in every.stdout
    assert "12.500" in some.stdout
    assert "uptime" not in some.stdout
    assert (none.returncode, none.stdout) == (1, "")
    assert "dyno metrics --list" in none.stderr
    assert "Time since boot" in listed.stdout
    assert "cpu_u" not in listed.stdout


def test_before_the_first_report_a_filter_is_not_to_blame() -> None:
    reply = {"status": "ok", "records": [], "units": {}, "wall_ns": 1}
    with framed_server(lambda _: frame(reply)) as server:
        done = run_dyno("metrics", "--filter", "cpu_*", "--port", str(server.port))
    assert (done.returncode, done.stdout) == (1, "")
    assert "the first report comes when one interval is over" in done.stderr


def test_watch_prints_frames_with_an_empty_line_between() -> None:
    with running_daemon(FakeServices()) as port:
        done = run_dyno("watch", "--count", "2", "--interval", "0.01", "--filter", "cpu", "--port", str(port))
        as_json = run_dyno("watch", "--count", "2", "--interval", "0.01", "--json", "--port", str(port))
    assert done.returncode == 0
    assert [line.split()[0] if line else "" for line in done.stdout.splitlines()] == ["METRIC", "cpu_u", ""] * 2
    assert [len(json.loads(line)["records"]) for line in as_json.stdout.splitlines()] == [1, 1]


def test_watch_on_a_terminal_shows_what_fits_and_ends_at_its_count() -> None:
    services = FakeServices()
    values = {f"metric_{number:03}": number for number in range(100)}
    services.metrics.records = (Record(wall_ns=1, source="kernel", values=values),)
    with running_daemon(services) as port:
        code, output = run_on_terminal("watch", "--count", "1", "--port", str(port), rows=10)
    assert code == 0
    assert output.startswith("\x1b[H\x1b[J")
    assert "more lines" in output
    assert output.count("\r\n") < 10


def test_ctrl_c_ends_watch_with_0() -> None:
    with running_daemon(FakeServices()) as port:
        process = start_dyno("watch", "--interval", "600", "--port", str(port))
        assert process.stdout is not None
        assert process.stdout.readline().startswith("METRIC")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=10)
    assert (process.returncode, error) == (0, "")


def test_a_reader_that_has_enough_is_no_error() -> None:
    services = FakeServices()
    services.traces.registered = tuple(trainer(pid, command="x" * 200) for pid in range(1, 2000))
    with running_daemon(services) as port:
        process = start_dyno("ps", "--port", str(port))
        assert process.stdout is not None
        assert process.stdout.readline().lstrip().startswith("PID")
        process.stdout.close()
        assert process.stderr is not None
        error = process.stderr.read()
        process.stderr.close()
        process.wait(10)
    assert (process.returncode, error) == (141, "")


def test_a_full_disk_is_one_line() -> None:
    with running_daemon(FakeServices()) as port, open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [str(DYNO), "status", "--port", str(port)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "dyno: the output cannot be written: No space left on device\n"


def test_a_refused_version_is_shown_once_and_fails() -> None:
    with framed_server(lambda _: frame({"status": "failed", "code": "busy", "error": "come back"})) as server:
        done = run_dyno("version", "--json", "--port", str(server.port))
    assert json.loads(done.stdout)["error"] == "come back"
    assert (done.returncode, done.stderr) == (1, "dyno version: come back\n")


def test_dcgm_pause_and_resume_speak_the_originals_functions() -> None:
    with framed_server(lambda _: frame({"status": True})) as server:
        paused = run_dyno("dcgm-pause", "--duration-s", "60", "--port", str(server.port))
        resumed = run_dyno("dcgm_resume", "--port", str(server.port))
    assert paused.stdout == resumed.stdout == 'response length = 15\nresponse = {"status":true}\n'
    assert server.requests == [{"fn": "dcgmProfPause", "duration_s": 60}, {"fn": "dcgmProfResume"}]


def test_a_daemon_without_dcgm_has_paused_nothing() -> None:
    with framed_server(lambda _: frame({"status": False})) as server:
        done = run_dyno("dcgm-pause", "--port", str(server.port))
    assert done.stdout == 'response length = 16\nresponse = {"status":false}\n'
    assert (done.returncode, done.stderr) == (
        1,
        "dyno dcgm-pause: nothing was done: the daemon does not profile a GPU, or its driver does not answer; `dyno gpus` tells\n",
    )


def test_usage_is_exit_code_2() -> None:
    done = run_dyno("statsu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean status?" in done.stderr


def test_completion_of_both_shells() -> None:
    pytest.importorskip("shtab")
    for shell in ("bash", "zsh"):
        done = run_dyno("completion", shell)
        assert done.returncode == 0
        assert "gputrace" in done.stdout
        assert "--log-file" in done.stdout


def test_an_ascii_terminal_is_no_error() -> None:
    services = FakeServices()
    services.traces.registered = (trainer(4242, command="python träin.py"),)
    with running_daemon(services) as port:
        done = subprocess.run(
            [str(DYNO), "ps", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
    assert done.returncode == 0
    assert r"tr\xe4in.py" in done.stdout


def test_status_loads_nothing_that_it_does_not_need() -> None:
    """What makes a command slow to start stays out of it."""
    script = (
        "import sys; from dynolog.cli.parser import parse; parse(['status'])[0].load();"
        "print(*sorted(set(sys.modules) & {'asyncio','ssl','rich','dataclasses','pathlib','subprocess',"
        "'logging','hashlib','_hashlib','difflib','dynolog.cli.gputrace.command','dynolog.cli.gputrace.fetch'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
