"""`dyno doctor --pid`: the verdict on each reason that a process would not be traced, and on none."""

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from dynolog.cli.doctor.evidence import Evidence, Sockets
from dynolog.cli.doctor.finding import Level
from dynolog.cli.doctor.jobs import subjects_of_job
from dynolog.cli.doctor.local_daemon import LocalDaemon
from dynolog.cli.doctor.report import verdict, walk_object, walk_text, walks_text
from dynolog.cli.doctor.subject import Subject, find_subject
from dynolog.cli.doctor.survey import Seen
from dynolog.cli.doctor.trainer_checks import check_trainers
from dynolog.cli.doctor.walk import Walk, walk
from dynolog.model.trace_request import NotTraced
from dynolog.model.trainer import TrainerState
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_privileges import Privileges
from fakes.doctor import HOME, ROOT, USER, evidence, found, ipc, local_daemon, seen, status, survey
from fakes.proc_tree import ProcTree
from fakes.services import trainer

PID = 4242


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


def walked(known: Evidence, process: Seen | None, **changes: Any) -> Walk:
    fields: dict[str, Any] = {
        "pid": PID,
        "seen": process,
        "age_s": 3600.0,
        "trainer": known.trainer_of(PID),
        "sockets": Sockets(names=frozenset({"@dynolog"})),
    }
    return walk(Subject(**(fields | changes)), known)


def why(walk: Walk, known: Evidence) -> str:
    """The verdict and the remedy."""
    return " -> ".join(filter(None, verdict(walk, known)))


def test_a_registered_process_can_be_traced(tree: ProcTree) -> None:
    known = evidence(tree.host, trainers=[trainer(PID, job="90210_7", job_id=90211)])
    result = walked(known, seen(PID), log_file="/data/trace.json")
    assert why(result, known) == (
        "pid 4242 can be traced -> dyno gputrace --log-file /data/trace.json --pids 4242 --job-id 90210_7"
    )
    assert not result.obstacles


@pytest.mark.parametrize(
    ("process", "reason"),
    [
        (None, "no such process is on this machine"),
        (seen(PID, state="Z"), "it has ended, and only waits for its parent"),
        (seen(PID, state="T"), f"it is stopped (state T): it polls nobody -> kill -CONT {PID}"),
        (seen(PID, torch=None), "it has not imported PyTorch (yet)"),
        (seen(PID, torch=None, is_python=False), "it is not Python, and has no PyTorch loaded"),
        (
            seen(PID, torch="1.13.1+cu117"),
            "its PyTorch is 1.13.1+cu117, and only 2.0 and later register -> pip install",
        ),
        (
            seen(PID, environment={}),
            "so it never asks for work -> start it again: KINETO_USE_DAEMON=1 python train.py",
        ),
        (seen(PID, is_readable=False), "not even root may look into it here"),
        (
            seen(PID, net_namespace=HOME + 5),
            "it has a network namespace of its own (a container's?), where",
        ),
        (
            seen(PID, environment={"KINETO_USE_DAEMON": "1", "KINETO_DAEMON_INIT_DELAY_S": "3"}),
            "some versions of libkineto never do",
        ),
        (seen(PID), "libkineto's client does not run in it"),
    ],
)
def test_each_obstacle_has_its_verdict(tree: ProcTree, process: Seen | None, reason: str) -> None:
    known = evidence(tree.host)
    result = walked(known, process)
    assert why(result, known).startswith(f"pid {PID} would not be traced: ")
    assert reason in why(result, known)


@pytest.mark.parametrize("version", ["2.0.0", "2.13.0+cpu", ""])
def test_pytorch_2_and_one_of_unknown_version_are_no_obstacle(tree: ProcTree, version: str) -> None:
    known = evidence(tree.host)
    assert "torch" not in [step.topic for step in walked(known, seen(PID, torch=version)).obstacles]


def test_an_environment_that_shows_nothing_is_no_proof(tree: ProcTree) -> None:
    result = walked(evidence(tree.host), seen(PID, environment={}, environment_is_known=False))
    assert [step.text for step in result.steps if step.topic == "environment"] == [
        "its environment shows nothing: it was overwritten, or is empty"
    ]


def test_a_pid_that_is_not_there_is_not_walked_any_further(tree: ProcTree) -> None:
    assert [step.topic for step in walked(evidence(tree.host, status=None, unreachable="no daemon"), None).steps] == [
        "process"
    ]


@pytest.mark.parametrize("value", ["0", "false", "", "No"])
def test_a_variable_that_means_off_is_on_for_kineto(tree: ProcTree, value: str) -> None:
    """A04: only a remark, for it can be traced."""
    known = evidence(tree.host, trainers=[trainer(PID)])
    result = walked(known, seen(PID, environment={"KINETO_USE_DAEMON": value}))
    (step,) = (step for step in result.steps if step.topic == "environment")
    assert (step.level, result.obstacles) == (Level.NOTE, ())
    assert step.text == f"KINETO_USE_DAEMON={value} is on: libkineto looks only whether it is set"


def test_a_variable_that_the_program_set_itself_is_seen_by_its_socket(tree: ProcTree) -> None:
    """/proc shows the environment that it was started with."""
    tree.process(PID, files=["socket:[77]"])
    known = evidence(tree.host)
    sockets = Sockets(names=frozenset({"@dynolog"}), clients=frozenset({"socket:[77]"}))
    result = walked(known, seen(PID, environment={}), sockets=sockets)
    assert "has set that itself" in next(step.text for step in result.steps if step.topic == "environment")
    assert "libkineto's client runs in it, and none of its messages has come" in why(result, known)


def test_all_obstacles_are_told_and_the_first_is_the_verdict(tree: ProcTree) -> None:
    known = evidence(tree.host, status=None, unreachable="no daemon answers on localhost:1778")
    result = walked(known, seen(PID, environment={}))
    assert [step.topic for step in result.obstacles] == ["environment", "daemon"]
    assert "(and 1 more above)" in walk_text(result, known)


def test_a_daemon_whose_ipc_is_off(tree: ProcTree) -> None:
    known = evidence(tree.host, status=status(ipc=ipc(enabled=False)))
    assert "the daemon's IPC is off: no process can be traced -> start it with --enable_ipc_monitor" in why(
        walked(known, seen(PID)), known
    )


@pytest.mark.parametrize(
    ("addresses", "flags", "names", "reason"),
    [
        (
            ("@dynolog", f"@dynolog in net:[{HOME + 5}]"),
            {},
            (),
            "libkineto's client does not run",
        ),  # reached: the next question
        (("@dynolog",), {"ipc_namespaces": "true"}, (), "which the daemon has not joined"),
        (("@dynolog", "@dynolog in net:[9]"), {}, (), "which the daemon has not joined"),
        (("@dynolog",), {}, ("@dynolog",), "where another process holds @dynolog"),
        (("@dynolog",), {}, (), "where the daemon's socket is not -> start the daemon as root with --ipc_namespaces"),
    ],
)
def test_another_network_namespace(
    tree: ProcTree, addresses: tuple[str, ...], flags: dict[str, str], names: tuple[str, ...], reason: str
) -> None:
    known = evidence(tree.host, status=status(ipc=ipc(*addresses)), daemon=local_daemon(ROOT, **flags))
    result = walked(known, seen(PID, net_namespace=HOME + 5), sockets=Sockets(names=frozenset(names)))
    assert reason in why(result, known)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("@dynolog",), "which another process than this daemon holds"),
        ((), "and the daemon listens on @mine, /run/d/dynolog only"),
    ],
)
def test_a_daemon_with_another_name(tree: ProcTree, names: tuple[str, ...], reason: str) -> None:
    known = evidence(tree.host, status=status(ipc=ipc("@mine", "/run/d/dynolog")))
    assert reason in why(walked(known, seen(PID), sockets=Sockets(names=frozenset(names))), known)


class SocketDirectory:
    """A process whose root is `root`, with a daemon's socket in `root`/run/d."""

    def __init__(self, tree: ProcTree, uid: int = 1000, mode: int = 0o1777) -> None:
        tree.process(PID, uid=uid)
        (tree.root / f"proc/{PID}/root").symlink_to(tree.root)
        self.path = tree.root / "run/d/dynolog"
        self.path.parent.mkdir(parents=True)
        self.path.parent.chmod(mode)

    def bind(self, path: Path) -> socket.socket:
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        here = os.open(path.parent, os.O_PATH)  # the path of a test's directory may be too long for a socket
        bound.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)
        return bound


IN_DIRECTORY = {"KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": "/run/d"}


def test_a_directory_that_both_see_is_reached(tree: ProcTree) -> None:
    place = SocketDirectory(tree)
    known = evidence(tree.host, status=status(ipc=ipc("@dynolog", str(place.path))))
    with place.bind(place.path):
        result = walked(known, seen(PID, environment=IN_DIRECTORY))
    assert "it reaches the daemon by /run/d/dynolog" in [step.text for step in result.steps]


def test_a_directory_without_the_daemons_socket(tree: ProcTree) -> None:
    place = SocketDirectory(tree)
    other = tree.root / "other"
    other.mkdir()
    known = evidence(tree.host, status=status(ipc=ipc("@dynolog", str(other / "dynolog"))))
    process = seen(PID, environment=IN_DIRECTORY)
    assert "KINETO_IPC_SOCKET_DIR=/run/d is where it looks for a daemon, and it sees no /run/d/dynolog" in why(
        walked(known, process), known
    )
    place.path.write_text("")
    assert "/run/d/dynolog is not a socket" in why(walked(known, process), known)
    place.path.unlink()
    with place.bind(place.path), place.bind(other / "dynolog"):
        assert "the socket there is not this daemon's" in why(walked(known, process), known)


def test_a_directory_in_which_the_process_may_not_make_its_socket(tree: ProcTree) -> None:
    place = SocketDirectory(tree, uid=54321, mode=0o755)
    (tree.root / f"proc/{PID}/status").write_text("Uid:\t54321\t54321\t0\t0\nGid:\t54321\t54321\t0\t0\n")
    known = evidence(tree.host, status=status(ipc=ipc(str(place.path))))
    with place.bind(place.path):
        assert "it may not make its own socket there -> chmod 1777 /run/d" in why(
            walked(known, seen(PID, environment=IN_DIRECTORY)), known
        )


def test_a_process_that_was_just_started_is_given_time(tree: ProcTree) -> None:
    known = evidence(tree.host)
    assert "it has not registered yet: it was started less than half a minute ago" in why(
        walked(known, seen(PID), age_s=4.0), known
    )
    slow = {"KINETO_USE_DAEMON": "1", "KINETO_DAEMON_INIT_DELAY_S": "60"}
    assert "or waits for its delay -> ask again" in why(walked(known, seen(PID, environment=slow), age_s=70.0), known)


def test_a_daemon_that_was_just_started_is_given_time(tree: ProcTree) -> None:
    import msgspec  # noqa: PLC0415 - only here

    young = status()
    known = evidence(tree.host, status=status(own=msgspec.structs.replace(young.own, uptime_s=2.0)))
    assert "the daemon was started a moment ago" in why(walked(known, seen(PID)), known)


def test_a_trainer_that_stopped_polling(tree: ProcTree) -> None:
    known = evidence(tree.host, trainers=[trainer(PID, last_poll_age_s=31.0, poll_interval_s=5.0)])
    assert "it had registered and has stopped polling" in why(walked(known, seen(PID)), known)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [("launcher", "trace its workers: dyno ps"), ("busy", "dyno trace"), ("forbidden", "as root"), ("path", "(path)")],
)
def test_what_the_daemon_says_to_a_request_is_the_verdict(tree: ProcTree, code: str, remedy: str) -> None:
    known = evidence(tree.host, trainers=[trainer(PID)])
    refused = NotTraced(pid=PID, host_pid=PID, code=code, error="because")
    said = why(walked(known, seen(PID), verdict=refused), known)
    assert said.startswith(f"pid {PID} would not be traced: because ({code})")
    assert remedy in said


def test_a_capture_that_goes_on_is_said(tree: ProcTree) -> None:
    known = evidence(tree.host, trainers=[trainer(PID, state=TrainerState.BUSY, capture="r1-1")])
    result = walked(known, seen(PID))
    assert not result.obstacles
    assert "it is busy with a trace now: capture r1-1" in result.steps[-1].text


def test_another_users_process_needs_root(tree: ProcTree) -> None:
    known = evidence(tree.host, own=USER)
    closed = seen(PID, is_readable=False, torch=None, uid=0)
    assert (
        "it belongs to user 0: what keeps it from registering is not yours to see -> sudo dyno doctor --pid 4242"
        in why(walked(known, closed), known)
    )
    registered = evidence(tree.host, own=USER, trainers=[trainer(PID)])
    assert not walked(registered, closed).obstacles, "once it has registered there is nothing to look for"


def test_the_workers_of_a_launcher_are_named(tree: ProcTree) -> None:
    tree.process(PID)
    tree.process(50, parent=PID)
    tree.process(60, parent=50)
    known = evidence(tree.host, survey=survey(seen(60)))
    said = why(walked(known, seen(PID, torch=None)), known)
    assert "it has not loaded PyTorch itself; processes below it have: 60 -> dyno doctor --pid 60" in said


def test_a_pid_of_a_containers_own_namespace_is_found(tree: ProcTree) -> None:
    tree.process(PID, name="python")
    (tree.root / f"proc/{PID}/comm").write_text("python\n")
    inner = seen(PID, namespace_pids=(PID, 7))
    assert find_subject(evidence(tree.host, survey=survey(inner)), 7).pid == PID
    assert find_subject(evidence(tree.host, trainers=[trainer(7, host_pid=PID)]), 7).pid == PID
    assert find_subject(evidence(tree.host), 7).seen is None
    twice = survey(inner, seen(99, namespace_pids=(99, 7)))
    assert find_subject(evidence(tree.host, survey=twice), 7).pid == 7, "of two, none is meant for sure"


def test_a_namesake_in_a_container_is_said(tree: ProcTree) -> None:
    known = evidence(tree.host, trainers=[trainer(PID, host_pid=99)])
    assert "pid 99 of this machine calls itself 4242 too" in [step.text for step in walked(known, seen(PID)).steps][1]


def test_on_another_machine_the_list_of_trainers_is_all(tree: ProcTree) -> None:
    known = evidence(tree.host, is_local=False, daemon=None, trainers=[trainer(PID)])
    assert not walk(find_subject(known, PID), known).obstacles
    assert "it is not among the trainers of that daemon" in why(walk(find_subject(known, 5), known), known)


def test_a_walk_as_json(tree: ProcTree) -> None:
    known = evidence(tree.host, trainers=[trainer(PID)])
    shown = walk_object(walked(known, seen(PID)), known)
    assert {key: shown[key] for key in ("pid", "torch", "registered", "traceable", "verdict")} == {
        "pid": PID,
        "torch": "2.4.0",
        "registered": True,
        "traceable": True,
        "verdict": "pid 4242 can be traced",
    }


def test_processes_alike_share_a_line(tree: ProcTree) -> None:
    known = evidence(tree.host, trainers=[trainer(3)])
    walks = [
        walk(Subject(pid=1, seen=seen(1, environment={}), age_s=100.0), known),
        walk(Subject(pid=2, seen=seen(2, environment={}), age_s=100.0), known),
        walk(Subject(pid=3, seen=seen(3), trainer=known.trainer_of(3)), known),
    ]
    silent = "KINETO_USE_DAEMON is not in the environment that it was started with, so it never asks for work"
    assert walks_text(walks, known).splitlines() == [
        f"2 processes (pids 1, 2) would not be traced: {silent}",
        "      -> start it again: KINETO_USE_DAEMON=1 python train.py",
        "1 process (pid 3) can be traced",
    ]


def job(task: str) -> dict[str, str]:
    return {"SLURM_JOB_ID": f"9021{task}", "SLURM_ARRAY_JOB_ID": "90210", "SLURM_ARRAY_TASK_ID": task}


@pytest.mark.parametrize(("text", "pids"), [("90210_7", [7]), ("90210", [7, 8, 9]), ("90218", [8]), ("5", [])])
def test_a_job_is_its_registered_and_its_silent_processes(tree: ProcTree, text: str, pids: list[int]) -> None:
    """Job ids are text (H01); a Python process without PyTorch is left out where there are some with it."""
    tree.process(9)
    processes = survey(seen(7, job=job("7")), seen(8, job=job("8")), seen(10, job=job("8"), torch=None))
    known = evidence(tree.host, survey=processes, trainers=[trainer(9, job="90210_9", job_id=90219)])
    assert [subject.pid for subject in subjects_of_job(known, text)] == pids


def test_a_process_that_the_daemon_knows_by_its_pid_in_a_container_only_is_there_once(tree: ProcTree) -> None:
    """The kernel did not vouch for it, so the daemon knows no pid of this machine."""
    inner = seen(PID, job=job("7"), namespace_pids=(PID, 7))
    tree.process(PID)
    unverified = trainer(7, host_pid=0, job="90210_7", job_id=90217)
    known = evidence(tree.host, survey=survey(inner), trainers=[unverified])
    assert [subject.pid for subject in subjects_of_job(known, "90210_7")] == [PID]


def test_the_pid_of_a_thread_means_its_process(tree: ProcTree) -> None:
    tree.process(PID)
    tree.process(PID + 3)
    for pid in (PID, PID + 3):
        tree.write(f"proc/{pid}/status", f"Name:\tpython\nTgid:\t{PID}\nPid:\t{pid}\n")
    known = evidence(tree.host)
    asked = find_subject(known, PID + 3)
    assert (asked.pid, asked.thread) == (PID, PID + 3)
    assert walk(asked, known).steps[0].text.startswith(f"{PID + 3} is a thread of pid {PID}: ")
    assert find_subject(known, PID).thread == 0


def test_a_real_process_that_nobody_waited_for_is_a_zombie() -> None:
    """Its link to its program is gone, as with a thread of the kernel."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        known = evidence(HostFiles("/"))
        said = why(walk(find_subject(known, pid), known), known)
        assert "it has ended, and only waits for its parent to notice (a zombie)" in said
        assert f"ps -o pid,stat,args -p {os.getpid()}" in said
    finally:
        os.waitpid(pid, 0)


def test_without_pytorch_a_jobs_python_processes_are_shown(tree: ProcTree) -> None:
    known = evidence(tree.host, survey=survey(seen(10, job=job("8"), torch=None)))
    assert [subject.pid for subject in subjects_of_job(known, "90210_8")] == [10]


def test_the_report_groups_pytorch_processes_and_counts_the_hidden(tree: ProcTree) -> None:
    processes = survey(
        seen(1, environment={}),
        seen(2, environment={}),
        seen(3, environment={"KINETO_USE_DAEMON": "1", "KINETO_DAEMON_INIT_DELAY_S": "3"}),
        seen(5, net_namespace=HOME + 5),
        seen(6, net_namespace=HOME + 6),
        seen(4, torch=None, is_readable=False),
        hanging=(66,),
    )
    known = evidence(tree.host, survey=processes, trainers=[trainer(3)])
    said = {text.partition(" -> ")[0]: level for level, text in found(check_trainers, known)}
    assert said == {
        "2 processes with PyTorch (pids 1, 2): KINETO_USE_DAEMON is not in the environment that it was started with, so it never asks "
        "for work": "wrong",
        "1 process with PyTorch (pid 3): KINETO_DAEMON_INIT_DELAY_S=3 makes it register so many seconds late": "note",
        "2 processes with PyTorch (pids 5, 6): it has a network namespace of its own (a container's?), where the daemon's socket is "
        "not": "wrong",
        "1 process with PyTorch can be traced (pid 3)": "ok",
        "1 process of other users that is Python could not be looked into": "note",
        "1 process (pid 66) did not answer a look into /proc in time": "wrong",
    }


def test_time_since_the_start_counts_from_boot(tree: ProcTree) -> None:
    tree.process(PID, start=int((time.clock_gettime(time.CLOCK_BOOTTIME) - 50) * os.sysconf("SC_CLK_TCK")))
    (tree.root / f"proc/{PID}/comm").write_text("python\n")
    (tree.root / f"proc/{PID}/exe").symlink_to("/usr/bin/python3")
    for name in ("maps", "cmdline"):
        (tree.root / f"proc/{PID}/{name}").write_text("")
    assert find_subject(evidence(tree.host), PID).age_s == pytest.approx(50, abs=5)


def test_rights_of_root_are_the_daemons(tree: ProcTree) -> None:
    daemon: LocalDaemon = local_daemon(Privileges(uid=5))
    assert evidence(tree.host, daemon=daemon).rights.uid == 5
    assert evidence(tree.host, daemon=None, own=ROOT).rights.uid == 0
