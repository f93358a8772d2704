"""dynolog as a process: what it says at start, how it ends, and that it speaks with the original's command line."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.scripted_trainer import ScriptedTrainer
from integration.harness import Daemon, Process, eventually, needs_root, running_daemon, tool

DYNOLOG = (sys.executable, "-m", "dynolog.daemon.main")
# The text that the public dyno (Rust) makes of its options, line breaks, order and spaces included.
ORIGINAL_CONFIG = (
    "ACTIVITIES_LOG_FILE=/tmp/libkineto_trace.json\\nPROFILE_START_TIME=0\\nACTIVITIES_DURATION_MSECS=500"
    "\\nPROFILE_REPORT_INPUT_SHAPES=false\\nPROFILE_WITH_STACK=false\\nPROFILE_WITH_FLOPS=false\\nPROFILE_WITH_MODULES=false"
)
FIVE_KEYS = {
    "processesMatched",
    "eventProfilersTriggered",
    "activityProfilersTriggered",
    "eventProfilersBusy",
    "activityProfilersBusy",
}


def ends(*flags: str, prefix: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Exit code and the lines on stderr that are not log lines, of a daemon that cannot start."""
    done = subprocess.run(
        [*prefix, *DYNOLOG, "--rpc_unix_socket=none", *flags], capture_output=True, text=True, timeout=20, check=False
    )
    return done.returncode, [
        line for line in done.stderr.splitlines() if line.startswith("dynolog: ") or " File " in line
    ]


def port_of(daemon: Daemon) -> int:
    (line,) = daemon.wait_for("RPC listens on")
    return int(line.partition("127.0.0.1:")[2].partition(",")[0])


def original_asks(port: int, body: str) -> str:
    """As the public dyno asks: the length and the text in two sends, then exactly as many bytes as the reply announces."""
    data = body.encode()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(struct.pack("=i", len(data)))
        connection.sendall(data)
        with connection.makefile("rb") as answer:
            (length,) = struct.unpack("=i", answer.read(4))
            text = answer.read(length)
            assert answer.read() == b""
    return text.decode()


def original_trace_request(job: int, pids: str = "0") -> str:
    return (
        f'\n{{\n    "fn": "setKinetOnDemandRequest",\n    "config": "{ORIGINAL_CONFIG}",\n    "job_id": {job},\n'
        f'    "pids": [{pids}],\n    "process_limit": 3\n}}'
    )


def test_the_originals_command_line_is_understood(tmp_path: Path) -> None:
    fabric = f"dynolog-original-{os.getpid()}"
    with running_daemon(tmp_path / "d", fabric=fabric) as daemon, ScriptedTrainer(fabric) as trainer:
        port = port_of(daemon)
        assert original_asks(port, '{"fn":"getStatus"}') == '{"status":1}'
        assert json.loads(original_asks(port, '{"fn":"getVersion"}')).keys() == {"version"}
        assert original_asks(port, '\n{\n    "fn": "dcgmProfPause",\n    "duration_s": 300\n}') == '{"status":false}'
        assert original_asks(port, '\n{\n    "fn": "dcgmProfResume"\n}') == '{"status":false}'
        nobody = json.loads(original_asks(port, original_trace_request(2**64 - 1)))
        assert nobody.keys() >= FIVE_KEYS
        assert (nobody["processesMatched"], nobody["no_match_code"]) == ([], "no_trainer_registered")
        assert trainer.poll() == ""
        daemon.wait_for_trainers(1)
        matched = json.loads(original_asks(port, original_trace_request(0)))
        assert matched["processesMatched"] == matched["activityProfilersTriggered"] == [trainer.host_pid]
        config = trainer.poll()
        # What the trainer gets is what was asked, and the id.
        assert config.splitlines()[:-1] == ORIGINAL_CONFIG.split("\\n")
        assert config.splitlines()[-1].startswith("REQUEST_TRACE_ID=")
        assert json.loads(original_asks(port, '{"fn":"noSuchFunction"}'))["status"] == "failed"


def logs_to(log: Path, *flags: str) -> Process:
    """A daemon whose log is a file, once it is ready."""
    daemon = Process([*DYNOLOG, "--port=0", "--rpc_unix_socket=none", f"--log_file={log}", *flags])
    eventually(lambda: log.exists() and "dynolog is ready" in log.read_text(), 20, "it is ready")
    return daemon


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_two_seconds_with_everything_written(tmp_path: Path, sig: signal.Signals) -> None:
    log = tmp_path / "log"
    daemon = logs_to(log, "--reporting_interval_s=0.2")
    try:
        eventually(lambda: log.read_text().count("Logging : ") >= 2, 20, "two records")
        began = time.monotonic()
    finally:
        code = daemon.stop(sig)
    assert (code, daemon.output) == (0, "")
    assert time.monotonic() - began < 8  # two seconds of its own; the machine may be busy
    text = log.read_text()
    assert f"Stopping: {sig.name}" in text
    assert text.endswith("\n")
    assert text.count("Logging : ") == text.count(" data = {")


def test_hangup_reopens_the_log_and_rereads_the_flags(tmp_path: Path) -> None:
    log, flags = tmp_path / "log", tmp_path / "flags"
    flags.write_text("# nothing yet\n\n--kernel_monitor_reporting_interval_s=3600\n")
    daemon = logs_to(log, f"--flagfile={flags}")
    try:
        log.rename(tmp_path / "log.1")
        flags.write_text("--reporting-interval-s 0.1\n--rpc_bind_address=::\n")
        daemon.popen.send_signal(signal.SIGHUP)
        eventually(lambda: log.exists() and "Logging : " in log.read_text(), 20, "a record in the new file")
        text = log.read_text()
        assert "now in effect: --kernel_monitor_reporting_interval_s=0.1" in text
        assert "these take effect at the next start: --rpc_bind_address" in text
    finally:
        code = daemon.stop()
    assert code == 0


def test_what_cannot_start_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    fabric = f"dynolog-taken-{os.getpid()}"
    with running_daemon(tmp_path / "d", fabric=fabric) as daemon:
        port = port_of(daemon)
        code, lines = ends(f"--port={port}")
        assert code == 3
        assert len(lines) == 1
        assert f"port {port}" in lines[0]
        assert f"(pid {daemon.pid})" in lines[0]
        code, lines = ends("--port=0", "--enable_ipc_monitor", f"--ipc_fabric_name={fabric}")
        assert code == 3
        assert len(lines) == 1
        assert f"is held by pid {daemon.pid}" in lines[0]
    assert ends("--prot=1") == (2, ["dynolog: unknown flag --prot; did you mean --port?"])
    code, lines = ends("--flagfile=/no/such/file")
    assert (code, len(lines)) == (2, 1)


@pytest.mark.root
@needs_root
def test_no_permission_is_one_line_and_an_exit_code() -> None:
    """Root without CAP_NET_BIND_SERVICE may not have a port below 1024, and may still run an interpreter of root's."""
    without = (tool("setpriv"), "--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service")
    code, lines = ends("--port=80", prefix=without)
    assert (code, len(lines)) == (4, 1)
    assert "no permission" in lines[0]


def test_nowhere_to_write_is_warned_of_at_start_and_in_status(tmp_path: Path) -> None:
    """A21: a daemon that measures and writes nothing says so, and names what would."""
    with running_daemon(tmp_path / "d", "--nouse_JSON") as daemon:
        (line,) = daemon.wait_for("no destination is on")
        assert line.startswith("W")
        assert "--use_JSON" in line
        assert "No exporter is on" in daemon.dyno("status", "--verbose").stdout


def test_status_lists_the_destinations_with_their_last_delivery(tmp_path: Path) -> None:
    """A21: sinks, last write, and each collector with its last error."""
    with running_daemon(tmp_path / "d", "--reporting_interval_s=0.2", f"--root_dir={tmp_path}") as daemon:

        def log_status() -> Any:
            (status,) = daemon.ask("status", "--verbose")["daemon"]["exporters"]
            return status if status.get("sent") else None

        status = eventually(log_status, 20, "something was written")
        assert status["name"] == "log"
        assert abs(time.time() - status["last_success_wall_ns"] / 1e9) < 60
        collectors = {one["name"]: one for one in daemon.ask("status", "--verbose")["daemon"]["collectors"]}
        assert collectors["memory"]["state"] == "unavailable"
        assert "proc/meminfo" in collectors["memory"]["error"]


def test_flags_without_an_effect_are_said_and_it_goes_on(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "d", "--log_dir=/x", "--v=1") as daemon:
        assert daemon.wait_for("--log_dir has no effect")[0].startswith("W")
        assert daemon.wait_for("--v has no effect")[0].startswith("W")


def test_the_service_manager_hears_of_every_turn(tmp_path: Path) -> None:
    """sd_notify(3): ready when it serves, a reload, the watchdog in between, the stop."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        heard: list[str] = []

        def hear(what: str) -> str:
            while not (heard and heard[-1].startswith(what)):
                heard.append(manager.recv(4096).decode())
            return heard[-1]

        env = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        with running_daemon(tmp_path, env=env) as daemon:
            assert "STATUS=serves on " in hear("READY=1")
            hear("WATCHDOG=1")
            os.kill(daemon.pid, signal.SIGHUP)
            assert "MONOTONIC_USEC=" in hear("RELOADING=1")
            hear("READY=1")
            hear("WATCHDOG=1")
        hear("STOPPING=1")


@needs_root
@pytest.mark.root
def test_the_watchdog_is_not_pinged_while_the_socket_thread_hangs_though_all_others_run(tmp_path: Path) -> None:
    """Only the main thread is held, as by a debugger: records go on, so another thread's ping would come as well."""
    records = tmp_path / "records"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        env = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        flags = ("--use_file", f"--file_path={records}", "--kernel_monitor_reporting_interval_s=0.1")
        with running_daemon(tmp_path, *flags, env=env) as daemon:
            eventually(lambda: records.exists() and heard(manager))

            def others_run_while_it_is_held() -> bool:
                """False when the thread was caught with the interpreter's lock, which holds all others up as well."""
                with held(daemon.pid):
                    heard(manager)
                    before, deadline = records.stat().st_size, time.monotonic() + 5
                    while records.stat().st_size < before + 50_000:
                        if time.monotonic() > deadline:
                            return False
                        time.sleep(0.05)
                    assert heard(manager) == []
                return True

            eventually(others_run_while_it_is_held)
            eventually(lambda: b"WATCHDOG=1" in heard(manager))


def heard(manager: socket.socket) -> list[bytes]:
    """All that was said since the last time."""
    said: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while True:
            said.append(manager.recv(4096, socket.MSG_DONTWAIT))
    return said


@contextlib.contextmanager
def held(thread: int) -> Iterator[None]:
    """One thread of another process does not run meanwhile; its siblings do (ptrace(2))."""
    seize, interrupt, detach, all_kinds = 0x4206, 0x4207, 17, 0x40000000
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for request in (seize, interrupt):
        assert ptrace(request, thread, None, None) == 0, os.strerror(ctypes.get_errno())
    os.waitpid(thread, all_kinds)
    try:
        yield
    finally:
        assert ptrace(detach, thread, None, None) == 0, os.strerror(ctypes.get_errno())
