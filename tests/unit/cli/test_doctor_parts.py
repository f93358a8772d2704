"""The parts of `dyno doctor`: looking with patience, flags of a running daemon, the survey, the report, the command itself."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.cli.doctor.finding import note, ok, wrong
from dynolog.cli.doctor.local_daemon import find_local_daemon, flag_values, flags_of
from dynolog.cli.doctor.patience import look_at_each
from dynolog.cli.doctor.report import findings_text
from dynolog.cli.doctor.survey import survey
from dynolog.cli.main import main
from dynolog.model.trace_request import NotTraced, TraceOutcome
from fakes.proc_tree import ProcTree
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices, trainer

# --- patience ---------------------------------------------------------------------------------------------------------


def test_all_are_looked_at_and_errors_are_no_answers() -> None:
    def look(item: int) -> int | None:
        if item % 3 == 0:
            raise OSError(errno.ESRCH, "gone")
        return item * 10 if item % 2 else None

    looks = look_at_each(range(10), look)
    assert looks.answers == {1: 10, 5: 50, 7: 70}
    assert looks.hanging == []


def test_one_that_hangs_costs_only_itself() -> None:
    """The rest is looked at by another thread; an answer that comes after all is not wanted any more."""
    release = threading.Event()

    def look(item: int) -> int:
        if item == 2:
            release.wait(60)
        return item

    looks = look_at_each(range(5), look, patience_s=1.0)
    assert looks.hanging == [2]
    release.set()
    assert set(looks.answers) == {0, 1, 3, 4}


def test_when_everything_hangs_not_everything_is_waited_for() -> None:
    release = threading.Event()
    looks = look_at_each(range(50), lambda _item: release.wait(60), patience_s=0.05)
    assert looks.hanging == list(range(50))
    assert looks.answers == {}
    release.set()


# --- flags of a running daemon ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (("/usr/sbin/dynolog", "--flagfile=/etc/d"), ("--flagfile=/etc/d",)),
        (("/usr/bin/python3", "-P", "-m", "dynolog.daemon.main", "--port=0"), ("--port=0",)),
        (("/usr/bin/python3", "/usr/sbin/dynolog"), ()),
        (("python3", "dynolog-0.1.0-x86_64.pyz", "-port", "1"), ("-port", "1")),
        (("python3", "train.py", "--name=dynolog"), None),
        ((), None),
    ],
)
def test_a_daemon_is_known_by_its_command(command: tuple[str, ...], flags: tuple[str, ...] | None) -> None:
    assert flags_of(command) == flags


FILES = {
    "/etc/dynolog.gflags": "# ours\n--log_file=/var/log/d\n--enable_ipc_monitor\n",
    "/f": "--spool_dir=/f\n-ipc-namespaces\nnothing\n--flagfile=/g\n",
    "/g": "--log_file /g.log\n--flagfile=/f\n",
}


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ((), {"log_file": "/var/log/d", "enable_ipc_monitor": "true"}),
        (("--log_file=/x", "--noenable_ipc_monitor"), {"log_file": "/x", "enable_ipc_monitor": "false"}),
        (("--flagfile=/f",), {"spool_dir": "/f", "ipc_namespaces": "true", "log_file": "/g.log"}),
        (("--flagfile=/none", "--port", "5", "-log-file=/y"), {"port": "5", "log_file": "/y"}),
        (("--flagfile=/none", "--use_JSON", "--port=5"), {"use_JSON": "true", "port": "5"}),
    ],
)
def test_flags_have_the_values_that_gflags_gives_them(arguments: tuple[str, ...], values: dict[str, str]) -> None:
    """Files that name each other end somewhere."""
    assert flag_values(arguments, lambda path: FILES.get(path, "")) == values


@given(st.lists(st.text()), st.text())
def test_any_words_are_taken(arguments: list[str], file: str) -> None:
    flag_values(arguments, lambda _path: file)
    flags_of(arguments)


def test_the_daemon_of_a_recorded_machine(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    tree.process(77, uid=0)
    (tmp_path / "proc/77/cmdline").write_bytes(b"/usr/sbin/dynolog\0--flagfile=d.gflags\0")
    (tmp_path / "proc/77/cwd").symlink_to(tmp_path)
    tree.write("d.gflags", "--ipc_namespaces\n")
    daemon = find_local_daemon(tree.host, 77)
    assert daemon is not None
    assert daemon.is_on("ipc_namespaces")
    assert not daemon.is_on("enable_perf_monitor")
    tree.process(78)
    (tmp_path / "proc/78/cmdline").write_bytes(b"python\0train.py\0")
    assert find_local_daemon(tree.host, 78) is None
    assert find_local_daemon(tree.host, 79) is None


# --- the survey -------------------------------------------------------------------------------------------------------

TORCH_LINE = "7f00-7f01 r-xp 00000000 fd:01 1  /site/torch/lib/libtorch_cpu.so\n"


def process(tree: ProcTree, pid: int, *, program: str, comm: str = "x", maps: str = "", environ: str = "") -> None:
    tree.process(pid, environ=environ)
    directory = tree.root / f"proc/{pid}"
    (directory / "comm").write_text(comm + "\n")
    (directory / "cmdline").write_bytes(b"python\0train.py\0")
    (directory / "maps").write_text(maps)
    (directory / "root").symlink_to(tree.root)
    if program:
        (directory / "exe").symlink_to(program)


def test_the_survey_finds_pytorch_and_keeps_only_what_it_may(tmp_path: Path) -> None:
    """Other variables of an environment are never kept."""
    tree = ProcTree(tmp_path)
    tree.write("site/torch/version.py", "__version__ = '2.4.0'\n")
    secret = "KINETO_USE_DAEMON=1,AWS_SECRET_ACCESS_KEY=hunter2,SLURM_JOB_ID=5"
    process(tree, 1, program="/sbin/init")
    process(tree, 2, program="")  # a kernel thread
    process(tree, 3, program="/opt/e/bin/python3.11", maps=TORCH_LINE, environ=secret)
    process(tree, 4, program="/opt/e/bin/python3.11 (deleted)")
    process(tree, 5, program="/usr/bin/server", comm="pt_main_thread", maps=TORCH_LINE)
    process(tree, 6, program="/usr/bin/nv-hostengine", comm="nv-hostengine")
    found = survey(tree.host)
    assert (found.total, sorted(found.processes)) == (6, [3, 4, 5, 6])
    assert [one.pid for one in found.torch_processes] == [3, 5]
    assert found.has_host_engine
    assert found.unreadable == 0
    three = found.processes[3]
    assert three.torch is not None
    assert (three.torch.version, three.job) == ("2.4.0", {"SLURM_JOB_ID": "5"})
    assert [one.facts.environment_is_known for one in found.torch_processes if one.facts] == [True, False]
    assert b"hunter2" not in msgspec.json.encode(found)


# --- the report -------------------------------------------------------------------------------------------------------

FINDINGS = [wrong("ipc", "it is off", "switch it on"), note("gpu", "none\x1b[31m"), ok("disk", "room")]


def test_findings_come_with_their_remedy_and_are_safe_to_show() -> None:
    assert findings_text(FINDINGS, verbose=False).splitlines() == [
        "WRONG ipc: it is off",
        "      -> switch it on",
        "note  gpu: none\\x1b[31m",
        "1 thing is wrong. 1 more is in order: --verbose lists them.",
    ]
    assert findings_text(FINDINGS, verbose=True).splitlines()[-2:] == ["ok    disk: room", "1 thing is wrong."]
    assert findings_text(FINDINGS[1:], verbose=True).endswith("Nothing is wrong.")


# --- the command ------------------------------------------------------------------------------------------------------


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["doctor", *arguments])
    return code, capsys.readouterr().out


def test_no_daemon_ends_with_1_and_says_what_to_start(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out = doctor(capsys, "--unix", str(tmp_path / "none"))
    assert code == 1
    assert out.startswith(f"WRONG daemon: no daemon answers on {tmp_path}/none")


def test_json_has_levels_topics_and_remedies(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out = doctor(capsys, "--json", "--unix", str(tmp_path / "none"))
    report = msgspec.json.decode(out)
    assert (code, report["status"]) == (1, "wrong")
    assert report["findings"][0]["level"] == "wrong"
    assert {"level", "topic", "text"} <= set(report["findings"][0])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--pid", "1", "--job-id", "5"),
        ("--pid", "0"),
        ("--pid", "x"),
        ("--job-id", "x"),
        ("--pid", "1", "--log-file", "x"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    try:
        code: Any = main(["doctor", "--unix", str(tmp_path / "none"), *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2


def test_a_pid_is_asked_about_with_a_request_that_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    services = FakeServices()
    services.traces.registered = (trainer(os.getpid(), job="90210_7", job_id=90211),)
    refusal = NotTraced(pid=os.getpid(), host_pid=os.getpid(), code="launcher", error="it only starts others")
    services.traces.outcome = TraceOutcome(matched=(os.getpid(),), not_traced=(refusal,))
    with running_daemon(services) as port:
        code, out = doctor(capsys, "--port", str(port), "--pid", str(os.getpid()), "--log-file", "/data/t.json")
    assert code == 1
    assert f"pid {os.getpid()} would not be traced: it only starts others (launcher)" in out
    ((request, _),) = services.traces.requests
    assert (request.dry_run, request.job, request.pids) == (True, "90210_7", (os.getpid(),))
    assert "ACTIVITIES_LOG_FILE=/data/t.json" in request.config


def test_a_job_that_is_not_here_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with running_daemon(FakeServices()) as port:
        code, out = doctor(capsys, "--port", str(port), "--job", "424242_1")
        assert (code, out.split(" with PyTorch")[0]) == (1, "No process of job 424242_1")
        assert doctor(capsys, "--json", "--port", str(port), "--job", "424242_1") == (
            1,
            '{"job":"424242_1","processes":[]}\n',
        )


def test_many_hosts_with_the_same_finding_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with running_daemon(FakeServices()) as first, running_daemon(FakeServices()) as second:
        hosts = f"localhost:{first},localhost:{second}"
        code, out = doctor(capsys, "--hosts", hosts)
        assert code == 0
        assert (
            f"note  exporters: no destination is on: what is measured can be seen by `dyno metrics` only [localhost:{first}, "
            in out
        )
        assert main(["doctor", "--hosts", hosts, "--pid", "5"]) == 2
        code, out = doctor(capsys, "--json", "--hosts", hosts)
        assert [len(host["reply"]["findings"]) > 0 for host in msgspec.json.decode(out)["hosts"]] == [True, True]
