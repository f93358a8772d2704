"""`dyno doctor` on real PyTorch processes: the verdict is right for each way in which they cannot be traced, and for none."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import TORCH_PYTHON, Daemon, Process, needs_root, needs_torch, running_daemon, trainer_env

# A process that has imported PyTorch registers; it need not train.
_IMPORT = "import torch, time; print('imported', torch.__version__, flush=True); time.sleep(600)"
_SET_LATE = "import os; os.environ['KINETO_USE_DAEMON'] = '1'; " + _IMPORT
# `dyno` as another user, who need not be able to read this interpreter and our modules: a first run as root loads them all.
_AS_NOBODY = """
import contextlib, io, os, sys
from dynolog.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    main(sys.argv[1:])
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
sys.exit(main(sys.argv[1:]))
"""

pytestmark = needs_torch


class Cases:
    """A daemon, and one process for each case, by its name."""

    def __init__(self, daemon: Daemon, processes: dict[str, Process]) -> None:
        self.daemon = daemon
        self.processes = processes

    def pid(self, name: str) -> int:
        return self.processes[name].pid

    def verdict(self, name: str, *arguments: str) -> tuple[int, str]:
        """Exit code and the sentence about a process."""
        return verdict(self.daemon.dyno("doctor", "--pid", str(self.pid(name)), *arguments), self.pid(name))


def verdict(done: subprocess.CompletedProcess[str], pid: int) -> tuple[int, str]:
    """The last line that is about the process, and the remedy after it."""
    found = re.search(rf"^pid {pid} (.*)\Z", done.stdout, re.MULTILINE | re.DOTALL)
    assert found, done.stdout + done.stderr
    return done.returncode, found[1].strip()


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    directory = tmp_path_factory.mktemp("doctor")
    with running_daemon(directory / "daemon") as daemon, contextlib.ExitStack() as stack:
        on = trainer_env(directory / "trainer", daemon.ipc_dir)
        off = {name: value for name, value in on.items() if name != "KINETO_USE_DAEMON"}
        abstract = {name: value for name, value in on.items() if name != "KINETO_IPC_SOCKET_DIR"}
        array = {"SLURM_JOB_ID": "90211", "SLURM_ARRAY_JOB_ID": "90210", "SLURM_ARRAY_TASK_ID": "7"}
        commands: dict[str, tuple[tuple[str, ...], str, dict[str, str]]] = {
            "on": ((), _IMPORT, on),
            "zero": ((), _IMPORT, {**on, "KINETO_USE_DAEMON": "0", **array}),
            "off": ((), _IMPORT, {**off, **array}),
            "set late": ((), _SET_LATE, off),
            "elsewhere": ((), _IMPORT, {**on, "KINETO_IPC_SOCKET_DIR": str(directory / "nothing")}),
        }
        if os.geteuid() == 0 and shutil.which("unshare"):
            commands["namespace"] = (("unshare", "--net"), _IMPORT, abstract)
        processes = {}
        for name, (prefix, code, env) in commands.items():
            processes[name] = Process([*prefix, str(TORCH_PYTHON), "-c", code], env=env)
            stack.callback(processes[name].stop, 9)
        for process in processes.values():
            process.wait_for("imported", timeout_s=240)
        daemon.wait_for_trainers(3)
        yield Cases(daemon, processes)


def test_one_that_was_started_right_can_be_traced(cases: Cases) -> None:
    code, said = cases.verdict("on")
    assert code == 0, said
    assert said.startswith("can be traced\n      -> dyno --unix ")
    assert f"gputrace --log-file /tmp/trace.json --pids {cases.pid('on')}" in said


def test_the_version_of_pytorch_is_read_from_its_installation(cases: Cases) -> None:
    version = cases.processes["on"].wait_for("imported")[0].split()[1]
    assert cases.daemon.ask("doctor", "--pid", str(cases.pid("on")))["torch"] == version


def test_zero_is_on_and_that_is_said(cases: Cases) -> None:
    """A04."""
    done = cases.daemon.dyno("doctor", "--pid", str(cases.pid("zero")))
    assert done.returncode == 0, done.stdout
    assert "note  environment: KINETO_USE_DAEMON=0 is on: libkineto looks only whether it is set" in done.stdout


def test_without_the_variable_it_must_be_started_again(cases: Cases) -> None:
    code, said = cases.verdict("off")
    assert code == 1
    assert said.startswith("would not be traced: KINETO_USE_DAEMON is not in the environment that it was started with")
    assert f"KINETO_USE_DAEMON=1 {TORCH_PYTHON} -c" in said


def test_a_variable_that_the_program_sets_is_heard(cases: Cases) -> None:
    done = cases.daemon.dyno("doctor", "--pid", str(cases.pid("set late")))
    assert done.returncode == 0, done.stdout
    assert "it was started without KINETO_USE_DAEMON, and has set that itself" in done.stdout


def test_a_socket_directory_without_a_daemon(cases: Cases) -> None:
    code, said = cases.verdict("elsewhere")
    assert code == 1
    assert re.match(
        r"would not be traced: KINETO_IPC_SOCKET_DIR=\S+ is where it looks for a daemon, and it sees no", said
    )


@needs_root
@pytest.mark.root
def test_a_network_namespace_of_its_own(cases: Cases) -> None:
    """A07."""
    if "namespace" not in cases.processes:
        pytest.skip("needs unshare")
    code, said = cases.verdict("namespace")
    assert code == 1
    assert said.startswith("would not be traced: it has a network namespace of its own")
    # Another daemon of this machine may have joined it meanwhile.
    assert "--ipc_namespaces" in said or "where another process holds @dynolog" in said


def test_a_directory_that_takes_no_trace(cases: Cases) -> None:
    code, said = cases.verdict("on", "--log-file", "/proc/trace.json")
    assert code == 1
    assert said.startswith("would not be traced: no file can be made in /proc")


@needs_root
@pytest.mark.root
def test_another_user_is_told_whom_to_ask(cases: Cases) -> None:
    """Nobody may neither look into root's process nor trace it; the one that has registered is refused by the daemon."""
    for parent in cases.daemon.unix.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)

    def asked(name: str) -> str:
        words = [
            sys.executable,
            "-c",
            _AS_NOBODY,
            "--unix",
            str(cases.daemon.unix),
            "doctor",
            "--pid",
            str(cases.pid(name)),
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        code, said = verdict(done, cases.pid(name))
        assert code == 1
        return said

    assert "what keeps it from registering is not yours to see\n      -> sudo dyno --unix" in asked("off")
    assert re.match(r"would not be traced: .*(other users|belongs to)", asked("on"))


def test_a_job_is_known_by_its_text_and_told_in_groups(cases: Cases) -> None:
    """H01. One of its processes registered, and one does not have the variable."""
    done = cases.daemon.dyno("doctor", "--job-id", "90210_7")
    assert done.returncode == 1
    assert f"1 process (pid {cases.pid('zero')}) can be traced" in done.stdout
    assert f"1 process (pid {cases.pid('off')}) would not be traced: KINETO_USE_DAEMON is not" in done.stdout
    found = cases.daemon.ask("doctor", "--job", "90210")["processes"]
    assert {one["pid"]: one["traceable"] for one in found} == {cases.pid("zero"): True, cases.pid("off"): False}


def test_the_whole_machine(cases: Cases) -> None:
    """Everything that hinders a process is among the findings; values of other variables are not printed."""
    done = cases.daemon.dyno("doctor", "--verbose")
    assert done.returncode == 1
    assert f"(pid {cases.pid('elsewhere')}): KINETO_IPC_SOCKET_DIR=" in done.stdout
    assert "ok    flags: the daemon's flags are right" in done.stdout
    assert os.environ["PATH"] not in done.stdout
    first_lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    marks = [line.split()[0] for line in first_lines[:-1]]
    assert marks == sorted(marks, key=["WRONG", "note", "ok"].index)


def test_the_ipc_off(cases: Cases, tmp_path: Path) -> None:
    with running_daemon(tmp_path / "off", "--noenable_ipc_monitor") as daemon:
        code, said = verdict(daemon.dyno("doctor", "--pid", str(cases.pid("on"))), cases.pid("on"))
        assert code == 1
        assert said.startswith("would not be traced: the daemon's IPC is off: no process can be traced")
        assert "WRONG ipc: the daemon's IPC is off" in daemon.dyno("doctor").stdout


def test_no_daemon(cases: Cases, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "dynolog.cli.main",
        "--unix",
        str(tmp_path / "none"),
        "doctor",
        "--pid",
        str(cases.pid("on")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    code, said = verdict(done, cases.pid("on"))
    assert code == 1
    assert said.startswith(f"would not be traced: no daemon answers on {tmp_path}/none")
